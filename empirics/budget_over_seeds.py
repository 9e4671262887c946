"""Budgets of one theorem over runs that differ in their seed alone: the average that the theorem bounds, against it.

A theorem in expectation bounds the mean of the measured average over runs. So the difference of that average and the
run's own bound is averaged over seeds; its mean is above 0 if the bound fails. Student's one-sided test says whether
that is significant. It is a test of the theorem where the constants are exact, else report only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from empirics.constants import unfit
from empirics.errors import InputError
from empirics.statistics import student_interval

Budget = Mapping[str, Any]


def average_over_runs(budgets: Sequence[Budget], seeds: Sequence[int], level: float = 0.95) -> dict[str, Any]:
    """The measured average over runs, with Student's interval, and the edition that bounds it, with a one-sided test.

    seeds: of the runs. The edition is the worst case, or, where no constants that hold everywhere are known, that of
    the trajectories. Runs that diverged or that the theorem is not about are named and never averaged in. Raises
    InputError for fewer than two that are left, for seeds that come twice or runs that are equal, and for different
    theorems or settings.
    """
    if len(seeds) != len(budgets) or len(set(seeds)) != len(seeds):
        raise InputError(f"seeds: {list(seeds)!r} for {len(budgets)} runs; allowed is one for each, all different")
    if len(theorems := sorted({b["theorem"] for b in budgets})) != 1:
        raise InputError(f"runs: of theorems {', '.join(theorems)}; allowed is one")
    pairs = list(zip(seeds, budgets, strict=True))
    left = [b for _, b in pairs if b["status"] == "complete"]
    out = [{"seed": s, "status": b["status"], "reasons": b["reasons"]} for s, b in pairs if b["status"] != "complete"]
    if len(left) < 2:
        raise InputError(f"runs: {len(left)} complete of {len(budgets)}; allowed are at least 2")
    _check_alike(left)
    measured = np.array([b["waterfall"][0]["value"] for b in left])
    if (why := unfit(measured)) is not None:
        raise InputError(f"runs: {why}")
    return {
        "kind": "statistical",
        "theorem": theorems[0],
        "measured": student_interval(measured, level).as_dict(),
        "edition": _against(left, measured, level),
        "runs": len(left),
        "left_out": out,
    }


def _check_alike(budgets: Sequence[Budget]) -> None:
    """Raises InputError naming the first setting in which two runs differ."""
    first = budgets[0]["settings"]
    for other in budgets[1:]:
        for name, value in other["settings"].items():
            if value != first[name]:
                raise InputError(f"runs: {name} is {first[name]} and {value}; allowed is one setting")


def _against(budgets: Sequence[Budget], measured: np.ndarray, level: float) -> dict[str, Any]:
    """The edition of each run, on average, and whether the measured averages are above it on average."""
    for name in ("worst-case", "trajectory"):
        editions = [b["editions"][name] for b in budgets]
        if all(e["value"] is not None for e in editions):
            break
    else:
        reasons = sorted({e["reason"] for e in editions if "reason" in e})
        return {"name": None, "value": None, "kind": "not applicable", "reason": "; ".join(reasons)}
    values = np.array([e["value"] for e in editions])
    above = measured - values
    error = float(above.std(ddof=1)) / math.sqrt(above.size)
    low = float(above.mean()) - float(stats.t.ppf(level, above.size - 1)) * error
    exact = name == "worst-case" and all(e["exact"] for e in editions)
    return {
        "name": name,
        "value": float(values.mean()),
        "kind": "statistical" if exact else "report only",
        "above": float(above.mean()),
        "above_at_least": low,
        "level": level,
        "holds": low <= 0.0,
    }
