"""Certified worst cases beside the bounds of delayed gradient descent: `python -m theory.certificates.table`.

Kind: report of certified numbers. The share V/bound says how much of the bound is reached by some function; the
growth of 1/V in N, against the growth of 1/bound, says the same for long runs.
Tests: tests/theory/test_certificates_table.py (the table in docs/tightness.md is this one).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from theory.bound import Bound
from theory.certificates.check import check_all
from theory.delays.exact import evaluate
from theory.euclidean import delayed_gd, delayed_gd_two_sided

BOUNDS = (delayed_gd.BOUND, delayed_gd.FINITE, delayed_gd_two_sided.BOUND)


@dataclass(frozen=True)
class Row:
    """One certified problem. bounds: those of BOUNDS in units of L Delta0, None outside their condition."""

    tau: int
    N: int
    h: Fraction
    lower: Fraction
    upper: Fraction
    bounds: tuple[Fraction | None, ...]


def bound_value(bound: Bound, tau: int, N: int, h: Fraction) -> Fraction | None:
    """A bound of delayed gradient descent at L = Delta0 = 1, exactly; None where its condition fails."""
    values = {"gamma": h, "L": Fraction(1), "tau": Fraction(tau), "K": Fraction(N), "Delta0": Fraction(1)}
    if not all(evaluate(condition, **values) for condition in bound.conditions):
        return None
    return Fraction(evaluate(bound.expression, **values))


def rows(taus: range = range(5)) -> list[Row]:
    """Every shipped certificate that is proved, for every delay that it serves, by tau, h and N."""
    found: list[Row] = []
    shipped = [result for result in check_all() if result.proved]
    steps = {tau: {r.certificate.problem.h for r in shipped if r.certificate.problem.tau == tau} for tau in taus}
    for result in shipped:
        problem = result.certificate.problem
        for tau in taus:
            # a delay beyond N - 2 is the delay N - 2; a step only where longer runs have it too
            serves = tau == problem.tau or (tau > problem.tau == max(problem.N - 2, 0))
            if serves and problem.h in steps[tau]:
                values = tuple(bound_value(bound, tau, problem.N, problem.h) for bound in BOUNDS)
                lower, upper = result.certificate.lower.value, result.certificate.upper.value
                found.append(Row(tau, problem.N, problem.h, lower, upper, values))
    return sorted(found, key=lambda row: (row.tau, row.h, row.N))


def digits(value: Fraction, places: int = 4) -> str:
    """Rounded to the nearest: the certified interval is far narrower than the last digit."""
    return f"{float(value):.{places}f}"


def _grid(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown(found: list[Row] | None = None) -> str:
    """Three tables: all delays at h = 1/2; bounds at the largest N, and the share V/bound; growth from N - 1 to N."""
    table = {(row.tau, row.h, row.N): row for row in (rows() if found is None else found)}
    half = Fraction(1, 2)
    counts = sorted({N for _, h, N in table if h == half})
    taus = sorted({tau for tau, _, _ in table})
    first = _grid(
        ["N", *(f"tau = {tau}" for tau in taus)],
        [[str(N), *(digits(table[tau, half, N].upper) for tau in taus)] for N in counts],
    )
    last = counts[-1]
    body, growth = [], []
    for tau, h in sorted({(tau, h) for tau, h, N in table if N == last}):
        row, before = table[tau, h, last], table[tau, h, last - 1]
        shares, slopes = [], [digits(1 / row.upper - 1 / before.upper)]
        for value, earlier in zip(row.bounds, before.bounds, strict=True):
            if value is None or earlier is None:
                shares += ["outside", "outside"]
                slopes.append("outside")
            else:
                shares += [digits(value), digits(row.upper / value)]
                slopes.append(digits(1 / value - 1 / earlier))
        body.append([str(tau), str(h), digits(row.upper), *shares])
        growth.append([str(tau), str(h), *slopes])
    names = [bound.name for bound in BOUNDS]
    second = _grid(["tau", "h", f"V(tau, {last}, h)", *(part for name in names for part in (name, "share"))], body)
    third = _grid(["tau", "h", "1/V", *names], growth)
    return f"{first}\n\n{second}\n\n{third}\n"


if __name__ == "__main__":
    print(markdown(), end="")
