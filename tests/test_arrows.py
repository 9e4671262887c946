"""The arrows between the rooms, read from the imports of every module.

staleproof -> figures, empirics, pipeline, theory; empirics -> pipeline, theory; the others -> nothing.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {"staleproof", "figures", "empirics", "pipeline", "theory"}
ALLOWED = {
    "staleproof": ROOMS,
    "figures": {"figures"},
    "empirics": {"empirics", "pipeline", "theory"},
    "pipeline": {"pipeline"},
    "theory": {"theory"},
}
# Heavy libraries that a room must do without.
FORBIDDEN = {
    "theory": {"torch", "pytorch_optimizer", "matplotlib", "pandas"},
    "figures": {"torch", "sympy", "scipy"},
    "pipeline": {"sympy", "matplotlib", "pandas"},
    "empirics": {"matplotlib", "pandas"},
}
# The oracle is a witness only as long as it shares no code with what it checks.
ORACLE_MAY_IMPORT = {"pipeline.oracle_corrections", "pipeline.errors", "pipeline.models", "pipeline.data"}
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Every dotted name that a module imports, anywhere in it, relative imports resolved."""
    package = path.relative_to(ROOT).parent.parts
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            prefix = ".".join((*base, *([node.module] if node.module else [])))
            found.add(prefix)
            found.update(f"{prefix}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.add(first.value)
    return found


def violations(path: Path) -> list[str]:
    """The imports of a module that its room does not allow."""
    room = path.relative_to(ROOT).parts[0]
    tops = {name.split(".")[0] for name in imports(path)}
    wrong = (
        (tops & ROOMS) - ALLOWED[room] | tops & FORBIDDEN.get(room, set()) | tops & {"tests", "benchmarks"}
    )
    return sorted(wrong)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_keeps_to_its_arrows(path: Path) -> None:
    assert violations(path) == []


def test_every_room_is_looked_at() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == ROOMS


def oracle_violations(path: Path) -> list[str]:
    """What the oracle imports from the rooms beyond plain models, data and errors."""
    local = {name for name in imports(path) if name.split(".")[0] in ROOMS}
    fine = {name for name in local if any(f"{name}.".startswith(f"{ok}.") for ok in ORACLE_MAY_IMPORT)}
    return sorted(local - fine - {"pipeline"})


def test_oracle_shares_no_code_with_what_it_checks() -> None:
    for name in ("oracle.py", "oracle_corrections.py"):
        assert oracle_violations(ROOT / "pipeline" / name) == []


@pytest.mark.parametrize(
    ("room", "line", "wrong"),
    [
        ("theory", "import torch.nn as nn", ["torch"]),
        ("theory", "def f():\n    from pipeline.delays import delays_of", ["pipeline"]),
        ("figures", "from theory import bound", ["theory"]),
        ("pipeline", "import theory", ["theory"]),
        ("pipeline", "import importlib\nimportlib.import_module('empirics.norms')", ["empirics"]),
        ("empirics", "from staleproof.claims import Claim", ["staleproof"]),
        ("empirics", "from .. import figures", []),
        ("staleproof", "from tests.conftest import ROOT", ["tests"]),
    ],
)
def test_a_wrong_import_is_seen(
    room: str, line: str, wrong: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / room / "inner" / "module.py"
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n", encoding="utf-8")
    assert violations(path) == wrong


@pytest.mark.parametrize(
    "line",
    [
        "from pipeline.schedules import make_schedule",
        "from pipeline import engine",
        "from .optim import ErrorFeedback",
        "import theory.quadratic",
    ],
)
def test_an_oracle_that_peeks_is_seen(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "pipeline" / "oracle.py"
    path.parent.mkdir()
    path.write_text(f"from pipeline.models.gpt import ByteGPT\n{line}\n", encoding="utf-8")
    assert oracle_violations(path) != []
