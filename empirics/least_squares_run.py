"""A run on matrix least squares as the recorder sees it, step by step, and what its theorems need besides."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from empirics.estimators.model_norm import ModelNorm
from empirics.lmo_path import Setting, walk
from empirics.lmo_recorder import LMORecorder
from empirics.problems.matrix_least_squares import MatrixLeastSquares
from empirics.virtual_iterate import Feedback

NAME = "x"


def recorder_of(
    problem: MatrixLeastSquares,
    setting: Setting,
    m0: np.ndarray | None = None,
    shifted: bool = True,
    every: int = 1,
    reference: int | None = None,
) -> LMORecorder:
    """A recorder for a run of that setting, with the problem's exact gradients."""

    def objective(weights: Mapping[str, Tensor]) -> tuple[float, dict[str, Tensor]]:
        at = weights[NAME].numpy()
        residual = problem.A @ at @ problem.B - problem.Y
        return float((residual**2).sum()) / 2, {NAME: torch.from_numpy(problem.A.T @ residual @ problem.B.T)}

    return LMORecorder(
        norm=ModelNorm({NAME: (setting.norm, 1.0)}),
        eta=setting.eta,
        alpha=setting.alpha,
        tau=setting.tau,
        feedback=None if setting.correction == "none" else Feedback.of(setting.tau, setting.form),
        objective=objective,
        every=every,
        shifted=shifted,
        nesterov=setting.nesterov,
        reference=reference,
        start=None if m0 is None else {NAME: torch.from_numpy(np.asarray(m0, dtype=float))},
    )


def record_run(
    problem: MatrixLeastSquares,
    setting: Setting,
    noise: np.ndarray,
    x0: np.ndarray | None = None,
    m0: np.ndarray | None = None,
    recorder: LMORecorder | None = None,
) -> LMORecorder:
    """Run as `empirics.pathwise.record` does, and record; memory does not grow with the path."""
    recorder = recorder_of(problem, setting, m0) if recorder is None else recorder
    tensors: dict[int, tuple[np.ndarray, dict[str, Tensor]]] = {}

    def of(array: np.ndarray) -> dict[str, Tensor]:
        """The same array is the same tensor: the recorder knows points again by identity."""
        if id(array) not in tensors:
            tensors[id(array)] = (array, {NAME: torch.from_numpy(array)})
        return tensors[id(array)][1]

    for step in walk(problem, setting, noise, x0, m0):
        gradient, update = ({NAME: torch.from_numpy(a)} for a in (step.gradient, step.update))
        momentum = {NAME: torch.from_numpy(step.momentum)}
        recorder.observe(step.k, of(step.x), of(step.x_next), of(step.taken), gradient, update, momentum)
        while len(tensors) > setting.tau + 3:
            tensors.pop(next(iter(tensors)))
    recorder.flush()
    return recorder
