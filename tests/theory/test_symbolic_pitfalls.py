"""Pitfalls of symbolic formulas, over all bounds: forbidden branches, integer inputs, LaTeX of signs and names."""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
import pytest
import sympy as sp

from staleproof.statements import statement
from theory import BOUNDS, QUANTITIES, Bound, InputError
from theory.evaluation import latex_of
from theory.lmo import PATHWISE
from theory.symbols import symbols

GENERIC = dict(
    L=1.7, eta=0.02, alpha=0.3, tau=2, sigma=20.0, rho=1.4, Delta0=2.5, K=37, E0=1.1, dbar=0.8, Delta1=2.2, gamma=0.03
) | dict(S=3, M=41, H=4, delta_max=7, theta=1.6, G=1.3, B=2.1, mu=0.4, block_age=1.2)
GENERIC |= dict(s=5, b=0.2, r=0.7, r_lo=0.8, r_hi=1.1)
EDGES = dict(tau=[0, 1, 3], alpha=[0.3, 1.0], sigma=[0.0, 20.0], E0=[0.0, 1.1], s=[0, 2, 9], b=[0.3, 1.0], r=[0.0, 1.0])
EDGES |= dict(S=[1, 3], H=[1, 4], delta_max=[0, 7], block_age=[0.0, 1.2], K=[1, 37], dbar=[0.0, 0.8])
HORIZONS = ("K", "M")


def generic(bound: Bound) -> dict:
    return {name: GENERIC[name] for name in bound.symbols}


@pytest.mark.parametrize("name", list(BOUNDS))
def test_each_case_gives_what_its_branch_says(name):
    """Arrays that mix the cases equal loops over scalars of every type; warnings are errors."""
    bound, values = BOUNDS[name], generic(BOUNDS[name])
    edges = [symbol for symbol in EDGES if symbol in bound.symbols]
    points = []
    for first, second in itertools.combinations(edges, 2):
        points += [{first: a, second: b} for a in EDGES[first] for b in EDGES[second]]
    accepted, alone = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for point in points:
            try:
                alone.append(bound.evaluate(**values | point))
                accepted.append(point)
            except InputError as refused:  # a condition, or sigma = 0 where a tuned alpha divides by it
                assert "holds only" in str(refused) or "sigma=0" in str(refused), (point, str(refused))
        assert len(accepted) >= len(points) / 2
        columns = {symbol: [float((values | point)[symbol]) for point in accepted] for symbol in edges}
        mixed = bound.evaluate(**values | {symbol: np.array(column) for symbol, column in columns.items()})
        np.testing.assert_allclose(mixed, alone, rtol=1e-13, atol=0)
        for point, value in zip(accepted[::7], alone[::7], strict=True):
            as_numpy = {symbol: np.float64(number) for symbol, number in (values | point).items()}
            assert bound.evaluate(**as_numpy) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("name", list(BOUNDS))
def test_integers_are_floats(name):
    """Every integer symbol as int, numpy integers of all widths, and arrays; 0 and negatives are refused by name."""
    bound, values = BOUNDS[name], generic(BOUNDS[name])
    for symbol in bound.symbols:
        if not QUANTITIES[symbol].domain.integer:
            continue
        for number in (1, 2, 3):
            try:
                expected = bound.evaluate(**values | {symbol: float(number)})
            except InputError:
                continue
            for cast in (int, np.int8, np.int32, np.int64, np.uint64):
                assert bound.evaluate(**values | {symbol: cast(number)}) == pytest.approx(expected, rel=1e-12)
            column = bound.evaluate(**values | {symbol: np.full(3, number)})
            np.testing.assert_allclose(column, expected, rtol=1e-12)
        with pytest.raises(InputError, match=rf"{symbol}=-3 is not allowed"):
            bound.evaluate(**values | {symbol: -3})
        if symbol in HORIZONS:
            for far in (10**7, np.int64(10**7), 10**12, np.int64(10**12)):
                number = bound.evaluate(**values | {symbol: far})
                assert number == pytest.approx(bound.evaluate(**values | {symbol: float(far)}), rel=1e-12)
            with pytest.raises(InputError, match=rf"{symbol}=0 is not allowed"):
                bound.evaluate(**values | {symbol: 0})


