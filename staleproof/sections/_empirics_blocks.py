"""SGD with old blocks and LocalSGD on least squares: each inequality of their theorems, expectations over all paths."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from empirics.block_inequalities import examine
from empirics.block_runs import DEPENDENT, run_blocks
from empirics.checks import ROUND_OFF, Check, Examined
from empirics.local_sgd_runs import examine_local
from empirics.problems.block_least_squares import BlockLeastSquares, random_block_problem
from empirics.tuned_block_runs import run_tuned
from staleproof.claims import Claim, badness
from staleproof.presets import Preset

EVIDENCE = "empirics.json"
SIGMA = 0.5
X0 = np.linspace(-1, 2, 6)
#: (name, delays, delta_max) of Randomized PipeDream; each with every draw and every sign of the noise.
DRAWN = (
    ("uniform delays", "uniform", 4),
    ("maximal delays", "maximal", 3),
    ("PipeDream's delays", "pipedream", None),
    ("delays that depend on the past", DEPENDENT, 3),
)
#: The theorems that have a tuned rate, by method.
TUNED = (("rpd-b", "drawn", "uniform", 4), ("rpd-d", "drawn", "uniform", 4), ("pipedream-exact", "all", "ages", None))


def run(preset: Preset, progress: Callable[[float, str], None]) -> tuple[dict[str, Any], list[Claim]]:
    """The entry "blocks" of empirics.json, and its claims."""
    cases = _cases(preset)
    rows, checks = [], []
    for number, (name, make) in enumerate(cases):
        progress(number / len(cases), name)
        found = make()
        rows.append({"name": name, **found.as_dict()})
        checks += [(name, check) for check in found.checks.values()]
    problem = random_block_problem(6, 3, SIGMA, preset.seed)
    tuned = [
        run_tuned(name, problem, X0, _steps(preset, method), delays, delta_max=most, method=method)
        for name, method, delays, most in TUNED
    ]
    data = {"runs": rows, "tuned": [t.as_dict() for t in tuned]}
    worst = max(tuned, key=lambda t: badness(max(t.utilisation, t.at_step / sum(t.rate.values()))))
    claims = [*_claims(checks), _control(preset)]
    claims.append(
        Claim.certified(
            "empirics.blocks.tuned-rates",
            f"{len(tuned)} tuned rates: measured, and the bound at the tuned step, over the rate",
            max(worst.utilisation, worst.at_step / sum(worst.rate.values())),
            ROUND_OFF,
            place=worst.name,
            evidence=EVIDENCE,
        )
    )
    return data, claims


def _steps(preset: Preset, method: str) -> int:
    """Updates of a run of which all paths are made: 6^5 of them where blocks are drawn, 2^10 where not."""
    most = 5 if method == "drawn" else 10
    return most if preset.certified_steps >= 100 else most - 2


def _cases(preset: Preset) -> list[tuple[str, Callable[[], Examined]]]:
    cases: list[tuple[str, Callable[[], Examined]]] = []
    for sigma in (0.0, SIGMA):
        problem = random_block_problem(6, 3, sigma, preset.seed)
        words = "noisy" if sigma else "noise-free"
        for name, delays, most in DRAWN:
            make = partial(_examine, problem, _steps(preset, "drawn"), delays, most, "drawn")
            cases.append((f"Randomized PipeDream, {name}, {words}", make))
        for name, delays in (("PipeDream", "ages"), ("delayed gradient descent", "maximal")):
            cases.append((f"{name}, {words}", partial(_examine, problem, _steps(preset, "all"), delays, 2, "all")))
        cases.append((f"LocalSGD, {words}", partial(examine_local, problem, X0, 0.1, 2, 6, 3)))
    return cases


def _examine(problem: BlockLeastSquares, steps: int, delays: str, most: int | None, method: str) -> Examined:
    return examine(run_blocks(problem, X0, 0.15, steps, delays, most, method=method))


def _claims(checks: list[tuple[str, Check]]) -> list[Claim]:
    """One a theorem or step, the worst of all runs that it applies to."""
    claims = []
    for name in dict.fromkeys(check.name for _, check in checks):
        mine = [(run, check) for run, check in checks if check.name == name]
        run, worst = max(mine, key=lambda pair: badness(pair[1].utilisation))
        run, worst = next(((r, c) for r, c in mine if not c.holds), (run, worst))
        claims.append(
            Claim.certified(
                f"empirics.blocks.{name}",
                f"{name}: left/right, expectations over all paths, {len(mine)} runs",
                # Sides that differ by the round-off of what went into them are equal.
                min(worst.utilisation, 1.0) if worst.holds else worst.utilisation,
                ROUND_OFF,
                place=run,
                evidence=EVIDENCE,
            )
        )
    return claims


def _control(preset: Preset) -> Claim:
    """A run whose delays are larger by one than what the theorems are told."""
    flat = BlockLeastSquares(1e-4 * np.eye(1), np.full(1, -1e4), np.zeros(1), 1)
    late = examine(run_blocks(flat, np.zeros(1), 0.1, 30, "maximal", 4), constants={"delta_max": 3.0})
    return Claim.equality(
        "empirics.control.blocks",
        "the check can fail: delays of delta_max + 1 break the counted windows (1: they do)",
        float({"windows-any", "windows-counted"} <= set(late.violations)),
        1.0,
        evidence=EVIDENCE,
    )
