"""What the rules of proofs may put in place of what: closed tables, so that no rule takes a name from a proof's author.

A pair is in a table because of what its two quantities mean (`theory.symbols`): a mean is the mean of that quantity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

_SAME = (
    "grad_norm error_norm momentum_norm taken_norm shifted_error_norm grad_norm_at_x reference_norm "
    "reference_error_norm"
)
_CALLED = "called_error_norm called_shifted_error_norm called_reference_error_norm"
_SQUARES = (
    "grad_square taken_square apart_square update_square expected_square martingale_square window_squares "
    "drift_squares martingale_squares"
)

#: Quantity of a step -> its average over the steps of a run.
MEANS: Mapping[str, str] = MappingProxyType(
    {name: f"mean_{name}" for name in f"{_SAME} delay_age noise_growth noise_growth_root".split()}
    | {f"E_{name}": f"E_mean_{name}" for name in ("error_norm", "shifted_error_norm", "reference_error_norm")}
    | {name: f"mean_{name}" for name in ("called_norm", *_CALLED.split())}
    | {f"E_{name}": f"E_mean_{name}" for name in _CALLED.split()}
    | {f"E_{name}": f"mean_{name}" for name in _SQUARES.split()}
    | {"E_delta_mean_weighted": "E_mean_weighted", "E_delta": "dbar"}
)
#: (at a step, at the next, at the first, after the last).
TELESCOPING: frozenset[tuple[str, str, str, str]] = frozenset(
    {
        ("f_now", "f_next", "f_first", "f_last"),
        ("E_f_now", "E_f_next", "E_f_first", "E_f_last"),
        ("E_delta_mean_weighted_before", "E_delta_mean_weighted", "E_weighted_start", "E_weighted_end"),
    }
)
#: Quantity at place t of a segment -> its integral over the segment.
INTEGRALS: Mapping[str, str] = MappingProxyType({"segment_inner": "segment_mean"})
#: Quantity of a block -> its sum over the blocks.
WHOLES: Mapping[str, str] = MappingProxyType(
    {f"block_{name}": name for name in ("apart_square", "window_squares", "aged_variance")}
    | {f"E_block_{name}": f"E_{name}" for name in ("apart_square", "drift_squares", "martingale_squares")}
)

#: Quantity of a replica -> its mean over the replicas.
REPLICAS: Mapping[str, str] = MappingProxyType(
    {
        f"replica_{name}": f"replicas_{name}"
        for name in "change_square inner_gap turn_square apart_square noise_square far_square inner_far "
        "inner_noise rest_square inner_turn drifted_square".split()
    }
    | {f"E_replica_{name}": f"E_replicas_{name}" for name in "noise_square far_square".split()}
    | {f"E_replica_{name}": f"E_replicas_{name}" for name in "moved_square drifted_square rest_square".split()}
)
#: Quantity of a step -> its sum over T steps.
TOTALS: Mapping[str, str] = MappingProxyType(
    {f"E_{name}": f"total_{name}" for name in "grad_square replicas_mean_square replicas_apart_square".split()}
    | {f"E_{name}": f"total_{name}" for name in "taken_square apart_square update_excess window_excess".split()}
    | {f"E_{name}": f"total_{name}" for name in "next_grad_square change_square".split()}
    | {name: f"total_{name}" for name in "since since_square length_square".split()}
)
#: (at a step, at the next, at the first, after the last of T steps).
ENDS: frozenset[tuple[str, str, str, str]] = frozenset(
    {("E_f_now", "E_f_next", "E_f_first", "E_f_end")}
    | {(name, f"{name}_next", f"{name}_first", f"{name}_last") for name in ("round_sum", "round_squares")}
)

_STEP, _WINDOW = ("constant-step",), ()
#: Quantity at the step before -> (the same at this step, what counts the steps, axioms of an induction over them).
BEFORE: Mapping[str, tuple[str, str, tuple[str, ...]]] = MappingProxyType(
    {f"{name}_before": (name, "k", _STEP) for name in "lag_norm shifted_lag_norm delta_mean_weighted".split()}
    | {"reference_lag_norm_before": ("reference_lag_norm", "k", _STEP)}
    | {"E_noise_square_before": ("E_noise_square", "k", _STEP), "walk_norm_before": ("walk_norm", "j", _STEP)}
    | {"E_called_noise_square_before": ("E_called_noise_square", "k", _STEP)}
    | {"iterate_norm_before": ("iterate_norm", "k", ("weight-decay",))}
    | {"excess_now": ("excess_next", "k", ("block-sgd",))}  # D_k, D_{k+1}
    | {f"{name}_before": (name, "j", _WINDOW) for name in "block_window_norm block_window_squares".split()}
    | {
        f"E_{name}_before": (f"E_{name}", "j", _WINDOW)
        for name in "block_window_norm block_window_square block_martingale_square block_martingale_squares "
        "walk_window_norm walk_window_square".split()
    }
    | {"walk_most_before": ("walk_most", "j", _WINDOW)}
    | {f"E_{name}_before": (f"E_{name}", "j", _WINDOW) for name in ("replica_walk_squares", "replicas_apart_square")}
)
#: Quantity at the step before -> what else is one less there: at s = 0 it is none that the induction speaks of.
ALONG: Mapping[str, tuple[str, ...]] = MappingProxyType({"reference_lag_norm_before": ("s",)})
#: Axioms of an induction -> those that it may rest on instead: weight decay, too, has constant eta and alpha.
INSTEAD: Mapping[tuple[str, ...], tuple[str, ...]] = MappingProxyType(
    dict.fromkeys((_STEP, ("block-sgd",)), ("weight-decay",))
)
#: Other quantity that differs from step to step -> what counts the steps.
VARYING: Mapping[str, str] = MappingProxyType(
    {"step_norm": "j", "delta": "k", "block_update_norm": "j"}
    | {f"E_{name}": "j" for name in "block_update_norm block_difference_square walk_update_norm".split()}
    | {"E_replica_sample_square": "j"}
)


def unlisted(pairs: Mapping[str, str], table: Mapping[str, str]) -> str:
    """The first pair that the table does not have, "" if it has all."""
    return next((f"{a} -> {b}" for a, b in pairs.items() if table.get(a) != b), "")


def listed(names: Iterable[object]) -> str:
    """What is allowed, on one line."""
    return ", ".join(sorted(map(str, names)))
