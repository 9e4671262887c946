"""Every estimator that the theory names is there, in a file of its own."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from empirics.estimators import ESTIMATORS
from theory.registry import BOUNDS
from theory.symbols import QUANTITIES

FOLDER = Path(__file__).resolve().parents[3] / "empirics" / "estimators"
#: Modules that measure nothing by themselves.
TOOLS = {"__init__", "hessian", "krylov", "model_norm", "objective", "weights"}


def test_every_estimator_of_the_theory_is_there():
    """What a bound has stands among what its estimator measures; quantities inside proofs name who knows them."""
    in_bounds = {name for bound in BOUNDS.values() for name in bound.symbols}
    for quantity in QUANTITIES.values():
        if quantity.estimator is not None:
            assert quantity.estimator in ESTIMATORS, quantity.name
            if quantity.name in in_bounds:
                assert quantity.name in ESTIMATORS[quantity.estimator].measures, quantity.name


def test_one_file_an_estimator_and_no_file_without_one():
    modules = [estimator.module for estimator in ESTIMATORS.values()]
    assert len(set(modules)) == len(modules)
    assert {path.stem for path in FOLDER.glob("*.py")} - TOOLS == set(modules)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_says_what_it_measures(name):
    estimator = ESTIMATORS[name]
    module = importlib.import_module(f"empirics.estimators.{estimator.module}")
    assert module.__doc__ and len(module.__doc__.splitlines()[0]) > 20
    assert estimator.interval and estimator.cost
    for measured in estimator.measures:
        if measured in QUANTITIES:
            assert QUANTITIES[measured].estimator == name or measured == "L"  # L has two
