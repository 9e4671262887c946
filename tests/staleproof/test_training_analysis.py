"""What the analysis makes of diverged runs and of gaps that are none."""

from __future__ import annotations

import math

from empirics.gpt_runs import Drift
from staleproof.sections import _training_plan as plan
from staleproof.sections._training_analysis import _diagnostics, gaps


def rows(offset: dict[tuple[str, str], float], diverged: int = 0) -> dict:
    arms = []
    for optimizer in plan.OPTIMIZERS:
        for seed in range(4):
            for arm in plan.ARMS:
                lost = arm[0] != "1f1b" and arm[1] == "none" and seed < diverged
                # Of the corrected arm's offset a little more from seed to seed: the share is not the same in all.
                loss = 2.0 + 0.1 * seed + offset[arm] * (1 + 0.01 * seed * (1 + 0.1 * plan.ARMS.index(arm)))
                state = "diverged" if lost else "complete"
                row = {"optimizer": optimizer, "schedule": arm[0], "correction": arm[1], "seed": seed, "state": state}
                arms.append(row | {"final_loss": None if lost else loss})
    return {"arms": arms, "gaps": [], "diagnostics": []}


def offsets(stale: float, corrected: float) -> dict[tuple[str, str], float]:
    return dict(zip(plan.ARMS, (0.0, stale, corrected), strict=True))


def test_a_gap_and_its_recovered_share():
    results, claims = rows(offsets(0.1, 0.04)), []
    gaps(results, claims)
    assert abs(results["gaps"][0]["share_recovered"]["value"] - 0.6) < 1e-3
    assert all(claim.outcome == "holds" for claim in claims)


def test_diverged_seeds_are_named_and_never_hold():
    results, claims = rows(offsets(0.1, 0.04), diverged=2), []
    gaps(results, claims)
    assert all(claim.outcome == "fails" and "left out" in claim.statement for claim in claims)


def test_a_negative_gap_has_no_share():
    results, claims = rows(offsets(-0.1, -0.2)), []
    gaps(results, claims)
    assert not results["gaps"][0]["share_recovered"]["defined"]
    assert all(claim.outcome == "fails" for claim in claims)


def test_arms_that_are_equal_in_every_seed_have_no_interval():
    results, claims = rows(offsets(0.0, 0.0)), []
    gaps(results, claims)
    assert not results["gaps"] and {claim.outcome for claim in claims} == {"missing"}
    assert all("all 4 samples are 0" in claim.evidence for claim in claims)


def test_diverged_measurements_are_left_out_not_bad_input():
    results = rows(offsets(0.1, 0.04))
    good = [Drift("adamw", "none", seed, 0.3, 0.2, 1.0 + seed) for seed in range(2)]
    lost = Drift("adamw", "none", 2, math.nan, math.nan, math.nan, "diverged")
    alone = Drift("muon", "none", 0, 0.3, 0.2, 1.0)
    _diagnostics([*good, lost, alone], results)
    (row,) = results["diagnostics"]
    assert row["momentum_lag"]["low"] < 1.5 < row["momentum_lag"]["high"]
    # Equal samples have a mean and no interval.
    assert (row["drift"]["value"], row["drift"]["low"]) == (0.3, None) and "all 2 samples" in row["drift"]["method"]
    assert [(row["optimizer"], row["drift"]["n"]) for row in results["diagnostics"]] == [("adamw", 2)]
    assert results["diagnostics"][0]["left_out"] == ["seed 2: diverged"]
