"""The problems whose worst cases are certified: what is made, and what a complete set must hold.

Standard library only. Tests: tests/theory/test_certificates.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from theory.certificates.worst_case import WorstCase

HALF = Fraction(1, 2)
# The largest fraction of small denominator with h + (tau h)^2 <= 1: the edge of the bound's condition.
EDGE = {0: Fraction(1), 1: Fraction(8, 13), 2: Fraction(16, 41), 3: Fraction(11, 39), 4: Fraction(15, 68)}


def problems() -> list[WorstCase]:
    """What is shipped: h = 1/2 and the edge to N = 12, h = 1/4 and 3/4 to N = 5."""
    wanted = [WorstCase(tau, N, HALF) for tau in range(5) for N in range(1, 13)]
    wanted += [WorstCase(tau, N, EDGE[tau]) for tau in range(5) for N in range(2, 13)]
    wanted += [WorstCase(tau, N, Fraction(q, 4)) for q in (1, 3) for tau in range(3) for N in range(2, 6)]
    return sorted({problem.same for problem in wanted}, key=lambda p: (p.tau, p.h, p.N))


def missing(found: Iterable[WorstCase]) -> list[str]:
    """Names of the problems that are wanted and not among those found."""
    there = set(found)
    return [f"tau={p.tau} N={p.N} h={p.h}" for p in problems() if p not in there]
