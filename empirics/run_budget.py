"""The error budget of a training run: run again by the oracle, from its settings alone, with the recorder looking.

f is the mean over windows of the training text: all of them where they are at most `windows`, else that many, evenly
spaced. The pathwise steps hold for any function f as long as the noise is what the gradients had beside grad f, and
that is recorded; the noise's expectation needs f to be what the batches are drawn from, so with a part of the windows
the editions with constants are not applicable. f and its gradient are computed in float64 at the run's own weights, so
the noise has their rounding in it too.

The lower bound of f is 0, a cross-entropy. No finite L holds everywhere (docs/budget.md), so there is no worst case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from empirics.applicability import RunFacts, reasons
from empirics.budget import Constants, budget
from empirics.budget_names import check_has_budget
from empirics.errors import InputError
from empirics.estimators.model_norm import ModelNorm
from empirics.estimators.objective import FiniteObjective
from empirics.lmo_recorder import LMORecorder
from empirics.reference_recording import reference_of, too_old
from empirics.virtual_iterate import Feedback
from pipeline.delays import delay_summary
from pipeline.divergence import diverged
from pipeline.models.bert import BERTConfig
from pipeline.optim.corrections import CorrectionOptions
from pipeline.optim.lmo import LMO
from pipeline.oracle import OracleResult, OracleState
from pipeline.training import TrainConfig, train_oracle
from theory.registry import get_bound

EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-23}


def facts_of_run(config: TrainConfig) -> RunFacts:
    """What the settings say; the delays counted from the schedule's events, start-up aside."""
    optimizer = _plain(config).make_optimizer(named_parameters(config))
    own = isinstance(optimizer, LMO)
    plan = config.settled
    counted = delay_summary(plan)["by_microbatch"]
    delays = frozenset(d for stage in counted for d in stage[plan.start_up * plan.microbatches :])
    options = config.correction_options
    return RunFacts(
        optimizer=config.optimizer,
        groups=tuple({k: v for k, v in g.items() if own and k != "params"} for g in optimizer.param_groups),
        delays=delays,
        correction=config.correction,
        form=options.form or "extrapolate",
        coefficient=options.coefficient,
        clip=config.clip,
        schedule="lr-discount" if config.correction == "lr-discount" else "",
        weight_decay=max(float(g.get("weight_decay", 0.0)) for g in optimizer.param_groups),
        synchronous_steps=config.synchronous_steps,
        dropout=config.model.dropout,
        rounded=config.dtype == "bfloat16",
    )


def _plain(config: TrainConfig) -> TrainConfig:
    return replace(config, correction="none", correction_options=CorrectionOptions())


def named_parameters(config: TrainConfig) -> list[tuple[str, torch.nn.Parameter]]:
    """The parameters of a run's model by name, a tied one once."""
    names: dict[torch.nn.Parameter, str] = {}
    for index, layer in enumerate(config.make_layers()):
        for name, p in layer.named_parameters():
            names.setdefault(p, f"layers.{index}.{name}")
    return [(name, p) for p, name in names.items()]


@dataclass(frozen=True)
class Objective:
    """f of a run; whole: whether it is what the batches are drawn from."""

    finite: FiniteObjective
    windows: int
    of: int
    whole: bool

    @classmethod
    def make(cls, config: TrainConfig, text: bytes, windows: int) -> Objective:
        """Raises InputError for a model whose targets are drawn, and for no windows."""
        if windows < 1:
            raise InputError(f"windows: {windows!r}; allowed is an integer >= 1")
        if isinstance(config.model, BERTConfig):
            raise InputError("model: bert; allowed is gpt, whose objective is a finite mean without drawn masks")
        inputs, targets, of = config.batches(text).training_windows(windows)
        layers = replace(config, dtype="float64").make_layers()
        return cls(FiniteObjective(layers, inputs, targets, config.loss), len(inputs), of, len(inputs) == of)


def budget_of_run(
    config: TrainConfig,
    text: bytes,
    theorem: str = "delayed-lmo",
    windows: int = 256,
    series: bool = False,
    on_step: Callable[[int], None] = lambda k: None,
) -> tuple[dict[str, Any], OracleResult | None]:
    """One theorem of `budgets_of_run`."""
    found, result = budgets_of_run(config, text, [theorem], windows, series, on_step)
    return found[0], result


