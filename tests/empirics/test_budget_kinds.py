"""Which rows of a budget can fail: arbitrary vectors, of no method at all, break all but those that cannot."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from empirics.applicability import RunFacts
from empirics.budget import OWN, Constants, budget
from empirics.budget_editions import Editions
from empirics.budget_kinds import (
    BY_CONSTRUCTION,
    CERTIFIED,
    DEFINED,
    DEFINITION,
    EQUALITY,
    OF_ANY_VECTORS,
    counts,
    is_evidence,
    kind_of,
    refuted,
    statement,
)
from empirics.budget_steps import Scales, facts_of, use
from empirics.least_squares_budget import budget_of_setting, facts_of_setting
from empirics.least_squares_run import NAME, record_run, recorder_of
from empirics.lmo_path import Setting
from empirics.problems.matrix_least_squares import random_problem
from empirics.reference_recording import reference_of
from theory.proofs import PROOFS
from theory.registry import get_bound

PROBLEM = random_problem(3, 4, seed=1)


def arbitrary(theorem: str, seed: int) -> dict[str, int]:
    """Statement -> steps at which it fails on vectors drawn at random: weights, gradients, momenta, updates."""
    rng = np.random.default_rng(seed)
    corrected = theorem.startswith("error-feedback")
    tau = 1 if theorem in ("error-feedback", "error-feedback-at-x") else 2
    correction = "error-feedback" if corrected else "none"
    setting = Setting("arbitrary", tau, 0.1, 0.3, 9, 0.0, correction, nesterov="nesterov" in theorem)
    reference = reference_of([get_bound(theorem)], facts_of_setting(setting))
    recorder = recorder_of(PROBLEM, setting, reference=reference)

    def draw(scale: float = 1.0) -> dict[str, torch.Tensor]:
        return {NAME: torch.from_numpy(scale * rng.standard_normal((3, 4)))}

    x = draw()
    for k in range(setting.updates):
        update = draw(rng.uniform(0, 5))
        x_next = draw() if corrected else {NAME: x[NAME] + update[NAME]}
        recorder.observe(k, x, x_next, draw(), draw(), update, draw(3.0))
        x = x_next
    recorder.flush()
    run = Editions(get_bound(theorem), recorder, RunFacts("LMO", ({},), frozenset([tau])), Constants())
    # No extreme and no L of these vectors: too small an L, and oracles that are as good as none.
    values = run.columns | run.numbers | {"L": 1e-3, "r_lo": 1.0, "r_hi": 1.0, "longest_step": 0.1}
    scales = Scales(run.f_scale, run.grad_scale, run.x_scale, recorder.eta)
    used = [(fact, use(fact, values, scales)) for fact in facts_of(PROOFS[theorem])]
    return {statement(fact.relation): u.violations for fact, u in used if u is not None}


def test_what_cannot_fail_is_what_arbitrary_vectors_fulfil():
    relations, broken, seen = {}, set(), set()
    for theorem in OWN:
        relations |= {statement(fact.relation): fact.relation for fact in facts_of(PROOFS[theorem])}
        for seed in range(2):
            found = arbitrary(theorem, seed)
            seen |= set(found)
            broken |= {name for name, violations in found.items() if violations}
    unbroken = seen - broken - {"longest_step == eta*r_hi"}
    equalities = {name for name in seen if "==" in name and str(relations[name].left) in DEFINED}
    assert unbroken == (equalities - {"longest_step == eta*r_hi"}) | OF_ANY_VECTORS
    assert {str(relations[name].left) for name in equalities} == DEFINED  # none that no proof has
    kinds = {name: kind_of(relation, True) for name, relation in relations.items()}
    assert all(kinds[name] == EQUALITY for name in broken if "==" in name)
    assert all(is_evidence(relations[name], kinds[name]) for name in broken if kinds[name] in (EQUALITY, CERTIFIED))
    assert not any(is_evidence(relations[name], kinds[name]) for name in unbroken)


def test_kinds_where_L_is_exact_and_where_the_run_has_told_it():
    by = {(fact.name, exact): kind_of(fact.relation, exact)
          for theorem in ("delayed-lmo", "delayed-lmo-inexact")
          for fact in facts_of(PROOFS[theorem]) for exact in (True, False)}  # fmt: skip
    assert by["delay", True] == by["descent", True] == CERTIFIED
    assert by["delay", False] == by["smoothness bias", False] == by["average", False] == BY_CONSTRUCTION
    for name in ("lmo_norm", "one step more", "j steps", "norm_ratio", "error and noise", "recursion in norms"):
        assert by[name, True] == by[name, False] == CERTIFIED, name
    for name in ("inexact_norm", "inexact_value"):  # r_lo and r_hi are the run's own
        assert by[name, True] == BY_CONSTRUCTION, name
    for name in ("fixed_delay", "lmo_value", "first error in norms"):
        assert by[name, False] == EQUALITY, name
    for name in ("length of the step", "objective_along_step", "gradient along the direction"):
        assert by[name, True] == DEFINITION, name


@pytest.mark.parametrize("exact", [True, False])
def test_a_budget_says_how_many_rows_are_evidence(exact):
    setting = Setting("run", 2, 0.1, 0.3, 12, 0.3)
    if exact:
        found = budget_of_setting("delayed-lmo", PROBLEM, setting)
    else:
        recorder = record_run(PROBLEM, setting, PROBLEM.noise(0.3, 12, 0))
        found = budget("delayed-lmo", recorder, facts_of_setting(setting))
    rows, told = found["inequalities"], found["counts"]
    assert told == counts(rows) and told["rows"] == len(rows) == sum(told[kind] for kind in
        (CERTIFIED, EQUALITY, BY_CONSTRUCTION, DEFINITION))  # fmt: skip
    assert told["evidence"] == sum(i["kind"] in (CERTIFIED, EQUALITY) for i in rows) - sum(
        i["statement"] in OF_ANY_VECTORS for i in rows
    )
    assert (told[BY_CONSTRUCTION] == 0) == exact and told["evidence"] >= (20 if exact else 7)


@pytest.mark.mutation
def test_what_gates_is_certified_or_an_equality_that_is_no_definition():
    kinds = (CERTIFIED, EQUALITY, BY_CONSTRUCTION, DEFINITION)
    rows = [{"place": kind, "kind": kind, "violations": 1} for kind in kinds]
    assert refuted(rows) == [CERTIFIED, EQUALITY]
    assert refuted([row | {"violations": 0} for row in rows]) == []
