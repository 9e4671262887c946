"""What the README and the documentation say is so."""

from __future__ import annotations

import argparse
import fnmatch
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from staleproof import __version__
from staleproof.cli import main
from staleproof.commands import bound, prove
from staleproof.sections import SECTIONS
from theory import BOUNDS
from theory.bound import Bound
from theory.proofs import PROOFS

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = ("delayed-", "star-", "rpd-", "pipedream-exact", "error-feedback", "local-sgd")
PAPERS = ("2606.30634", "2606.03498", "2605.29664", "2606.07881")
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```\n\$ staleproof (.*?)\n(.*?)```", README, flags=re.DOTALL)
QUICK = [block for block in BLOCKS if not block[0].startswith("verify")]


@pytest.mark.parametrize(("command", "output"), QUICK, ids=[command for command, _ in QUICK])
def test_commands_print_what_the_readme_shows(
    command: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == output


@pytest.mark.parametrize("command", [bound, prove], ids=["bound", "prove"])
def test_every_option_of_the_theory_stands_in_a_table(command: ModuleType) -> None:
    parser = argparse.ArgumentParser(add_help=False)
    command.add_arguments(parser)
    name = command.__name__.rpartition(".")[2]
    table = README.split(f"| `staleproof {name}` |")[1].split("\n\n")[0]
    for option in (word for action in parser._actions for word in action.option_strings):
        assert f"`{option}" in table or f" {option}" in table, option


def test_readme_shows_commands() -> None:
    assert len(QUICK) >= 2


def test_bounds_that_are_named_exist() -> None:
    table = README.split("| your method |")[1].split("\n\n")[0]
    patterns = [name for name in re.findall(r"`([a-z-]+\*?)`", table) if name.startswith(FAMILIES)]
    assert len(patterns) >= 12
    assert all(fnmatch.filter(BOUNDS, pattern) for pattern in patterns), patterns
    without = [name for name in BOUNDS if name not in PROOFS]
    assert f"{len(BOUNDS) - len(without)} of the {len(BOUNDS)} bounds have a proof" in README
    assert without == ["kovalev", "star-convex-reported", "local-sgd"] and "`kovalev`, `star-convex-reported`" in README
    assert all(hasattr(Bound, name) and f"`{name}(" in README for name in ("derivative", "derivative_at", "admissible"))


def test_sections_stand_in_a_table() -> None:
    table = README.split("| section of `verify` |")[1].split("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == SECTIONS


def test_exactly_two_set_up_commands() -> None:
    set_up = README.split("## Set up")[1].split("\n## ")[0]
    assert re.findall(r"```\n(.*?)\n```", set_up, flags=re.DOTALL) == ["make verify", "make test"]


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_files_that_are_named_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    rooms = "theory|pipeline|empirics|figures|staleproof|tests|docs|examples|benchmarks"
    named = re.findall(rf"`((?:{rooms})/[\w./]+)`", text)
    linked = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    base = (ROOT / name).parent
    assert [path for path in named if not (ROOT / path).exists() and "NAME" not in path] == []
    assert [path for path in linked if not (base / path).exists()] == []


def test_the_four_papers_are_named() -> None:
    for text in (README, (ROOT / "CITATION.cff").read_text(encoding="utf-8")):
        assert all(paper in text for paper in PAPERS)


def test_versions_agree() -> None:
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