def budgets_of_run(
    config: TrainConfig,
    text: bytes,
    theorems: Sequence[str],
    windows: int = 256,
    series: bool = False,
    on_step: Callable[[int], None] = lambda k: None,
    lost: str | None = None,
) -> tuple[list[dict[str, Any]], OracleResult | None]:
    """The budget under each theorem, and the oracle's run, made once; None where no theorem is about the run.

    lost: how the run has diverged by its own record; then it is not run again.
    Raises InputError for a theorem that cannot be taken apart, or for an objective that is no finite sum.
    """
    for theorem in theorems:
        check_has_budget(theorem)
    facts = facts_of_run(config)
    bounds = {theorem: get_bound(theorem) for theorem in theorems}
    why = {theorem: reasons(bound, facts) or too_old(bound, facts) for theorem, bound in bounds.items()}
    if all(why.values()):
        return [_no_numbers(theorem, why[theorem], None) for theorem in theorems], None
    if lost is not None:
        return [_no_numbers(theorem, why[theorem], lost) for theorem in theorems], None
    objective = Objective.make(config, text, windows)
    recorder = recorder_of_run(config, facts, objective.finite, reference=reference_of(bounds.values(), facts))

    def observe(state: OracleState) -> None:
        recorder(state)
        on_step(state.k + 1)

    result = train_oracle(config, text, observe)
    recorder.flush()
    if (seen := diverged(result.losses, skipped=result.skipped)) is not None:
        return [_no_numbers(theorem, why[theorem], seen.reason) for theorem in theorems], result
    facts = replace(facts, skipped=len(result.skipped), whole=objective.whole)
    constants = Constants({"f_star": 0.0}, {"f_star": "lower bound: a cross-entropy is not negative"})
    about = {
        "windows": objective.windows,
        "of": objective.of,
        "what": "all training windows" if objective.whole else "evenly spaced training windows, not all of them",
    }
    found = [budget(theorem, recorder, facts, constants, EPS[config.dtype], series) for theorem in theorems]
    for b in found:
        if b["status"] == "complete":
            b |= {"objective": about, "constants": [c | _edition(c, constants) for c in b["constants"]]}
    return found, result


def _edition(row: dict[str, Any], constants: Constants) -> dict[str, str]:
    """Which edition of the bound has this constant in it; Delta0 is f(x_0) less the f_star of its edition."""
    if row["name"] not in ("L", "sigma", "f_star"):
        return {"edition": "all"}
    return {"edition": "worst-case" if row["how"] == constants.how.get(row["name"]) else "trajectory"}


def _no_numbers(theorem: str, why: list[str], lost: str | None) -> dict[str, Any]:
    """A budget without numbers: of a theorem that is not about the run, or of a run that diverged."""
    status = {"status": "not applicable", "reasons": why} if why else {"status": "diverged", "reasons": [lost]}
    return {"theorem": theorem, "title": get_bound(theorem).title} | status


def recorder_of_run(
    config: TrainConfig, facts: RunFacts, finite: FiniteObjective | None, every: int = 1, reference: int | None = None
) -> LMORecorder:
    """A recorder of a run of the LMO optimizer; finite None: of what needs no full gradient; reference: see there."""
    parameters = named_parameters(config)
    groups = _plain(config).make_optimizer(parameters).param_groups
    corrected = facts.correction == "error-feedback"
    return LMORecorder(
        norm=ModelNorm.of_optimizer(groups, {id(p): name for name, p in parameters}),
        eta=float(groups[0]["lr"]),
        alpha=float(groups[0]["alpha"]),
        tau=facts.tau,
        feedback=Feedback.of(facts.tau, facts.form) if corrected else None,
        objective=None if finite is None else lambda weights: finite.value_and_gradient(dict(weights)),
        every=every,
        nesterov=all(group["nesterov"] for group in groups),
        reference=reference,
        start="gradient" if groups[0]["momentum_start"] == "gradient" else None,
    )
