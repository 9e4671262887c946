"""The wheel ships the five packages with their data and nothing else; its command works from any folder."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"theory", "empirics", "pipeline", "figures", "staleproof"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The wheel, built from a copy of the sources without isolation (setuptools comes with torch)."""
    source = tmp_path_factory.mktemp("source") / "copy"
    source.mkdir()
    for name in (*PACKAGES, "tests", "benchmarks", "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    out = tmp_path_factory.mktemp("wheel")
    code = f"import setuptools.build_meta as build; build.build_wheel({str(out)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=source, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    yield next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_ships_the_five_packages_only(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES


def test_ships_every_module_and_every_data_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    wanted = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - shipped == set()


def test_ships_its_license_and_says_what_it_needs(unpacked: Path) -> None:
    info = next(unpacked.glob("*.dist-info"))
    assert any(path.name == "LICENSE" for path in info.rglob("*"))
    metadata = (info / "METADATA").read_text(encoding="utf-8")
    assert "Requires-Python: >=3.11" in metadata and "Requires-Dist: torch>=2.9" in metadata
    for extra in ("proofs", "optimizers", "dev"):
        assert f"Provides-Extra: {extra}" in metadata
    scripts = configparser.ConfigParser()
    scripts.read(info / "entry_points.txt")
    assert scripts["console_scripts"]["staleproof"] == "staleproof.cli:entry_point"


def test_installed_command_works_from_another_folder(unpacked: Path, tmp_path: Path) -> None:
    code = (
        "import sys, theory, empirics, pipeline, figures, staleproof\n"
        f"assert all(m.__file__.startswith({str(unpacked)!r}) for m in "
        "(theory, empirics, pipeline, figures, staleproof)), theory.__file__\n"
        "sys.argv = ['staleproof', 'delays', 'pipedream', '--stages', '4', '--json']\n"
        "from staleproof.cli import entry_point\n"
        "entry_point()\n"
    )
    # PYTHONPATH comes before an editable install of the sources.
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(unpacked), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["optimizer_step_delay"] == [3, 2, 1, 0]
