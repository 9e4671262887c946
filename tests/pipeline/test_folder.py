"""Output folders are never mixed, and never somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.folder import ResultFolder, is_result_folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def old_result(folder: Path) -> None:
    with ResultFolder.create(folder) as made:
        made.write("status.json", {"schema": 1, "state": "complete"})
        made.write("training.json", {})
        (folder / "runs").mkdir()
        (folder / "runs" / "a.json").write_text("{}", encoding="utf-8")


def test_new_nested_folder_with_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "ergebnis σ 🙂." / ("x" * 200)
    old_result(folder)
    assert names(folder) == {"status.json", "training.json", "runs"}


def test_not_empty_is_refused_and_untouched(tmp_path: Path) -> None:
    old_result(tmp_path / "out")
    with pytest.raises(InputError, match="not empty.*--overwrite"):
        ResultFolder.create(tmp_path / "out")
    assert names(tmp_path / "out") - {".lock"} == {"status.json", "training.json", "runs"}


def test_overwrite_cleans_first(tmp_path: Path) -> None:
    old_result(tmp_path / "out")
    with ResultFolder.create(tmp_path / "out", overwrite=True):
        assert names(tmp_path / "out") == {".lock"}


@pytest.mark.parametrize("content", [None, "not json", '{"schema": 99}', "[]"])
def test_overwrite_does_not_clear_a_foreign_folder(tmp_path: Path, content: str | None) -> None:
    (tmp_path / "thesis.tex").write_text("mine", encoding="utf-8")
    if content is not None:
        (tmp_path / "status.json").write_text(content, encoding="utf-8")
    assert not is_result_folder(tmp_path)
    with pytest.raises(InputError, match="result folders only"):
        ResultFolder.create(tmp_path, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text(encoding="utf-8") == "mine"


def test_overwrite_does_not_follow_links_out(tmp_path: Path) -> None:
    old_result(tmp_path / "out")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "kept").touch()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "data")
    with ResultFolder.create(tmp_path / "out", overwrite=True):
        assert (tmp_path / "data" / "kept").exists()


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(InputError, match="is a file"):
        ResultFolder.create(tmp_path / "out")
    with pytest.raises(InputError, match="cannot write"):
        ResultFolder.create(tmp_path / "out" / "below")


def test_unwritable_place_is_refused_with_its_reason() -> None:
    with pytest.raises(InputError, match="cannot write to '/proc/nowhere'"):
        ResultFolder.create("/proc/nowhere")


def test_two_runs_at_the_same_time(tmp_path: Path) -> None:
    with ResultFolder.create(tmp_path / "out") as first:
        first.write("status.json", {"schema": 1})
        for overwrite in (False, True):
            with pytest.raises(InputError, match="in use by another run"):
                ResultFolder.create(tmp_path / "out", overwrite=overwrite)
        assert (tmp_path / "out" / "status.json").exists()
    first.close()  # twice does no harm
    with ResultFolder.create(tmp_path / "out", overwrite=True):
        pass


def test_a_killed_run_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pipeline.folder import ResultFolder;"
        "f = ResultFolder.create(sys.argv[1]); f.write('status.json', {'schema': 1});"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out")], env={**os.environ, "PYTHONPATH": root}
    )
    assert done.returncode == -9
    assert ".lock" in names(tmp_path / "out")
    with ResultFolder.create(tmp_path / "out", overwrite=True):
        pass
