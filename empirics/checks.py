"""One inequality checked on runs, and all of a run's: left, right, and how much of the right side is used.

kind           means
certified      the expectation is exact, or the statement holds on each path
statistical    a mean over independent paths, with Student's interval; refuted if the interval is beyond the bound
Utilisation is left/right after the terms that are progress (`PROGRESS`) are moved to the left; it may be negative then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from empirics.errors import InputError
from empirics.statistics import ROUND_OFF as UNITS
from empirics.statistics import Interval, student_interval, unfit
from theory.inequality import Inequality

PROGRESS = ("objective", "gradient", "taken", "initial")
#: Float64 sums of some thousand numbers, against the largest number that goes into them.
ROUND_OFF = 1e-11


@dataclass(frozen=True)
class Check:
    """One inequality on a run. left, right: after progress was moved to the left, where utilisation is largest; low,
    median, utilisation: least, middle and largest left/right over steps (and paths); interval: of the left side minus
    the right one, for kind "statistical" and paths that differ; holds: whether nothing refutes it.
    """

    name: str
    kind: str
    left: float
    right: float
    low: float
    median: float
    utilisation: float
    holds: bool
    interval: Interval | None = None

    def as_dict(self) -> dict[str, Any]:
        """The fields, for a result file."""
        return asdict(self)


@dataclass(frozen=True)
class Examined:
    """All checks of a run, its constants, and why the other inequalities do not apply."""

    method: str
    paths: int
    constants: dict[str, float]
    checks: dict[str, Check]
    not_applicable: dict[str, str] = field(default_factory=dict)

    @property
    def violations(self) -> list[str]:
        """Names of what is refuted; of a theorem that holds, only if something is wrong."""
        return [name for name, check in self.checks.items() if not check.holds]

    def as_dict(self) -> dict[str, Any]:
        """For a result file."""
        return {
            "method": self.method,
            "paths": self.paths,
            "constants": self.constants,
            "checks": [check.as_dict() for check in self.checks.values()],
            "not_applicable": self.not_applicable,
            "violations": self.violations,
        }


def check_of(
    name: str, left: np.ndarray, right: np.ndarray, scale: float | np.ndarray, kind: str, level: float
) -> Check:
    """left, right: shapes that broadcast. Certified: each pair is a statement. Statistical: shape [statements,
    paths], and each row's mean is one; where all paths have the same difference it is judged as that number.
    """
    left, right = np.broadcast_arrays(np.asarray(left, dtype=float), np.asarray(right, dtype=float))
    interval = None
    if kind == "statistical":
        allowed, differences = ROUND_OFF * float(np.max(scale)), left - right
        if differences.shape[-1] < 2:
            raise InputError(f"paths: {differences.shape[-1]} for a mean over paths; allowed are at least 2")
        random = np.array([unfit(d, allowed / UNITS) is None for d in differences])
        share = 1 - (1 - level) / len(left)
        worst = [student_interval(d, share) for d in differences[random]]
        interval = max(worst, key=lambda i: i.low, default=None)
        holds = bool((differences[~random].mean(axis=-1) <= allowed).all())
        holds = holds and (interval is None or interval.low <= allowed)
        left, right = left.mean(axis=-1), right.mean(axis=-1)
    else:
        holds = bool((left - right <= ROUND_OFF * scale).all())
    ratio = np.full(left.shape, np.inf)
    np.divide(left, right, out=ratio, where=right > 0)
    ratio = np.where((right <= 0) & (left <= right + ROUND_OFF * np.max(scale)), 0.0, ratio)
    at = int(ratio.argmax())
    numbers = (
        float(left.flat[at]),
        float(right.flat[at]),
        float(ratio.min()),
        float(np.median(ratio)),
        float(ratio.max()),
    )
    return Check(name, kind, *numbers, holds, interval)


def check_step(step: Inequality, values: Mapping[str, Any], kind: str, level: float, name: str | None = None) -> Check:
    """A step of a proof; progress on the left."""
    left = np.asarray(step.evaluate(values)[0], dtype=float)
    right, scale = np.zeros(left.shape), np.abs(left)
    for term, value in step.evaluate_terms(values).items():
        number = np.asarray(value, dtype=float)
        scale = scale + np.abs(number)
        if term in PROGRESS:
            left = left - number
        else:
            right = right + number
    if kind == "statistical":
        left, right = np.atleast_2d(left), np.atleast_2d(right)
    return check_of(name or step.name, left, right, scale + float(values.get("scale", 0.0)), kind, level)
