"""The table: rows against the modules, and the document against the table."""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy as sp

from theory import BOUNDS
from theory.errors import InputError
from theory.tightness import markdown, table
from theory.tightness.table import DELAYS, METRICS, NORMS, lower, upper

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "tightness.md"


def test_rows():
    rows = table()
    assert len(rows) == len(NORMS) * len(METRICS) * len(DELAYS)
    half = sp.Rational(1, 2)
    for row in rows:
        assert 0 < row.lower <= row.upper == row.tau + half
        assert row.theorem_1 in (None, 2 * row.tau + half)
        assert (row.theorem_1 is not None) == (row.metric == METRICS[0])
    value = {(row.norm, row.metric, row.tau): row for row in rows}
    for tau in DELAYS:
        for metric in METRICS:
            assert value["l_1", metric, tau].ratio == 1
            every = [value[norm, metric, tau].lower for norm in NORMS]
            assert all(float(bound) >= float(every[0]) for bound in every)  # one dimension is in every norm
            assert float(value["operator", metric, tau].lower) >= float(value["sign", metric, tau].lower)
        assert value["any", METRICS[2], tau].lower == half
    for norm in ("sign", "operator"):
        assert value[norm, METRICS[0], 1].ratio == value[norm, METRICS[2], 1].ratio == 1


def test_document_holds_the_table():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert markdown() in text
    assert markdown().replace("1.5000 (1.000)", "1.0000 (0.667)", 1) not in text


def rows_of(section: str) -> dict[str, list[str]]:
    """First cell -> the others, of every row that begins with a name in backticks."""
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0].strip("`"): row[1:] for row in rows}


def test_every_bound_has_a_row():
    section = DOCUMENT.read_text(encoding="utf-8").split("## Every bound\n")[1].split("\n## ")[0]
    rows = rows_of(section)
    assert set(rows) == set(BOUNDS) and all(row[-1] for row in rows.values())
    values = dict(L=1, eta=1, alpha=1, sigma=0, rho=1, Delta0=0, Delta1=0, E0=0, K=10**9, r_lo=1, r_hi=1)
    stated = {name: row[0] for name, row in rows.items() if len(row) == 2 and row[0] != "-"}
    assert len(stated) > 20
    for name, text in stated.items():
        for tau, dbar in ((1, 0.3), (2, 1.0), (5, 2.0)):
            here = {k: v for k, v in {**values, "tau": tau, "dbar": dbar}.items() if k in BOUNDS[name].symbols}
            product = text.replace("2 tau", "2*tau").replace("2 dbar", "2*dbar")
            expected = float(sp.sympify(product).subs({"tau": tau, "dbar": dbar}))
            assert BOUNDS[name].evaluate(**here) == pytest.approx(expected, rel=1e-6), (name, tau)


def test_bad_input():
    for call in (lambda: upper("median", 1), lambda: lower("l_3", METRICS[0], 1), lambda: lower("l_1", METRICS[0], -1)):
        with pytest.raises(InputError):
            call()
