"""f_* and Delta0 of a run from its losses on further batches, at the start and at its last weights.

f_* >= 0, since a cross-entropy is not negative, and f_* <= f(last weights). Both constants take 0 for it where one
number is needed, so their values belong together; the other end of their brackets has Student's interval.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from empirics.constants import Constant, mean_of


def gap_of_losses(start: np.ndarray, last: np.ndarray, level: float) -> Constant:
    """Delta0 = f(x_0) - f_*, from losses of the same batches at both points."""
    at = f"start, {len(start)} further batches"
    first = mean_of("Delta0", start, at, level)
    fall = mean_of("Delta0", start - last, at, level)
    if first.high is None or fall.low is None:
        return first if first.high is None else fall
    note = "value and upper end: f_* >= 0, a cross-entropy is not negative; lower end: f_* <= f(last weights)"
    return replace(first, low=min(max(fall.low, 0.0), first.high), note=note)


def f_star_of_losses(last: np.ndarray, level: float) -> Constant:
    """f_*: its proved lower end, which Delta0 uses, up to the upper end of f at the last weights."""
    end = mean_of("f_star", last, f"last weights, {len(last)} further batches", level)
    if end.high is None:
        return end
    note = "value and lower end: a cross-entropy is not negative, what Delta0 uses; upper end: f(last weights)"
    return replace(end, value=0.0, how="bound", low=0.0, high=max(end.high, 0.0), note=note)
