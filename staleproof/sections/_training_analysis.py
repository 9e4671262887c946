"""What the training runs say: gaps with intervals, drift, and the theorem's terms on the run it speaks of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from empirics.errors import InputError
from empirics.gpt_runs import Drift, TheoremRun, in_processes, measure_drift, measure_theorem
from empirics.pathwise import ROUND_OFF
from empirics.run_budget import budget_of_run
from empirics.statistics import Interval, fieller_ratio, paired_interval, student_interval
from pipeline import divergence
from pipeline.delays import optimizer_step_delay
from pipeline.oracle import OracleResult, largest_difference
from staleproof.claims import Claim, badness
from staleproof.presets import Preset
from staleproof.sections import _training_plan as plan
from staleproof.sections._training_bound import bound_on_runs

EVIDENCE = "training.json"


def gaps(results: dict[str, Any], claims: list[Claim]) -> None:
    """Gap to the synchronous arm by optimizer, paired by seed; the share that error feedback recovers."""
    for optimizer in plan.OPTIMIZERS:
        finals: dict[tuple[str, str], dict[int, float]] = {arm: {} for arm in plan.ARMS}
        diverged = []
        for row in results["arms"]:
            if row["optimizer"] != optimizer:
                continue
            if row["state"] == "complete":
                finals[row["schedule"], row["correction"]][row["seed"]] = row["final_loss"]
            else:
                diverged.append(f"{row['schedule']} {row['correction']} seed {row['seed']}: {row['state']}")
        seeds = sorted(set.intersection(*(set(values) for values in finals.values())))
        if len(seeds) < 2:
            why = f"fewer than two complete seeds; {'; '.join(diverged) or 'no arm ran'}"
            claims.append(Claim.missing(f"training.gap.{optimizer}", "statistical", "gap of 2BW", why))
            continue
        sync, stale, corrected = (np.array([finals[arm][s] for s in seeds]) for arm in plan.ARMS)
        try:
            gap = paired_interval(stale, sync)
            gap_corrected = paired_interval(corrected, sync)
        except InputError as error:  # the arms are equal in every seed: no interval
            claims.append(Claim.missing(f"training.gap.{optimizer}", "statistical", "gap of 2BW", str(error)))
            continue
        share = fieller_ratio(stale - corrected, stale - sync)
        if share.defined and gap.low <= 0:
            note = "delay did not cost anything here: there is no gap to recover"
            share = replace(share, value=None, low=None, high=None, defined=False, note=note)
        results["gaps"].append(
            {
                "optimizer": optimizer,
                "gap": gap.as_dict(),
                "gap_corrected": gap_corrected.as_dict(),
                "share_recovered": share.as_dict(),
                "pairs": [
                    {"seed": s, "gap": float(b - a), "gap_corrected": float(c - a)}
                    for s, a, b, c in zip(seeds, sync, stale, corrected, strict=True)
                ],
                "left_out": diverged,
            }
        )
        _gap_claims(optimizer, gap, gap_corrected, share, diverged, claims)


def _gap_claims(
    optimizer: str, gap: Interval, corrected: Interval, share: Any, left_out: list[str], claims: list[Claim]
) -> None:
    lost = f"; left out, so the interval is over the survivors: {'; '.join(left_out)}" if left_out else ""
    claims.append(
        Claim.statistical(
            f"training.gap.{optimizer}",
            f"{optimizer}: held-out loss of 2BW above synchronous, {_text(gap)} nats per byte ({gap.n} paired seeds)"
            f"{lost}",
            gap.value,
            0.0,
            holds=gap.low > 0 and not left_out,
            gates=False,
            evidence=EVIDENCE,
        )
    )
    recovered = f"{share.value:.0%} [{share.low:.0%}, {share.high:.0%}]" if share.defined else "undefined"
    claims.append(
        Claim.statistical(
            f"training.error-feedback.{optimizer}",
            f"{optimizer}: error feedback leaves a gap of {_text(corrected)}; share recovered {recovered} (Fieller)"
            f"{lost}",
            share.value if share.defined else math.nan,
            0.0,
            holds=share.defined and share.low > 0 and not left_out,
            gates=False,
            place=share.note,
            evidence=EVIDENCE,
        )
    )


def _text(interval: Interval) -> str:
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def measure(
    preset: Preset, text: bytes, real: Sequence[Any], results: dict[str, Any], claims: list[Claim], progress: Any
) -> None:
    """The measurements in the oracle, in two processes. real: the theorem's run and the budget's, of the engine."""
    tasks: list[tuple[Any, tuple[Any, ...]]] = [
        (budget_of_run, (plan.budget_run(preset), text, "delayed-lmo", plan.POOL)),
    ]
    tasks += [
        (measure_theorem, (plan.theorem_run(preset, seed), text, plan.theorem_every(preset)))
        for seed in range(plan.THEOREM_SEEDS)
    ]
    stale = [arm for arm in plan.ARMS if arm[0] != "1f1b"]
    for optimizer in plan.OPTIMIZERS:
        for schedule, correction in stale:
            for seed in range(plan.DRIFT_SEEDS):
                config = plan.arm(preset, optimizer, schedule, correction, seed)
                tasks.append((measure_drift, (config, text, plan.drift_every(preset), plan.POOL)))
    theorem_runs: dict[int, TheoremRun] = {}
    drifts: list[Drift] = []
    for done, (index, result) in enumerate(in_processes(tasks)):
        if isinstance(result, TheoremRun):
            theorem_runs[index] = result
        elif isinstance(result, Drift):
            drifts.append(result)
        else:
            budget, again = result
            taken_apart(budget, again, real[1], results, claims)
        progress(0.8 + 0.2 * (done + 1) / len(tasks), "measuring in the oracle")
    _diagnostics(drifts, results)
    runs = [theorem_runs[i] for i in sorted(theorem_runs)]
    _equal_to_processes("theorem", real[0], runs[0].weights, claims)
    left = [run for run in runs if divergence.diverged(run.losses) is None]
    if len(left) < 2:
        why = f"fewer than two of {len(runs)} runs have not diverged"
        claims.append(Claim.missing("training.bound", "report", "Theorem 1 on runs of several seeds", why))
        return
    results["bound"] = bound_on_runs(left, max(optimizer_step_delay(real[0].events)), claims)


def _diagnostics(drifts: list[Drift], results: dict[str, Any]) -> None:
    for optimizer, correction in sorted({(d.optimizer, d.correction) for d in drifts}):
        every = [d for d in drifts if (d.optimizer, d.correction) == (optimizer, correction)]
        runs = [d for d in every if d.status == "complete"]
        if len(runs) < 2:
            continue  # diverged runs have no average; the gaps name them
        row: dict[str, Any] = {"optimizer": optimizer, "correction": correction}
        for name in ("drift", "momentum_lag", "delay_bias"):
            row[name] = _mean([getattr(d, name) for d in runs])
        row["note"] = (
            f"Frobenius norm, relative; mean over the second half of a run, {len(runs)} seeds in the oracle; "
            f"bias and lag against the gradient on held-out text (so the lag holds sampling noise too) at {runs[0].at}"
        )
        row["left_out"] = [f"seed {d.seed}: {d.status}" for d in every if d.status != "complete"]
        results["diagnostics"].append(row)


def _mean(samples: list[float]) -> dict[str, Any]:
    """With Student's interval, or without one where the samples do not differ."""
    try:
        return student_interval(samples).as_dict()
    except InputError as error:
        value = sum(samples) / len(samples)
        return {"value": value, "low": None, "high": None, "level": None, "method": str(error), "n": len(samples)}


