"""Certificate files: JSON with whole numbers only, read without evaluating anything and refused in one line.

A file holds the certificates of one delay and one step, one for each number of gradients N:
  {"schema": ..., "tau": 1, "h": [1, 2], "certificates": [{"N": 2,
     "sdp": [own, PEPit],                                   both in units of 1/SDP_DENOMINATOR, for the report
     "upper": {"denominator": D, "value": v, "w": [N], "mu": [N], "lam": [[i, j, numerator], ...]},
     "lower": {"denominator": D, "value": v, "f": [N], "gram": [[1], [2], ..., [N]]}}, ...]}
Every number is a numerator over the D beside it; "gram" is the lower triangle.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from theory.certificates.worst_case import N_MAX, Matrix, WorstCase
from theory.errors import InputError

SCHEMA = "staleproof-euclidean-worst-case/1"
SDP_DENOMINATOR = 10**10
DIGITS_MAX = 200
BYTES_MAX = 10**7
FOLDER = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True)
class Upper:
    """Multipliers: w of ||g_k||^2 (sum 1), mu of J_i, lam of I_ij, and the value they are said to prove."""

    value: Fraction
    w: tuple[Fraction, ...]
    mu: tuple[Fraction, ...]
    lam: dict[tuple[int, int], Fraction]


@dataclass(frozen=True)
class Lower:
    """An instance: function values over f_*, Gram matrix of the gradients, and the value it is said to reach."""

    value: Fraction
    f: tuple[Fraction, ...]
    gram: Matrix


@dataclass(frozen=True)
class Certificate:
    """What a file says about one problem. sdp: the values of the two solvers, own and PEPit."""

    problem: WorstCase
    upper: Upper
    lower: Lower
    sdp: tuple[Fraction, Fraction]


def _refuse(where: str, value: object, allowed: str) -> NoReturn:
    text = repr(value)
    raise InputError(f"{where}: {text if len(text) <= 60 else text[:57] + '...'} is not {allowed}")


def _whole(where: str, value: object, low: int | None = None, high: int | None = None) -> int:
    if type(value) is not int or (low is not None and value < low) or (high is not None and value > high):
        span = "" if low is None else f" from {low}" + ("" if high is None else f" to {high}")
        _refuse(where, value, f"a whole number{span}")
    if abs(value) >= 10**DIGITS_MAX:
        raise InputError(f"{where}: a number of more than {DIGITS_MAX} digits")
    return value


def _list(where: str, value: object, length: int | None = None) -> list[Any]:
    if type(value) is not list or (length is not None and len(value) != length):
        _refuse(where, value, "a list" if length is None else f"a list of {length}")
    return value


def _record(where: str, value: object, names: tuple[str, ...]) -> dict[str, Any]:
    if type(value) is not dict or set(value) != set(names):
        _refuse(where, sorted(value) if type(value) is dict else value, f"an object with {', '.join(names)}")
    return value


def _numbers(where: str, value: object, length: int, denominator: int) -> tuple[Fraction, ...]:
    items = _list(where, value, length)
    return tuple(Fraction(_whole(f"{where}[{i}]", item), denominator) for i, item in enumerate(items))


def _upper(where: str, value: object, n: int) -> Upper:
    record = _record(where, value, ("denominator", "value", "w", "mu", "lam"))
    D = _whole(f"{where}.denominator", record["denominator"], 1)
    lam: dict[tuple[int, int], Fraction] = {}
    for place, item in enumerate(_list(f"{where}.lam", record["lam"])):
        here = f"{where}.lam[{place}]"
        i, j, numerator = _list(here, item, 3)
        pair = (_whole(here, i, 0, n - 1), _whole(here, j, 0, n - 1))
        if pair[0] == pair[1] or pair in lam:
            _refuse(here, item, "a pair of two different indices, each pair once")
        lam[pair] = Fraction(_whole(here, numerator), D)
    return Upper(
        Fraction(_whole(f"{where}.value", record["value"]), D),
        _numbers(f"{where}.w", record["w"], n, D),
        _numbers(f"{where}.mu", record["mu"], n, D),
        lam,
    )


def _lower(where: str, value: object, n: int) -> Lower:
    record = _record(where, value, ("denominator", "value", "f", "gram"))
    D = _whole(f"{where}.denominator", record["denominator"], 1)
    rows = _list(f"{where}.gram", record["gram"], n)
    triangle = [_numbers(f"{where}.gram[{i}]", row, i + 1, D) for i, row in enumerate(rows)]
    gram = [[triangle[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
    return Lower(
        Fraction(_whole(f"{where}.value", record["value"]), D), _numbers(f"{where}.f", record["f"], n, D), gram
    )


def _no_float(text: str) -> NoReturn:
    raise InputError(f"number {text}: only whole numbers are allowed")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise InputError(f"an object names a field twice: {', '.join(name for name, _ in pairs)[:60]}")
    return record


def parse(text: str, where: str = "certificate file") -> list[Certificate]:
    """The certificates of a file's text. Raises InputError, one line, for whatever does not fit the schema."""
    try:
        data = json.loads(text, parse_float=_no_float, parse_constant=_no_float, object_pairs_hook=_unique)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON: {' '.join(str(error).split())[:100]}") from None
    record = _record(where, data, ("schema", "tau", "h", "certificates"))
    if record["schema"] != SCHEMA:
        _refuse(f"{where}: schema", record["schema"], repr(SCHEMA))
    tau = _whole(f"{where}: tau", record["tau"], 0, N_MAX)
    h = Fraction(*(_whole(f"{where}: h", part, 1) for part in _list(f"{where}: h", record["h"], 2)))
    found: list[Certificate] = []
    items = _list(f"{where}: certificates", record["certificates"])
    if not items:
        _refuse(f"{where}: certificates", items, "a list of at least one certificate")
    for place, item in enumerate(items):
        here = f"{where}: certificates[{place}]"
        fields = _record(here, item, ("N", "sdp", "upper", "lower"))
        n = _whole(f"{here}.N", fields["N"], 1, N_MAX)
        own, pep = _numbers(f"{here}.sdp", fields["sdp"], 2, SDP_DENOMINATOR)
        upper, lower = _upper(f"{here}.upper", fields["upper"], n), _lower(f"{here}.lower", fields["lower"], n)
        found.append(Certificate(WorstCase(tau, n, h), upper, lower, (own, pep)))
    return found


def read(path: Path) -> list[Certificate]:
    """The certificates of a file."""
    try:
        if path.stat().st_size > BYTES_MAX:
            raise InputError(f"{path.name}: larger than {BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path.name}: not UTF-8 text") from None
    return parse(text, path.name)
