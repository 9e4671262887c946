"""The constants of a run that `staleproof train --out` has left: what its files say exactly, and what its data show.

The files have settings, the trace's delays, the losses and the last weights; the start is made again from the seed.
sigma, L and Delta0 are sampled on the batches that the run would have drawn next ("further batches"): independent draws
from the training windows. Of a small text the run has met most of these windows before: its own f is the mean over
them, and not a test loss. E0 is by enumeration of at most `windows` of them, evenly spaced; what needs the run's own
steps (drift, momentum, the oracle, smoothness along the path) is from the run made again (`empirics.run_steps`).
"""

from __future__ import annotations

import argparse
import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from empirics.constants import Constant, exact, mean_of, not_applicable
from empirics.errors import InputError
from empirics.estimators.gradient_noise import per_sample_variance, stack
from empirics.estimators.model_norm import AnyNorm, ModelNorm, model_norm
from empirics.estimators.norm_ratio import rho
from empirics.estimators.objective import FiniteObjective
from empirics.estimators.upper_smoothness import upper_smoothness
from empirics.estimators.weights import Weights, minus
from empirics.problem_constants import OnName, check_draws, check_numbers, constants_of, quiet
from empirics.run_folder import RunFolder, read_run
from empirics.run_gap import f_star_of_losses, gap_of_losses
from empirics.run_settings import NAMES as OF_SETTINGS
from empirics.run_settings import setting_of_run
from empirics.run_steps import NAMES as OF_STEPS
from empirics.run_steps import RunSteps
from pipeline.data.corpus import load_corpus
from pipeline.divergence import Divergence
from pipeline.options import config_of
from pipeline.training import TrainConfig

NAMES = (*OF_SETTINGS, "rho", "L", "sigma", "f_star", "Delta0", "E0", *OF_STEPS)
#: Sequences in the fixed batch on which curvature is measured.
CURVATURE_SEQUENCES = 8


