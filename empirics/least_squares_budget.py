"""Error budgets of runs on matrix least squares, where every constant that a theorem names is exact.

Two problems: a random one, and f(X) = |X|_F^2/2 from far away, on which a step along an orthogonal factor changes the
gradient by L eta exactly, so that Lemma B is attained. `grid` has the settings that both are run with.
Checked by tests/empirics/test_budget.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from empirics.applicability import RunFacts
from empirics.budget import Constants, budget
from empirics.least_squares_run import record_run, recorder_of
from empirics.lmo_path import Setting
from empirics.problems.matrix_least_squares import MatrixLeastSquares
from empirics.reference_recording import reference_of
from theory.registry import BOUNDS

TAUS, ETAS, ALPHAS, SIGMAS = (0, 1, 2, 4), (0.01, 0.1, 1.0), (0.05, 0.3, 0.7, 1.0), (0.0, 0.3, 3.0)
#: Start of the round problem: so far that no step of a short run passes the minimum.
FAR = np.full((3, 4), 40.0) + 20 * np.eye(3, 4)


def round_problem() -> MatrixLeastSquares:
    """f(X) = |X|_F^2/2 on 3 x 4 matrices."""
    return MatrixLeastSquares(np.eye(3), np.eye(4), np.zeros((3, 4)))


def grid(
    steps: int, taus: Sequence[int] = TAUS, sigmas: Sequence[float] = SIGMAS, most: int | None = None
) -> list[Setting]:
    """Delays x step sizes x momenta x noise levels, or `most` of them evenly spaced."""
    every = [
        Setting(f"delay {tau}, eta {eta:g}, alpha {alpha:g}, sigma {sigma:g}", tau, eta, alpha, steps, sigma)
        for tau, eta, alpha, sigma in itertools.product(taus, ETAS, ALPHAS, sigmas)
    ]
    if most is None or most >= len(every):
        return every
    return [every[i] for i in np.linspace(0, len(every) - 1, most).astype(int)]


def facts_of_setting(setting: Setting) -> RunFacts:
    """What a theorem may ask of such a run."""
    group = {"norm": setting.norm, "polar": "exact", "nesterov": setting.nesterov}
    group |= {"lr": setting.eta, "alpha": setting.alpha}
    return RunFacts("LMO", (group,), frozenset([setting.tau]), setting.correction, setting.form)


def constants_of_setting(problem: MatrixLeastSquares, setting: Setting) -> Constants:
    """L, sigma and f_*, all exact."""
    values = {"L": problem.L(setting.norm), "sigma": setting.sigma, "f_star": problem.f_star}
    return Constants(values, {name: "exact, from the problem" for name in values}, frozenset(values))


def budget_of_setting(
    theorem: str,
    problem: MatrixLeastSquares,
    setting: Setting,
    x0: np.ndarray | None = None,
    planted: int = 0,
    seed: int = 0,
    series: bool = False,
    reference: int | None = None,
) -> dict[str, Any]:
    """Run and take apart; planted: so many steps of delay more in the data than the budget is told of; reference: s
    of a theorem that has one, its best choice where None.

    Raises InputError for a theorem that cannot be taken apart.
    """
    noise = problem.noise(setting.sigma, setting.updates, seed)
    data = replace(setting, tau=setting.tau + planted)
    facts, constants = facts_of_setting(setting), constants_of_setting(problem, setting)
    s = reference_of([BOUNDS[theorem]], facts) if reference is None and theorem in BOUNDS else reference
    recorder = record_run(problem, data, noise, x0, recorder=recorder_of(problem, setting, reference=s))
    return budget(theorem, recorder, facts, constants, series=series)
