"""Cases that exhaust what the symbols can be: substitutions by which minima and differences lose their signs."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from theory.symbols import symbols

COUNTED = sp.Symbol("i", integer=True, nonnegative=True)
SUMMED = sp.Symbol("n_", integer=True, nonnegative=True)
COUNTED_TOO = sp.Symbol("j_", integer=True, nonnegative=True)


def split() -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
    """The later steps k > 0 in two cases: k <= tau, and k > tau."""
    k, tau = symbols("k tau")
    early = {tau: COUNTED + COUNTED_TOO + 1, k: COUNTED + 1}
    return early, {k: tau + COUNTED + 1}


def split_along() -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
    """The later steps k > 0 with s > 0 in two cases: s <= tau, and s > tau."""
    k, tau, s = symbols("k tau s")
    early = {k: COUNTED + 1, s: COUNTED_TOO + 1, tau: COUNTED_TOO + SUMMED + 1}
    return early, {k: COUNTED + 1, s: tau + COUNTED_TOO + 1}


def split_sum() -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
    """The step from a sum of n to one of n + 1 terms in two cases: n < tau, and n >= tau."""
    tau = symbols("tau")[0]
    return {tau: SUMMED + COUNTED + 1}, {SUMMED: tau + COUNTED}


def split_run() -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
    """All runs of K steps in two cases: K <= tau, and K > tau."""
    tau, K = symbols("tau K")
    return {tau: K + COUNTED}, {K: tau + COUNTED + 1}


def from_one() -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
    """All steps k >= 1: those at which the virtual iterate of error feedback is looked at."""
    return ({symbols("k")[0]: COUNTED + 1},)


def split_all() -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
    """All steps k >= 0 in two cases: k <= tau, and k > tau."""
    k, tau = symbols("k tau")
    return {tau: k + COUNTED}, {k: tau + COUNTED + 1}


def split_reference() -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
    """All references s >= 0 in two cases: s <= tau, and s > tau."""
    tau, s = symbols("tau s")
    return {tau: s + COUNTED}, {s: tau + COUNTED + 1}


def split_between() -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
    """All steps k >= 0 and references s >= 0 in six cases: the orders of k, s and tau."""
    k, tau, s = symbols("k tau s")
    orders = []
    for low, high, more in ((s, tau, 0), (tau, s, 1)):
        orders += [
            {low: k + COUNTED, high: k + COUNTED + COUNTED_TOO + more},
            {k: low + COUNTED + 1, high: low + COUNTED + 1 + COUNTED_TOO},
            {high: low + COUNTED + more, k: low + COUNTED + more + COUNTED_TOO + 1},
        ]
    return tuple(orders)


def split_since() -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
    """All steps of LocalSGD in two cases: right after an average, and later."""
    since = symbols("since")[0]
    return {since: sp.Integer(0)}, {since: COUNTED + 1}


def split_delay() -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
    """All delays in two cases: none, and one or more."""
    tau = symbols("tau")[0]
    return {tau: sp.Integer(0)}, {tau: COUNTED + 1}


def split_round() -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
    """All walks of j steps in two cases: j < H, and j >= H."""
    j, H = symbols("j H")
    return {H: j + COUNTED + 1}, {j: H + COUNTED}


# what exhausts all steps, runs and references; theory.genuine says where the others are allowed
RUNS = (split_all(), split_run(), split_reference(), split_between())
# the same for steps and walks between two averages, and for delays
ROUNDS = (split_since(), split_round(), split_delay())