def test_no_two_bounds_print_the_same():
    printed = [statement(bound).split("\\begin{aligned}")[1] for bound in BOUNDS.values()]
    assert len(set(printed)) == len(printed)
    assert len({bound.latex() for bound in BOUNDS.values()}) == len(BOUNDS)


def test_signs_and_parentheses():
    L, eta, E0, sigma = symbols("L eta E0 sigma")
    minus = latex_of(sp.Add(L, sp.Mul(-1, E0 + sigma, evaluate=False), evaluate=False))
    assert r"- \left(" in minus or minus.count("-") == 2
    product = latex_of(sp.Mul(L, -eta, evaluate=False))
    assert product != latex_of(L - eta) and (r"\left(" in product or product.startswith("-"))
    bound = Bound("x", "x", {"step": L * eta, "start": -E0}, "x", (), "x")
    assert bound.latex() == r"x \le L \eta + \left(- E_0\right)"
    for bound in BOUNDS.values():  # no term runs into its neighbour's sign
        assert not re.search(r"[+-]\s*[+-]", bound.latex().replace("{-", "{ -")), bound.name


def test_names_are_valid_latex_and_each_stands_once_in_the_legend():
    everyone = list(QUANTITIES.values())
    for quantity in everyone:
        assert not quantity.latex.startswith("_") and not quantity.latex.endswith(("_", "^", "\\"))
        assert not re.search(r"_\w*_", quantity.latex.replace(r"\_", "")) or "{" in quantity.latex
    for bound in BOUNDS.values():
        legend = bound.legend()
        assert len(legend) == len(bound.symbols) == len(set(bound.symbols))
        for name in bound.symbols:
            assert QUANTITIES[name].latex in statement(bound), (bound.name, name)


def test_constants_are_exact_and_print_as_such():
    """0.1 + 0.2, 1e-5, 12.34: no bound and no lemma holds a rounded number, so no digits are ever invented."""
    for thing in (*BOUNDS.values(), *PATHWISE.values()):
        assert not any(term.atoms(sp.Float) for term in thing.terms.values()), thing.name
    for bound in BOUNDS.values():
        assert not re.search(r"\d\.\d", bound.latex()), bound.name


def read_back(text: str, values: dict[str, float]) -> str:
    """Python arithmetic of the LaTeX that plain products, fractions and roots print as; written anew, not by sympy."""
    for command, mark in ((r"\frac", "\u00a7"), (r"\sqrt", "\u00b6"), (r"\left(", "("), (r"\right)", ")")):
        text = text.replace(command, mark)
    for name in sorted(values, key=lambda name: -len(QUANTITIES[name].latex)):
        text = text.replace(QUANTITIES[name].latex, chr(0xE000 + list(QUANTITIES).index(name)))
    for _ in range(9):  # from the innermost braces outwards
        text = re.sub(r"\u00a7\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", text)
        text = re.sub(r"\u00b6\{([^{}]*)\}", r"((\1)^(1/2))", text)
        text = re.sub(r"\^\{([^{}]*)\}", r"^(\1)", text)
    out, before = [], ""
    for token in re.findall(r"\d+|[()+\-/^]|[\ue000-\uf8ff]|\S", text):
        if before and (before.isalnum() or before == ")" or before >= "\ue000") and token not in ")+-/^":
            out.append("*")  # two operands side by side are a product
        value = values[list(QUANTITIES)[ord(token) - 0xE000]] if token >= "\ue000" else None
        out.append({"^": "**"}.get(token, token) if value is None else f"({float(value)!r})")
        before = token
    return "".join(out)


@pytest.mark.parametrize("name", ["delayed-lmo", "delayed-lmo-shifted", "delayed-lmo-inexact", "kovalev", "rpd-paper"])
def test_printed_terms_read_back_to_the_same_numbers(name):
    bound, values = BOUNDS[name], generic(BOUNDS[name])
    numbers = bound.evaluate_terms(**values)
    for term, text in bound.term_latex().items():
        python = read_back(text, values)
        assert set(python) <= set("0123456789.e+-*/() "), python
        assert eval(python, {"__builtins__": {}}) == pytest.approx(numbers[term], rel=1e-12), (term, text)