def _equal_to_processes(run: str, real: Any, weights: dict[str, Tensor], claims: list[Claim]) -> None:
    """The recorded run in the oracle is the run of the processes: final weights, float32, bit for bit."""
    worst, place = largest_difference({0: real.weights}, {0: weights})
    claims.append(
        Claim.equality(
            f"training.{run}-run-equality",
            f"lmo, 2BW, float32: final weights of the two processes and of the {run}'s recorded oracle run, max |dx|",
            worst,
            place=place,
            evidence=EVIDENCE,
        )
    )


def taken_apart(
    budget: dict[str, Any], recorded: OracleResult | None, real: Any, results: dict[str, Any], claims: list[Claim]
) -> None:
    """The entry "budget": what each inequality of Theorem 1's proof used on the run. Kept if it is about the run."""
    results["budget"] = {"run": "GPT on two processes, 2BW", **budget}
    if recorded is None or budget["status"] != "complete":
        why = "; ".join(budget["reasons"])
        claims.append(Claim.missing("training.budget", "equality", "Theorem 1's proof on the run", why))
        return
    _equal_to_processes("budget", real, recorded.solution, claims)
    equalities = [i for i in budget["inequalities"] if i["kind"] == "equality"]
    broken = [i["place"] for i in equalities if i["violations"]]
    claims.append(
        Claim.equality(
            "training.budget-equalities",
            f"{len(equalities)} equalities of the proof, definitions aside, at every step of the run: those broken",
            len(broken),
            place="; ".join(broken[:2]),
            evidence=EVIDENCE,
        )
    )
    inequalities = [i for i in budget["inequalities"] if i["kind"] == "certified"]
    worst = max(inequalities, key=lambda i: badness(i["max"]))
    claims.append(
        Claim.certified(
            "training.budget-inequalities",
            f"{len(inequalities)} inequalities of the proof that need no constant of the objective, at every step of "
            "the run: left/right",
            worst["max"],
            ROUND_OFF,
            place=worst["place"],
            evidence=EVIDENCE,
        )
    )
    levels = {level["level"]: level["value"] for level in budget["waterfall"]}
    claims.append(
        Claim.report(
            "training.budget",
            f"Theorem 1 on {budget['steps']} steps, measured average over the bound with constants of the trajectory; "
            f"in measured terms {levels['measured average'] / levels['measured terms']:.3g}",
            levels["measured average"] / levels["trajectory constants"],
            evidence=EVIDENCE,
        )
    )
