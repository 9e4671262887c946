"""The first witness: the same worst case by PEPit (extra `proofs`), which forms the program by itself."""

from __future__ import annotations

from theory.certificates.worst_case import WorstCase
from theory.errors import InputError


def pep_value(problem: WorstCase) -> float:
    """The worst case by PEPit with Clarabel.

    f_* is a lower bound, not a stationary point: f_* = 0 and f_k >= ||g_k||^2/2 for every k. PEPit's
    `stationary_point` alone would not keep f above f_*.
    """
    try:
        from PEPit import PEP
        from PEPit.functions import SmoothFunction
    except ImportError:
        raise InputError("certificates: the first witness needs pepit (pip install '.[proofs]')") from None
    pep = PEP()
    function = pep.declare_function(SmoothFunction, L=1)
    x, h = [pep.set_initial_point()], float(problem.h)
    oracles = []
    for k in range(problem.N):
        g, f = function.oracle(x[k])
        oracles.append(g)
        if k == 0:
            pep.set_initial_condition(f <= 1)
        pep.add_constraint(f >= g**2 / 2)
        pep.set_performance_metric(g**2)
        x.append(x[k] - h * oracles[max(k - problem.tau, 0)])
    return float(pep.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0))
