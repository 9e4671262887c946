"""Whatever an estimator measures is printed by `staleproof estimate`, or there is a place where it is to be had."""

from __future__ import annotations

import importlib
import re

from empirics.budget_names import check_has_budget
from empirics.elsewhere import ELSEWHERE
from empirics.estimators import ESTIMATORS
from empirics.least_squares_run import record_run
from empirics.pathwise import Setting
from empirics.problem_constants import NAMES
from empirics.problems.matrix_least_squares import random_problem
from empirics.run_constants import NAMES as OF_RUNS


def test_every_measured_name_has_a_place():
    measured = {name for estimator in ESTIMATORS.values() for name in estimator.measures}
    assert measured <= {*NAMES, *OF_RUNS, *ELSEWHERE}
    assert set(ELSEWHERE) <= measured and not set(ELSEWHERE) & {*NAMES, *OF_RUNS}


def test_the_places_exist():
    problem = random_problem(3, 4, 0)
    setting = Setting("corrected", 1, 0.1, 0.2, 6, 0.1, "error-feedback")
    recorder = record_run(problem, setting, problem.noise(0.1, setting.K + 1, 0))
    for name, place in ELSEWHERE.items():
        if (theorem := re.fullmatch(r"staleproof budget RUN --theorem (\S+)", place)) is not None:
            check_has_budget(theorem[1])
            continue
        module, _, attribute = place.split(", ")[0].rpartition(".")
        assert hasattr(importlib.import_module(module), attribute)
        if "rows.column" in place:
            assert f"rows.column({name!r})" in place and len(recorder.rows.column(name)) > 0
            assert name in recorder.rows.totals
