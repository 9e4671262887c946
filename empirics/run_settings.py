"""What a run was set to, or what its trace counts: the constants of a theorem that the user sets, if they are numbers.

A theorem has one eta and one tau. A run whose step size or delay changes, or differs by group of parameters or by
stage, has none: not applicable, with the reason that `empirics.applicability` has for its budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from empirics.applicability import delay_changes, step_size_changes
from empirics.constants import Constant, exact, not_applicable
from empirics.run_budget import facts_of_run
from pipeline.training import TrainConfig

NAMES = ("eta", "alpha", "tau", "K")


def setting_of_run(
    name: str, config: TrainConfig, summary: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]
) -> Constant:
    """One of NAMES; groups: of the run's optimizer, without its correction."""
    if name == "K":
        return exact("K", config.steps, "settings")
    if name == "tau":
        return _tau(config, summary["optimizer_step_delay"])
    if name == "eta":
        return _eta(config, summary["lr"], groups)
    if "alpha" not in groups[0]:
        why = f"optimizer {config.optimizer!r} has no single alpha; allowed is lmo"
        return not_applicable("alpha", why, "settings", "exact")
    return exact("alpha", float(groups[0]["alpha"]), "settings")


def _eta(config: TrainConfig, lr: float, groups: Sequence[Mapping[str, Any]]) -> Constant:
    rates = sorted({float(group["lr"]) for group in groups})
    if (why := step_size_changes(facts_of_run(config))) is not None:
        said = f"changes during the run: {why}"
    elif len(rates) > 1:
        said = f"not one number: by group of parameters {', '.join(f'{rate:g}' for rate in rates)}"
    else:
        return exact("eta", lr, "settings")
    return not_applicable("eta", said, "settings", "exact")


def _tau(config: TrainConfig, delays: Sequence[int]) -> Constant:
    where = "counted from the run's trace"
    if (why := delay_changes(facts_of_run(config))) is not None:
        said = f"changes during the run: {why}"
    elif len(set(delays)) > 1:
        said = f"not one number: by stage {', '.join(map(str, delays))}"
    else:
        return exact("tau", max(delays), where, f"by stage: {delays}")
    return not_applicable("tau", said, where, "exact")
