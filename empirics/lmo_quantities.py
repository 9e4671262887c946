"""The quantities of the proofs from vectors of several steps at once: stacks [steps, ...] by name of vector and layer.

`full` and `light` return what the recorder takes dual norms and norms of, and numbers that need none. What then follows
from numbers alone, step by step, is `complete_row`; what needs the step before is `running_terms`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from empirics.estimators.weights import minus
from empirics.nesterov_recording import called_quantities
from empirics.reference_recording import reference_quantities

Weights = Mapping[str, Tensor]
Vectors = Mapping[str, dict[str, Tensor]]
Numbers = dict[str, list[float]]
#: (gradient's change, distance) of each use of smoothness in the proofs.
SMOOTHNESS = (
    ("segment_dual", "step_norm"),
    ("delay_bias", "gap_norm"),
    ("taken_change", "taken_step_norm"),
    ("return_change", "return_gap_norm"),
)
#: A distance below this share of a step is cancellation: the ratio of two of them is no smoothness.
LEAST_DISTANCE = 1e-6


def inner(a: Weights, b: Weights) -> list[float]:
    """<a, b> over all layers, step by step."""
    total = sum((a[n] * b[n]).flatten(1).sum(1) for n in a)
    assert isinstance(total, Tensor)
    return list(total.tolist())


def light(v: Vectors, eta: float) -> tuple[dict[str, Any], dict[str, Any], Numbers]:
    """(vectors for dual norms, for norms, numbers) of what needs no full gradient."""
    primals = {"step_norm": v["step"], "gap_norm": v["gap"]} | ({"drift_norm": v["drift"]} if "drift" in v else {})
    along = [-value / eta for value in inner(v["momentum"], v["step"])]
    return {"momentum_norm": v["momentum"]}, primals, {"inner_momentum": along} | _drift(v, v["step"])


def _drift(v: Vectors, step: Weights) -> Numbers:
    if "drift" not in v:
        return {}
    pairs = zip(inner(v["drift"], v["drift"]), inner(step, step), strict=True)
    return {"update_drift": [math.sqrt(a / b) if b else math.nan for a, b in pairs]}


def full(v: Vectors, eta: float, shifted: bool) -> tuple[dict[str, Any], dict[str, Any], Numbers]:
    """The same with full gradients; shifted: also of where the gradient was taken."""
    g, m, taken = v["grad"], v["momentum"], v["taken"]
    step, error, segment = minus(v["z_next"], v["z"]), minus(m, g), minus(v["next"], g)
    duals: dict[str, Any] = {
        "grad_norm": g,
        "momentum_norm": m,
        "error_norm": error,
        "delay_bias": minus(taken, g),
        "segment_dual": segment,
    }
    primals: dict[str, Any] = {"step_norm": step, "gap_norm": minus(v["read"], v["z"])}
    numbers = {
        "inner_grad": [-value / eta for value in inner(g, step)],
        "inner_momentum": [-value / eta for value in inner(m, step)],
        "inner_error": [-value / eta for value in inner(error, step)],
        "segment_inner": inner(segment, step),
    }
    if "noise" in v:
        duals |= {"noise_norm": v["noise"], "lag_norm": minus(error, v["noise"])}
        numbers |= _noise(v)
    if "called" in v:
        of_called, along = called_quantities(v, step, eta, inner)
        duals, numbers = duals | of_called, numbers | along
    if shifted:
        wrong = minus(m, taken)
        duals |= {"taken_norm": taken, "shifted_error_norm": wrong}
        if "noise" in v:
            duals["shifted_lag_norm"] = minus(wrong, v["noise"])
        if "read_before" in v:
            duals["taken_change"] = minus(v["taken_before"], taken)
            primals["taken_step_norm"] = minus(v["read"], v["read_before"])
    if "reference" in v:
        at_reference, gap = reference_quantities(v)
        duals, primals = duals | at_reference, primals | gap
    if "at_x" in v:
        duals |= {"grad_norm_at_x": v["at_x"], "return_change": minus(v["at_x"], g)}
        primals["return_gap_norm"] = minus(v["x"], v["z"])
    else:
        primals["walk_norm"] = minus(v["z_next"], v["read"])  # age + 1 steps
    return duals, primals, numbers | _drift(v, step)


def _noise(v: Vectors) -> Numbers:
    nu = v["noise"]
    numbers = {"noise_square": inner(nu, nu), "sample_square": inner(v["sample"], v["sample"])}
    if "noise_before" in v:
        numbers["inner_noise"] = inner(v["noise_before"], v["sample"])
        numbers["noise_square_before"] = inner(v["noise_before"], v["noise_before"])
    return numbers


def complete_row(row: dict[str, float], eta: float, corrected: bool) -> None:
    """What follows from the numbers of one step."""
    if not corrected:
        row |= {"j": row["age"] + 1, "walk_norm_before": row["gap_norm"]}
    row["segment_mean"] = row["f_next"] - row["f_now"] + eta * row["inner_grad"]
    size = row["step_norm"] ** 2
    ratios = [row[a] / row[b] for a, b in SMOOTHNESS if row.get(b, 0.0) > LEAST_DISTANCE * eta]
    ratios += [2 * row["segment_mean"] / size, row["segment_inner"] / size] if size else []
    row["smoothness_used"] = max(ratios, default=0.0)
    at = "called" if "called_norm" in row else "momentum"
    row["oracle_quality"] = row[f"inner_{at}"] / row[f"{at}_norm"] if row[f"{at}_norm"] else 1.0
