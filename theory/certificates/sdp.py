"""The worst case as an own semidefinite program (cvxpy and Clarabel, extra `proofs`), from the inequalities alone.

`solve` returns the multipliers of the dual; `interior` and `interior_instance` return points with a margin from
every constraint, at a value that is worse by a given factor: these survive rounding to fractions. Nothing here is
trusted: theory.certificates.check decides with fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from theory.certificates.worst_case import WorstCase
from theory.errors import InputError

CLARABEL = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 500}


def cvxpy() -> Any:
    """The module, or one line that says how to get it."""
    try:
        import cvxpy as module
    except ImportError:
        raise InputError("certificates: making them needs cvxpy and clarabel (pip install '.[proofs]')") from None
    return module


@dataclass(frozen=True)
class Multipliers:
    """lam[i, j] of I_ij, mu[i] of J_i, w[k] of ||g_k||^2, and the value sum(mu)."""

    value: float
    lam: np.ndarray  # (N, N), diagonal zero
    mu: np.ndarray  # (N,)
    w: np.ndarray  # (N,)


@dataclass(frozen=True)
class Instance:
    """Function values over f_* and Gram matrix of the gradients, and the value min_k gram[k, k]."""

    value: float
    f: np.ndarray  # (N,)
    gram: np.ndarray  # (N, N)


def _forms(problem: WorstCase) -> np.ndarray:
    """Q of I_ij by row (i N + j), flattened: (N^2, N^2)."""
    n = problem.N
    forms = np.zeros((n * n, n * n))
    for i in range(n):
        for j in range(n):
            if i != j:
                forms[i * n + j] = np.array(problem.quadratic({(i, j): Fraction(1)}), dtype=float).ravel()
    return forms


def _run(problem: Any) -> None:
    import warnings

    with warnings.catch_warnings():  # "may be inaccurate": the exact check decides
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL", **CLARABEL)
    if problem.status not in ("optimal", "optimal_inaccurate"):
        raise RuntimeError(f"Clarabel: {problem.status}")


def _dual(problem: WorstCase, value: float | None, support: np.ndarray | None) -> Multipliers:
    cp, n = cvxpy(), problem.N
    lam, mu, w = cp.Variable(n * n), cp.Variable(n), cp.Variable(n)
    bound, margin = cp.Variable(), cp.Variable()
    free = ~np.eye(n, dtype=bool) if support is None else support
    flat = free.ravel()
    into, out = np.kron(np.ones((1, n)), np.eye(n)), np.kron(np.eye(n), np.ones((1, n)))
    # f_i: bound [i = 0] = sum_j lam_ij - sum_j lam_ji + mu_i; z' rest z = what the multipliers leave over.
    left = cp.reshape(_forms(problem).T @ lam, (n, n), order="C") + cp.diag(mu / 2 - w)
    rest = (left + left.T) / 2
    constraints = [
        bound * np.eye(n)[0] == (out - into) @ lam + mu,
        cp.sum(w) == 1,
        rest >> margin * np.eye(n),
        mu >= margin,
        w >= margin,
        lam[np.flatnonzero(~flat)] == 0,
    ]
    if flat.any():
        constraints.append(lam[np.flatnonzero(flat)] >= margin)
    if value is None:
        goal = cp.Minimize(bound)
        constraints.append(margin == 0)
    else:
        goal = cp.Maximize(margin)
        constraints.append(bound == value)
    _run(cp.Problem(goal, constraints))
    return Multipliers(float(bound.value), lam.value.reshape(n, n), mu.value, w.value)


def solve(problem: WorstCase, support: np.ndarray | None = None) -> Multipliers:
    """The best upper bound. support: the pairs (i, j) that may be used; all if not given."""
    return _dual(problem, None, support)


def interior(problem: WorstCase, value: float, support: np.ndarray | None = None) -> Multipliers:
    """Multipliers that prove `value`, as far from every constraint as possible."""
    return _dual(problem, value, support)


def interior_instance(problem: WorstCase, value: float) -> Instance:
    """An instance with min_k ||g_k||^2 >= value, as far from every constraint as possible."""
    cp, n = cvxpy(), problem.N
    gram, f, margin = cp.Variable((n, n), symmetric=True), cp.Variable(n), cp.Variable()
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    constraints = [gram >> margin * np.eye(n), f[0] == 1, cp.diag(gram) >= value, f - cp.diag(gram) / 2 >= margin]
    if pairs:
        rows = [i * n + j for i, j in pairs]
        difference = f[[i for i, _ in pairs]] - f[[j for _, j in pairs]]
        constraints.append(difference - _forms(problem)[rows] @ cp.vec(gram, order="C") >= margin)
    _run(cp.Problem(cp.Maximize(margin), constraints))
    return Instance(float(np.diag(gram.value).min()), f.value, gram.value)
