"""LaTeX tables: escaped, one number of cells in every line, and they compile."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from empirics_data import budget

from figures.errors import InputError
from figures.table import (
    Column,
    Digits,
    Estimate,
    Mark,
    Math,
    Table,
    cell_latex,
    document_latex,
    estimate,
    table_csv,
    table_html,
    table_latex,
)
from figures.tables_empirics import used_table

NAMES = ["lr_1e-3", "95% CI", "A&B", "#1", "$x$", "a^b", "~home", "back\\slash", "{x}", "Müller", "σ", "[x]", 'é|"<>']
VALUES = [math.nan, None, math.inf, -math.inf, -0.0, 1e-320, 12345678.9, "diverged", 3, Digits(1.0000001, 9)]


def awkward(repeats: int = 1) -> Table:
    """Specials in the header, every awkward value, estimates and formulas."""
    rows = [
        (
            name,
            value,
            Estimate(1.2, math.nan, 3.0),
            Math(r"\frac{a}{b}"),
            Math(r"\input{x}", "100%"),
            Mark("bad_one", "bad"),
        )
        for name in NAMES
        for value in VALUES
    ] * repeats
    columns = (Column("A&B_1"), Column("95%", "r"), Column("σ"), Column("$f$"), Column("#"), Column("{note}", "p", 0.2))
    return Table("awkward", "Title_1 100%", "A & B, $x$ and #1.", columns, tuple(rows))


def unescaped_ampersands(line: str) -> int:
    return len(re.findall(r"(?<!\\)&", line))


@pytest.mark.parametrize("repeats", [1, 3])
def test_every_line_has_one_cell_per_column(repeats: int) -> None:
    lines = [
        line for line in table_latex(awkward(repeats)).splitlines() if line.endswith(r"\\") and "caption" not in line
    ]
    assert len(lines) >= len(NAMES) * len(VALUES)
    assert {unescaped_ampersands(line) for line in lines} == {5}
    assert not any(re.search(r"(?<!\\)[%#]", line) for line in lines)
    assert not any(re.search(r"\bnan\b|\binf\b", line) for line in lines)


def test_long_table_repeats_its_header_and_has_one_label() -> None:
    long = table_latex(awkward())
    assert "longtable" in long and long.count(r"\label{tab:awkward}") == 1 and long.count(r"\caption") == 1
    assert long.count(r"A\&B\_1") == 2 and r"\endhead" in long
    short = Table("short", "T", "c", (Column("a"),), (("x",),))
    assert "longtable}" not in table_latex(short).split("\n", 1)[1] and r"\begin{table}" in table_latex(short)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (math.nan, "--"),
        (None, "--"),
        (math.inf, r"$\infty$"),
        ("50%", r"50\%"),
        (Math("x^2"), "$x^2$"),
        (Math(r"\write18{x}", "f_1"), r"f\_1"),
        (Estimate(1.23, 1.1, 1.5), "$1.23$ [$1.10$, $1.50$]"),
        (Mark("fails", "bad"), r"\textbf{fails}"),
    ],
)
def test_cells(cell: object, expected: str) -> None:
    assert cell_latex(cell) == expected  # type: ignore[arg-type]


def test_html_and_csv_carry_the_same_rows() -> None:
    table = awkward()
    html = table_html(table, lambda latex, fallback: f"<i>{len(latex)}</i>")
    assert html.count("<tr") == len(table.rows) + 1
    assert "A&amp;B_1" in html and "<i>" in html and "100%" not in html.split("<tbody>")[1].split("</tbody>")[0]
    read = list(csv.reader(io.StringIO(table_csv(table).decode("utf-8"))))
    assert len(read) == len(table.rows) + 1 and {len(row) for row in read} == {6}
    assert float(read[6][1]) == 1e-320 or "1e-320" in {row[1] for row in read}


def test_what_each_step_used_says_what_could_have_failed() -> None:
    table = used_table(budget())
    assert table is not None and [column.header for column in table.columns][2] == "kind"
    assert [(row[0], row[2]) for row in table.rows] == [
        ("theorem delay", "certified"), ("delay: one step more", "of any vectors"),
    ]  # fmt: skip
    assert "Of 4 rows 2 are evidence" in table.caption


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="cells"):
        Table("t", "", "", (Column("a"),), (("x", "y"),))
    with pytest.raises(InputError, match="file stem"):
        Table("a b", "", "", (Column("a"),), ())
    with pytest.raises(InputError, match="align"):
        Column("a", "c")
    with pytest.raises(InputError, match="tone"):
        Mark("a", "loud")


def test_estimate_of_missing_or_null_interval_is_none() -> None:
    assert estimate(None) is None and estimate({}) is None and estimate({"value": None}) is None
    assert estimate({"value": 1, "low": 0, "high": None}) is not None


def _compile(folder: Path, name: str) -> None:
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / name).with_suffix(".pdf").stat().st_size > 1000


@pytest.mark.tex
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_tables_compile(tmp_path: Path, sound_folder: Path, hostile_folder: Path) -> None:
    for which, source in (("sound", sound_folder), ("hostile", hostile_folder)):
        copy = tmp_path / which
        shutil.copytree(source / "tables", copy)
        _compile(copy, "all.tex")
    for table in (awkward(), Table("empty", "No rows", "c", (Column("a"), Column("b", "r")), ())):
        (tmp_path / f"{table.name}.tex").write_text(table_latex(table), encoding="utf-8")
    (tmp_path / "all.tex").write_text(document_latex(["awkward", "empty"]), encoding="utf-8")
    _compile(tmp_path, "all.tex")
