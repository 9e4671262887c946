"""What is no file of certificates is refused in one line, and the check needs the standard library only."""

from __future__ import annotations

import ast
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from theory.certificates.check import check
from theory.certificates.schema import FOLDER, SCHEMA, parse, read
from theory.certificates.worst_case import WorstCase
from theory.errors import InputError

HALF = Fraction(1, 2)
FILE = FOLDER / "delayed-gd-tau1-h1-2.json"


def text(**changes: object) -> str:
    """A file with one certificate of N = 1, fields replaced."""
    upper = {"denominator": 1, "value": 2, "w": [1], "mu": [2], "lam": []}
    lower = {"denominator": 1, "value": 2, "f": [1], "gram": [[2]]}
    item: dict[str, object] = {"N": 1, "sdp": [2 * 10**10, 2 * 10**10], "upper": upper, "lower": lower}
    data: dict[str, object] = {"schema": SCHEMA, "tau": 0, "h": [1, 2], "certificates": [item]}
    for name, value in changes.items():
        target: Any = data
        *path, last = name.split("__")
        for part in path:
            target = item if part == "item" else target[part]
        target[last] = value
    return json.dumps(data)


def test_the_plain_file_is_read_and_proved() -> None:
    (certificate,) = parse(text())
    assert check(certificate).proved and certificate.upper.value == certificate.lower.value == 2


def test_an_instance_below_its_lower_bound_is_refused() -> None:
    """N = 1: ||g_0||^2 = 3 needs f_0 - f_* >= 3/2."""
    (certificate,) = parse(text(item__lower__value=3, item__lower__gram=[[3]]))
    assert check(certificate).reason == "lower: f_0 - f_* is smaller than ||g_0||^2/2"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("__import__('os').getcwd()", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("9" * 5000, "not JSON"),
        ("[]", "an object with schema"),
        ("NaN", "number NaN: only whole"),
        (text(item__N=float("inf")), "number Infinity: only whole"),
        (text(item__N=1.0), "number 1.0: only whole"),
        (text(tau=1e300), "only whole"),
        (text().replace('"tau": 0', '"tau": 0, "tau": 1'), "names a field twice"),
        (text(schema="other/1"), "schema: 'other/1' is not"),
        (text(extra=1), "an object with"),
        (text(tau=-1), "tau: -1 is not a whole number from 0"),
        (text(tau=True), "tau: True is not"),
        (text(tau="0"), "tau: '0' is not"),
        (text(tau=65), "tau: 65"),
        (text(h=[1, 0]), "h: 0 is not"),
        (text(h=[-1, 2]), "h: -1 is not"),
        (text(h="1/2"), "h: '1/2' is not a list"),
        (text(h=[1, 2, 3]), "h: .* is not a list of 2"),
        (text(certificates={}), "certificates: {} is not a list"),
        (text(certificates=[]), r"certificates: \[\] is not a list of at least one certificate"),
        (text(certificates=[None]), r"certificates\[0\]: None is not an object"),
        (text(item__N=0), r"N: 0 is not"),
        (text(item__N=2), r"w: \[1\] is not a list of 2"),
        (text(item__sdp=[1]), "sdp: .* a list of 2"),
        (text(item__upper__denominator=0), "denominator: 0 is not"),
        (text(item__upper__w=[None]), r"w\[0\]: None"),
        (text(item__upper__lam=[[0, 0, 1]]), "two different indices"),
        (text(item__upper__lam=[[0, 1, 1]]), r"lam\[0\]: 1 is not a whole number from 0 to 0"),
        (text(item__upper__lam=[1]), "a list of 3"),
        (text(item__upper__value=10**300), "more than 200 digits"),
        (text(item__lower__gram=[[1, 2]]), r"gram\[0\]: .* a list of 1"),
        (text(item__lower__f=[{"a" * 100: 1}]), r"f\[0\]: .*\.\.\. is not"),
    ],
)
def test_garbage_is_refused_in_one_line(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse(source)
    line = str(caught.value)
    assert "\n" not in line and len(line) < 250 and line.startswith("certificate file: ")


def test_files_that_cannot_be_read_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "missing.json")
    path = tmp_path / "bad.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="bad.json: not UTF-8"):
        read(path)
    monkeypatch.setattr("theory.certificates.schema.BYTES_MAX", 1)
    with pytest.raises(InputError, match="larger than 1 bytes"):
        read(path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((-1, 1, HALF), "tau: -1"),
        ((0, 0, HALF), "N: 0"),
        ((0, 1.5, HALF), "N: 1.5"),
        ((True, 1, HALF), "tau: True"),
        ((0, 1, Fraction(0)), "h: "),
        ((0, 1, 0.5), "h: 0.5 is not a positive Fraction"),
    ],
)
def test_a_problem_refuses_what_is_none(values: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WorstCase(*values)


@pytest.mark.parametrize("name", ["check", "ldl", "schema", "worst_case"])
def test_the_check_needs_the_standard_library_only(name: str) -> None:
    tree = ast.parse((FOLDER.parent / f"{name}.py").read_text(encoding="utf-8"))
    printing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "main"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for module in modules:
            ours = module == "theory.errors" or module.startswith("theory.certificates")
            assert ours or module.split(".")[0] in sys.stdlib_module_names, module
        if id(node) not in printing:
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert called not in ("eval", "exec", "compile", "float", "__import__")
