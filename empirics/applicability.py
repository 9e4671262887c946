"""Whether a theorem is about a run: each of its assumptions against what is known of the run, with the reason if not.

What can be read from a run's settings is checked here; what is about the objective (duality, smoothness, lower bound,
variance) or follows from how batches are drawn is not refused. An assumption that nobody has stated a check for is
refused by its words: a theorem is never applied in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from theory.assumptions import ASSUMPTIONS
from theory.bound import Bound
from theory.inequality import Inequality

#: Statements about the objective, its norms and independent samples, or what is measured in their place.
GRANTED = {
    "duality", "smoothness", "lower-bound", "norm-ratio", "variance", "independent-batch", "euclidean",
}  # fmt: skip


@dataclass(frozen=True)
class RunFacts:
    """What a run did, as far as a theorem may ask.

    optimizer: name of its class or recipe; groups: the settings of its parameter groups; delays: the optimizer-step
    delays that occurred, of all stages and microbatches; correction: "none" or a name, with form and coefficient (None:
    the method's own); clip: largest gradient norm, if clipped; schedule: of the step size, "" for a constant one;
    weight_decay: of any group; synchronous_steps: first steps without delay; skipped: steps left out; dropout: whether
    layers draw; rounded: whether gradients are taken at rounded weights; whole: whether f, as measured, is the mean of
    all that batches are drawn from. Of a part what is pathwise holds all the same: no reason here, but no theorem in
    expectation (`budget_editions`).
    """

    optimizer: str
    groups: tuple[Mapping[str, Any], ...]
    delays: frozenset[int]
    correction: str = "none"
    form: str = "extrapolate"
    coefficient: float | None = None
    clip: float | None = None
    schedule: str = ""
    weight_decay: float = 0.0
    synchronous_steps: int = 0
    skipped: int = 0
    dropout: float = 0.0
    rounded: bool = False
    whole: bool = True
    notes: tuple[str, ...] = field(default=())

    @property
    def tau(self) -> int:
        """The delay, where there is one."""
        return max(self.delays)


def _lmo(run: RunFacts) -> str | None:
    kinds = {group.get("norm") for group in run.groups}
    if None in kinds or not run.groups:
        return f"{run.optimizer} has groups that are no LMO steps"
    return None


def _exact(run: RunFacts) -> str | None:
    if (why := _lmo(run)) is not None:
        return why
    if any(group.get("polar") == "newton-schulz" and group["norm"] == "spectral" for group in run.groups):
        return "the polar factor is Newton-Schulz's, an inexact oracle"
    return None


def _classical(run: RunFacts) -> str | None:
    return "the direction is Nesterov's" if any(group.get("nesterov") for group in run.groups) else None


def _nesterov(run: RunFacts) -> str | None:
    return None if all(group.get("nesterov") for group in run.groups) else "the direction is the momentum's own"


def step_size_changes(run: RunFacts) -> str | None:
    """Why the run has no one step size over its steps, or None."""
    return f"the step size is not constant: {run.schedule}" if run.schedule else None


def delay_changes(run: RunFacts) -> str | None:
    """Why the run's delay is not the same at its first and later steps, or None."""
    if run.synchronous_steps and run.tau:
        return f"the first {run.synchronous_steps} steps have delay 0, the others {run.tau}"
    return None


def _constant(run: RunFacts) -> str | None:
    if (why := step_size_changes(run)) is not None:
        return why
    if run.weight_decay:
        return f"there is a weight decay of {run.weight_decay:g}"
    if run.skipped:
        return f"{run.skipped} steps were left out"
    for name in ("lr", "alpha"):
        if len({group.get(name) for group in run.groups}) > 1:
            return f"{name} is not the same in all groups"
    return None


def _one_delay(run: RunFacts) -> str | None:
    if len(run.delays) != 1:
        return f"there are several delays: {', '.join(map(str, sorted(run.delays)))}"
    return delay_changes(run)


def _unbiased(run: RunFacts) -> str | None:
    if run.clip is not None:
        return f"gradients are clipped at {run.clip:g}"
    if run.dropout:
        return f"layers draw dropout ({run.dropout:g}), the objective does not"
    return "gradients are taken at rounded weights" if run.rounded else None


def _feedback(run: RunFacts) -> str | None:
    if run.correction != "error-feedback":
        return f"the correction is {run.correction}"
    own = 1.0 if run.form == "telescoped" else float(run.tau)
    if run.coefficient is not None and run.coefficient != own:
        return f"the coefficient is {run.coefficient:g}, not {own:g}"
    return None if min(run.delays) >= 1 else "there is no delay to correct"


def _equals(number: int) -> Callable[[RunFacts], str | None]:
    return lambda run: None if run.delays == {number} else f"the delay is {', '.join(map(str, sorted(run.delays)))}"


CHECKS: dict[str, Callable[[RunFacts], str | None]] = {
    "lmo": _exact,
    "inexact-lmo": _lmo,
    "nesterov": _nesterov,
    "constant-step": _constant,
    "fixed-delay": _one_delay,
    "unbiased": _unbiased,
    "error-feedback": _feedback,
    "delay-one": _equals(1),
    "no-delay": _equals(0),
}


def reasons(theorem: Bound | Inequality, run: RunFacts) -> list[str]:
    """Why the theorem is not about the run: one line for each assumption that it breaks, none where it applies."""
    found = []
    for name in theorem.assumptions:
        if name in GRANTED:
            continue
        check = CHECKS.get(name)
        why = check(run) if check is not None else "it was not made so"
        if why is not None:
            found.append(f"{name}: {why}; it assumes that {ASSUMPTIONS[name]}")
    if "error-feedback" not in theorem.assumptions and run.correction != "none" and not isinstance(theorem, Inequality):
        found.append(f"correction: the run has {run.correction}, which the theorem does not know")
    oracle = {"lmo", "inexact-lmo"} & set(theorem.assumptions)
    if "nesterov" not in theorem.assumptions and oracle and _classical(run):
        found.append(f"nesterov: {_classical(run)}, which the theorem does not know")
    return found
