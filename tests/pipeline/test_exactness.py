"""Runs on real processes equal the oracle bit for bit: every pair of settings by default, the full product if asked.

A case is one value of each factor: S, m, schedule with its options, optimizer, recomputation, dropout, correction. What
is not allowed together is what TrainConfig refuses, and a policy for few microbatches where there are enough.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import pytest

from pipeline.errors import InputError
from pipeline.models.gpt import GPTConfig
from pipeline.optim import OPTIMIZERS
from pipeline.oracle import largest_difference
from pipeline.training import TrainConfig, train, train_oracle

pytestmark = pytest.mark.processes

BASIC = ("sgd", "adamw", "muon", "lmo")
MORE = tuple(name for name in OPTIMIZERS if name not in BASIC)
TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))
STEPS = 5
#: Name, policy, delay beyond the least (None: the schedule has no such option).
PLANS = (
    ("gpipe", "refuse", None),
    ("1f1b", "refuse", None),
    ("pipedream", "refuse", None),
    ("pipedream-vertical-sync", "refuse", None),
    ("pipedream-2bw", "refuse", None),
    ("pipedream-2bw", "stall", None),
    ("pipedream-2bw", "uniform", None),
    ("uniform", "refuse", 0),
    ("uniform", "refuse", 2),
)


class Case(NamedTuple):
    S: int
    m: int
    plan: tuple[str, str, int | None]
    optimizer: str
    recompute: bool
    dropout: float
    correction: str

    @property
    def config(self) -> TrainConfig:
        name, policy, more = self.plan
        return TrainConfig(
            schedule=name,
            stages=self.S,
            microbatches=self.m,
            policy=policy,
            tau=None if more is None else -(-(self.S - 1) // self.m) + more,
            sequences=2,
            steps=STEPS,
            optimizer=self.optimizer,
            correction=self.correction,
            dtype="float64",
            model=GPTConfig(layers=2, width=16, heads=2, context=16, dropout=self.dropout),
            recompute=self.recompute,
            snapshot_every=1,
        )

    def __str__(self) -> str:
        name, policy, more = self.plan
        words = [f"S{self.S}", f"m{self.m}", name, self.optimizer]
        words += [policy] * (policy != "refuse") + [f"tau+{more}"] * bool(more)
        words += ["recompute"] * self.recompute + ["dropout"] * (self.dropout > 0) + [self.correction[:5]]
        return "-".join(words)


@functools.cache
def allowed(S: int, m: int, plan: tuple[str, str, int | None], correction: str) -> bool:
    if plan[1] != "refuse" and m >= S - 1:
        return False
    try:
        return bool(Case(S, m, plan, "sgd", False, 0.0, correction).config)
    except InputError:
        return False


def everything() -> list[Case]:
    """The full product of what is allowed together."""
    found = []
    for S in (1, 2, 4):
        # 1, S - 1, S and 2 S; with two microbatches S = 4 is short of S - 1 without being at 1.
        for m, plan, correction in product(sorted({1, 2, S - 1, S, 2 * S} - {0}), PLANS, ("none", "error-feedback")):
            if allowed(S, m, plan, correction):
                rest = product(BASIC, (False, True), (0.0, 0.3))
                found += [Case(S, m, plan, *values, correction) for values in rest]
    return found


def pairs(case: Sequence[Any]) -> set[tuple[int, Any, int, Any]]:
    """Every two factors of a case with their values."""
    return {(a, case[a], b, case[b]) for a, b in combinations(range(len(case)), 2)}


def pairwise_cover(cases: Sequence[Any]) -> list[Any]:
    """Few of ``cases`` that contain every pair that any of them contains: in turn the one with most that are new."""
    bit = {pair: 1 << i for i, pair in enumerate(sorted({p for case in cases for p in pairs(case)}, key=repr))}
    masks = [sum(bit[pair] for pair in pairs(case)) for case in cases]
    left, chosen = (1 << len(bit)) - 1, []
    while left:
        best = max(range(len(cases)), key=lambda i: ((masks[i] & left).bit_count(), -i))
        chosen.append(cases[best])
        left &= ~masks[best]
    return chosen


ALL = everything()
COVER = sorted(pairwise_cover(ALL), key=str)
#: Combinations of three and more that are run every time too.
ALWAYS = [
    Case(2, m, (schedule, "refuse", None), optimizer, False, 0.0, correction)
    for schedule, m, optimizer, correction in (
        ("1f1b", 1, "sgd", "none"),
        ("1f1b", 4, "adamw", "none"),
        ("gpipe", 4, "adamw", "none"),
        ("pipedream", 1, "muon", "none"),
        ("pipedream", 2, "adamw", "none"),
        ("pipedream-vertical-sync", 1, "adamw", "none"),
        ("pipedream-vertical-sync", 1, "sgd", "error-feedback"),
        ("pipedream-2bw", 1, "adamw", "none"),
        ("pipedream-2bw", 2, "lmo", "none"),
        ("pipedream-2bw", 2, "muon", "error-feedback"),
        ("pipedream-2bw", 2, "adamw", "error-feedback"),
        ("pipedream-2bw", 4, "sgd", "error-feedback"),
    )
]


def check(case: Case, pool: Any) -> None:
    engine, oracle = train(case.config, TEXT, pool), train_oracle(case.config, TEXT)
    assert sorted(engine.snapshots) == list(range(1, STEPS + 1)), case
    assert largest_difference(engine.snapshots, oracle.snapshots) == (0.0, ""), case
    assert engine.losses == oracle.losses, case
    assert (engine.input_digest, engine.target_digest) == (oracle.input_digest, oracle.target_digest), case


@pytest.mark.parametrize("case", COVER + [case for case in ALWAYS if case not in COVER], ids=str)
def test_every_pair_of_settings_equals_the_oracle(workers, case):
    check(case, workers(case.S))


@pytest.mark.parametrize(("name", "S"), [*((name, 2) for name in MORE), ("soap", 4)])
def test_every_other_optimizer_equals_the_oracle(workers, name, S):
    check(Case(S, max(2, S - 1), ("pipedream-2bw", "refuse", None), name, False, 0.0, "error-feedback"), workers(S))


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_every_other_optimizer_in_every_plan_equals_the_oracle(workers, name):
    for S, plan, correction in product((2, 4), PLANS, ("none", "error-feedback")):
        for m in (1, S):
            if allowed(S, m, plan, correction):
                check(Case(S, m, plan, name, False, 0.3, correction), workers(S))


@pytest.mark.slow
@pytest.mark.parametrize("S", [1, 2, 4])
def test_every_combination_equals_the_oracle(workers, S):
    cases = [case for case in ALL if case.S == S]
    assert len(cases) > 300
    for case in cases:
        check(case, workers(S))


def test_the_cover_has_every_allowed_pair():
    wanted = {pair for case in ALL for pair in pairs(case)}
    assert {pair for case in COVER for pair in pairs(case)} == wanted
    assert len(COVER) < len(ALL) / 20
    assert pairwise_cover(ALL) == pairwise_cover(ALL)
    assert len(set(COVER)) == len(COVER)
    assert set(ALWAYS) <= set(ALL)


def test_a_cover_leaves_out_what_brings_no_new_pair():
    cases = list(product((0, 1), (0, 1), (0, 1)))
    cover = pairwise_cover(cases)
    assert len(cover) < len(cases)
    assert all(
        any((c[a], c[b]) == values for c in cover)
        for a, b in ((0, 1), (0, 2), (1, 2))
        for values in product((0, 1), (0, 1))
    )
    assert pairwise_cover([]) == []


def test_the_grid_has_every_value_of_every_factor():
    values = [set(column) for column in zip(*ALL, strict=True)]
    assert values[0] == {1, 2, 4}
    assert values[1] == {1, 2, 3, 4, 8}
    assert values[2] == set(PLANS)
    assert values[3] == set(BASIC)
    assert len(MORE) == 8
    assert values[4:] == [{False, True}, {0.0, 0.3}, {"none", "error-feedback"}]
    corrected = {(case.S, case.m, case.plan[0]) for case in ALL if case.correction != "none"}
    # Each stage corrects for its own delay, where all of its microbatches have the same.
    assert {(S, m) for S, m, name in corrected if name == "pipedream" and S > 1} == {(2, 1), (4, 1)}
    assert {(S, m) for S, m, name in corrected if name == "pipedream-vertical-sync"} == {
        (1, 1), (1, 2), (2, 1), (4, 1), (4, 3)
    }  # fmt: skip
