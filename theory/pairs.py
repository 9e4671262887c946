"""What the rules of proofs may put in place of what: closed tables, so that no rule takes a name from a proof's author.

A pair is in a table because of what its two quantities mean (`theory.symbols`): a mean is the mean of that quantity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

_SAME = "grad_norm error_norm momentum_norm taken_norm shifted_error_norm grad_norm_at_x"
_SQUARES = (
    "grad_square taken_square apart_square update_square expected_square martingale_square window_squares "
    "drift_squares martingale_squares"
)

#: Quantity of a step -> its average over the steps of a run.
MEANS: Mapping[str, str] = MappingProxyType(
    {name: f"mean_{name}" for name in f"{_SAME} delay_age noise_growth noise_growth_root".split()}
    | {f"E_{name}": f"E_mean_{name}" for name in ("error_norm", "shifted_error_norm")}
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

_STEP, _WINDOW = ("constant-step",), ()
#: Quantity at the step before -> (the same at this step, what counts the steps, axioms of an induction over them).
BEFORE: Mapping[str, tuple[str, str, tuple[str, ...]]] = MappingProxyType(
    {f"{name}_before": (name, "k", _STEP) for name in "lag_norm shifted_lag_norm delta_mean_weighted".split()}
    | {"iterate_norm_before": ("iterate_norm", "k", ("weight-decay",))}
    | {"E_noise_square_before": ("E_noise_square", "k", _STEP), "walk_norm_before": ("walk_norm", "j", _STEP)}
    | {"excess_now": ("excess_next", "k", ("block-sgd",))}  # D_k, D_{k+1}
    | {f"{name}_before": (name, "j", _WINDOW) for name in "block_window_norm block_window_squares".split()}
    | {
        f"E_{name}_before": (f"E_{name}", "j", _WINDOW)
        for name in "block_window_norm block_window_square block_martingale_square block_martingale_squares "
        "walk_window_norm walk_window_square".split()
    }
)
#: Axioms of an induction -> those that it may rest on instead: weight decay, too, has constant eta and alpha.
INSTEAD: Mapping[tuple[str, ...], tuple[str, ...]] = MappingProxyType(
    dict.fromkeys((_STEP, ("block-sgd",)), ("weight-decay",))
)
#: Other quantity that differs from step to step -> what counts the steps.
VARYING: Mapping[str, str] = MappingProxyType(
    {"step_norm": "j", "delta": "k", "block_update_norm": "j"}
    | {f"E_{name}": "j" for name in "block_update_norm block_difference_square walk_update_norm".split()}
)


def unlisted(pairs: Mapping[str, str], table: Mapping[str, str]) -> str:
    """The first pair that the table does not have, "" if it has all."""
    return next((f"{a} -> {b}" for a, b in pairs.items() if table.get(a) != b), "")


def listed(names: Iterable[object]) -> str:
    """What is allowed, on one line."""
    return ", ".join(sorted(map(str, names)))
