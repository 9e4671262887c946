"""The examples run, stay short, and draw and print what they say."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from theory import get_bound

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LONGEST = 25


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_which_there_are() -> None:
    names = ["bound_plot.py", "bounds.py", "custom_model.py", "delayed_optimizer.py", "latex_table.py"]
    names += ["test_delay_formula.py"]
    assert [path.name for path in EXAMPLES] == names


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_bound_plot_draws_a_pdf(tmp_path: Path) -> None:
    run([str(ROOT / "examples" / "bound_plot.py")], tmp_path)
    assert (tmp_path / "bound_plot.pdf").read_bytes().startswith(b"%PDF")


def test_latex_table_has_a_row_for_each_bound(tmp_path: Path) -> None:
    latex = run([str(ROOT / "examples" / "latex_table.py")], tmp_path).stdout
    rows = [
        line for line in latex.splitlines() if line.endswith(r"\\") and line.startswith(("delayed", "error"))
    ]
    assert len(rows) >= 5 and len({row.count("&") for row in rows}) == 1
    assert r"\toprule" in latex and r"\bottomrule" in latex
    assert "0.537" in next(row for row in rows if row.startswith("delayed-lmo &"))
    names = {row.split(" &")[0] for row in rows}
    assert "delayed-lmo-median" in names  # its age is optional
    unlisted = latex.split("No row")[1].splitlines()[0]
    assert "rpd-paper" in unlisted and "kovalev" in unlisted and "delayed-lmo-median" not in unlisted


def test_delay_formula_passes_under_pytest(tmp_path: Path) -> None:
    path = str(ROOT / "examples" / "test_delay_formula.py")
    done = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, path], tmp_path)
    assert "25 passed" in done.stdout


@pytest.mark.processes
def test_a_model_of_ones_own_equals_one_process(tmp_path: Path) -> None:
    first, last = run([str(ROOT / "examples" / "custom_model.py")], tmp_path).stdout.splitlines()
    before, after = (float(word) for word in first.removeprefix("loss ").split(" -> "))
    assert after < 0.1 * before
    assert last == "difference from one process: 0.0"


def test_error_feedback_gives_back_what_a_delay_costs(tmp_path: Path) -> None:
    lines = run([str(ROOT / "examples" / "delayed_optimizer.py")], tmp_path).stdout.splitlines()
    numbers = [line.split(": ")[1].split(", with error feedback ") for line in lines]
    plain, corrected = zip(*((float(a), float(b)) for a, b in numbers), strict=True)
    assert plain[0] == corrected[0] < corrected[1] < plain[1] < corrected[2] < plain[2]


def test_bounds_print_what_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "bounds.py"))
    *lines, latex = capsys.readouterr().out.splitlines()
    assert "\n```\n" + "\n".join(lines) + "\n```\n" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert latex == get_bound("delayed-lmo").latex()


@pytest.mark.parametrize("name", ["bounds.py", "custom_model.py", "delayed_optimizer.py"])
def test_the_readme_shows_it_in_full(name: str) -> None:
    source = (ROOT / "examples" / name).read_text(encoding="utf-8")
    assert f"```python\n{source}```" in (ROOT / "README.md").read_text(encoding="utf-8")