@dataclass(frozen=True)
class RunConstants:
    """A complete run in a folder. norm_name: None for lmo, which has its own; draws: batches drawn; windows: most
    training windows that a full gradient is made of."""

    folder: Path
    norm_name: str | None = None
    draws: int = 32
    level: float = 0.95
    windows: int = 256

    def __post_init__(self) -> None:
        if self.draws < 3:
            raise InputError(f"draws: {self.draws!r}; allowed is an integer >= 3")
        if not 0 < self.level < 1:
            raise InputError(f"level: {self.level!r}; allowed is 0 < level < 1")
        self._run  # noqa: B018  (refuses what is no run that has ended)
        check_draws(self.draws, self._batch, "draws times sequences a step")
        digest = self.summary["corpus"]["sha256"]
        if self.corpus.sha256 != digest:
            raise InputError(f"corpus: sha256 {self.corpus.sha256[:12]}...; the run had {digest[:12]}...")

    @cached_property
    def _run(self) -> RunFolder:
        return read_run(self.folder)

    @property
    def summary(self) -> dict[str, Any]:
        return self._run.summary

    @property
    def lost(self) -> Divergence | None:
        """How the run diverged, if it did."""
        return self._run.lost

    @cached_property
    def config(self) -> TrainConfig:
        try:
            return config_of(argparse.Namespace(**self._run.settings))
        except (AttributeError, TypeError) as error:  # of a run by another version
            raise InputError(f"run {str(self.folder)!r}: its settings are not those of a run here: {error}") from None

    @cached_property
    def corpus(self) -> Any:
        return load_corpus(self._run.settings["corpus"])

    @cached_property
    def _points(self) -> list[tuple[str, dict[str, Tensor]]]:
        first = {name: p.detach().clone() for name, p in self._objective(1).parameters().items()}
        path = self.folder / "weights.pt"
        try:
            weights = torch.load(path, weights_only=True)
        except FileNotFoundError:
            where = f"no weights.pt in {str(self.folder)!r}"
            raise InputError(f"run: {where}; allowed is a folder of staleproof train --out") from None
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"run: {str(path)!r} cannot be read: {why}") from None
        for name, p in first.items():
            if name not in weights or weights[name].shape != p.shape:
                raise InputError(f"run: {str(path)!r} has no {name!r} of shape {tuple(p.shape)}")
        return [("start", first), ("last weights", {name: weights[name] for name in first})]

    def _objective(self, sequences: int) -> FiniteObjective:
        """The loss on so many of the sequences that the run would have drawn next."""
        inputs, targets = self._fresh(sequences)
        return FiniteObjective(self.config.make_layers(), inputs, targets, self.config.loss)

    def _fresh(self, sequences: int) -> tuple[Tensor, Tensor]:
        config = self.config
        seen = config.steps * config.plan.microbatches
        batches, parts = config.batches(self.corpus.text), []
        for j in range(-(-sequences // config.sequences)):
            parts.append(batches.microbatch(seen + j))
        inputs, targets = (torch.cat([part[i] for part in parts])[:sequences] for i in (0, 1))
        return inputs, targets

    @cached_property
    def norm(self) -> AnyNorm:
        """The optimizer's own for lmo; else the one that was asked for."""
        objective = self._objective(1)
        parameters = objective.parameters()
        if self.config.optimizer == "lmo":
            groups = self._groups(parameters)
            return ModelNorm.of_optimizer(groups, {id(p): name for name, p in parameters.items()})
        return model_norm(self.norm_name or "frobenius", parameters)

    @cached_property
    def norm_words(self) -> str:
        """The norm that every estimate is in, for a header."""
        if self.config.optimizer != "lmo":
            return self.norm_name or "frobenius"
        assert isinstance(self.norm, ModelNorm)
        kinds = sorted({kind for kind, _ in self.norm.layers.values()})
        return f"the optimizer's own: the largest over the layers, each in {' or '.join(kinds)} with its weight"

    def _groups(self, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        return list(replace_correction(self.config).make_optimizer(list(parameters.items())).param_groups)

    @property
    def _unfit(self) -> str | None:
        """Why f cannot be measured on this run, or None."""
        settings = self._run.settings
        if settings["model"] != "gpt":
            return f"model = {settings['model']!r}: its loss is not a mean over sequences of one length; allowed is gpt"
        if settings["dropout"] > 0:
            return f"dropout = {settings['dropout']:g} in training: the gradients are not those of one f; allowed is 0"
        if self.lost is not None:
            return f"the run diverged: {self.lost.reason}"
        return None

    def measure(self, name: str) -> list[Constant]:
        """One constant, at each point where it is measured."""
        if name in OF_SETTINGS:
            return [setting_of_run(name, self.config, self.summary, self._groups(self._objective(1).parameters()))]
        if name == "rho":
            return [rho(self.norm, self._objective(1).parameters())]
        if (why := self._unfit) is not None:
            return [not_applicable(name, why, str(self.folder))]
        if name == "Delta0":
            return [gap_of_losses(*self._losses, self.level)]
        if name == "f_star":
            return [f_star_of_losses(self._losses[1], self.level)]
        if name == "E0":
            return [self._start_error()]
        if name in OF_STEPS:
            return [self._steps.measure(name)]
        return [(self._L if name == "L" else self._sigma)(where, x) for where, x in self._points]

    def _L(self, where: str, x: dict[str, Tensor]) -> Constant:
        objective = self._objective(CURVATURE_SEQUENCES)
        found = upper_smoothness(lambda v: objective.hessian_product(x, dict(v)), self.norm, x, level=self.level)
        at = f"{where}, {CURVATURE_SEQUENCES} further sequences"
        constant = found.constant(at)
        note = f"of the mean over these sequences at this point only: no bound on L; {constant.note}"
        return replace(constant, high=math.inf, level=None, note=note)

    def _gradients(self, x: dict[str, Tensor]) -> list[Weights]:
        """Of the further batches."""
        batch, objective = self._batch, self._objective(self.draws * self._batch)
        return [objective.batch_gradient(x, slice(i * batch, (i + 1) * batch)) for i in range(self.draws)]

    @property
    def _batch(self) -> int:
        return self.config.plan.microbatches * self.config.sequences

    def _sigma(self, where: str, x: dict[str, Tensor]) -> Constant:
        batch, at = self._batch, f"{where}, {self.draws} further batches"
        check_numbers(self.draws, x)
        v = per_sample_variance(stack(self._gradients(x)), batch, where=at, level=self.level)
        if v.value is None or v.low is None or v.high is None:
            return replace(v, name="sigma")
        note = v.note.replace("of one sample, from batches of", "of a batch of")
        value, low, high = (math.sqrt(max(end, 0.0) / batch) for end in (v.value, v.low, v.high))
        return Constant("sigma", value, "estimated", at, low, high, self.level, v.method, v.n, note)

    @cached_property
    def _steps(self) -> RunSteps:
        return RunSteps(self.config, self.corpus.text, self.summary["losses"], self.windows)

    def _start_error(self) -> Constant:
        """E dual(m_0 - grad f(x_0)): m_0 is 0, or the first batch's gradient."""
        where, x = self._points[0]
        group = self._groups(self._objective(1).parameters())[0]
        if "momentum_start" not in group:
            why = f"optimizer {self.config.optimizer!r} has no m_0 of the theorems; allowed is lmo"
            return not_applicable("E0", why, where)
        steps, norm = self._steps, self.norm
        _, g = steps.objective.finite.value_and_gradient(x)
        at = f"{where}; f over {steps.of_f}"
        if group["momentum_start"] == "gradient":
            errors = [norm.dual(minus(row, g)) for row in self._gradients(x)]
            return mean_of("E0", errors, at, self.level, f"m_0 = the first gradient: {self.draws} further batches")
        value, note = norm.dual(g), "m_0 = 0: dual norm of the full gradient"
        if steps.objective.whole:
            return exact("E0", value, at, note)
        note += "; of a part, whose sampling makes it rather too large"  # the dual norm is convex
        return Constant("E0", value, "estimated", at, method="enumeration of a part", note=note)

    @cached_property
    def _losses(self) -> tuple[np.ndarray, np.ndarray]:
        """At the start and at the last weights, on the same further batches."""
        batch = self._batch
        inputs, targets = self._fresh(self.draws * batch)
        layers, loss = self.config.make_layers(), self.config.loss
        parts = [slice(i * batch, (i + 1) * batch) for i in range(self.draws)]
        pieces = [FiniteObjective(layers, inputs[part], targets[part], loss) for part in parts]
        start, last = (np.array([piece.value(x) for piece in pieces]) for _, x in self._points)
        return start, last


def replace_correction(config: TrainConfig) -> TrainConfig:
    """The run without its correction: the optimizer itself."""
    from pipeline.optim.corrections import CorrectionOptions

    return replace(config, correction="none", correction_options=CorrectionOptions())


def run_constants(setting: RunConstants, names: Sequence[str], on_name: OnName = quiet) -> list[Constant]:
    """The constants of these names; what cannot be had is not applicable with the reason."""
    return constants_of(names, NAMES, setting.measure, on_name)
