"""Theorems in expectation, certified with noise: all sign sequences of a short run, so the expectation is exact.

The noise of update k is s_k M with a fair sign s_k and one fixed matrix M whose nuclear norm is rho times its
Frobenius norm sigma. K updates have 2^K equally likely paths; the real optimizer runs all of them at once, one
parameter a path, and the mean over paths is the expectation itself. No sampling error is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from empirics.errors import InputError
from empirics.lmo_path import Setting, build
from empirics.norms import get_norm
from empirics.problems.matrix_least_squares import MatrixLeastSquares
from pipeline.optim.error_feedback import ErrorFeedback
from theory.bound import Bound
from theory.errors import InputError as TheoryInputError
from theory.registry import get_bound

MOST_UPDATES = 12  # 4096 paths


def value_of(bound: Bound, values: dict[str, float]) -> dict[str, float]:
    """The bound's terms; all NaN where the values break one of its conditions (a run the theorem excludes)."""
    try:
        return {name: float(value) for name, value in bound.evaluate_terms(**values).items()}
    except TheoryInputError:
        return {name: math.nan for name in bound.terms}


def ratio(measured: float, bound: float) -> float:
    """measured/bound; inf where the bound does not exist, so that a claim on it fails."""
    return measured / bound if bound > 0 else math.inf


@dataclass(frozen=True)
class Enumerated:
    """A bound against the exact expectation of its left side; `values` are the constants put in."""

    bound: Bound
    setting: Setting
    paths: int
    measured: float
    values: dict[str, float]

    @property
    def terms(self) -> dict[str, float]:
        """The bound's terms at the constants."""
        return value_of(self.bound, self.values)

    @property
    def right(self) -> float:
        return sum(self.terms.values())

    @property
    def utilisation(self) -> float:
        return ratio(self.measured, self.right)


def sign_sequences(updates: int) -> np.ndarray:
    """All sequences of `updates` signs, shape [2^updates, updates]."""
    if not 1 <= updates <= MOST_UPDATES:
        raise InputError(f"updates: {updates!r}; allowed are integers from 1 to {MOST_UPDATES}")
    bits = (np.arange(2**updates)[:, None] >> np.arange(updates)[None, :]) & 1
    return 2.0 * bits - 1.0


def run_all_paths(
    problem: MatrixLeastSquares, setting: Setting, x0: np.ndarray, signs: np.ndarray, M: np.ndarray
) -> dict[str, np.ndarray]:
    """Run the real optimizer on every path. signs [R, N], M [rows, cols].

    Returns x, y [N+1, R, rows, cols], m, taken [N, R, rows, cols], as in `empirics.pathwise.Path`.
    """
    R, N = signs.shape
    parameters = [torch.nn.Parameter(torch.from_numpy(x0.copy())) for _ in range(R)]
    optimizer, lmo = build(parameters, setting)
    for p in parameters:
        lmo.state[p]["momentum"] = torch.zeros_like(p)
    corrected = isinstance(optimizer.base, ErrorFeedback)

    def snapshot(tensors: list[torch.Tensor]) -> np.ndarray:
        return torch.stack([tensor.detach() for tensor in tensors]).numpy()

    x = [snapshot(list(parameters))]
    y, m, taken = [x[0]], [], []
    for k in range(N):
        taken.append(snapshot(list(parameters)))
        g = problem.grad(taken[-1]) + signs[:, k, None, None] * M
        for p, gradient in zip(parameters, torch.from_numpy(g), strict=True):
            p.grad = gradient
        optimizer.step()
        x.append(snapshot(optimizer.newest()))
        y.append(snapshot(optimizer.virtual_parameters()) if corrected else x[-1])
        m.append(snapshot([lmo.state[p]["momentum"] for p in parameters]))
    return {"x": np.array(x), "y": np.array(y), "m": np.array(m), "taken": np.array(taken)}


def enumerate_paths(
    problem: MatrixLeastSquares, setting: Setting, x0: np.ndarray | None = None, seed: int = 0
) -> list[Enumerated]:
    """All theorems that apply to the setting, against exact expectations.

    Without correction: delayed-lmo, its finite form, shifted and momentum. With error feedback: Theorem 2 at y (any
    delay), and at tau = 1 also at x. Raises InputError for sigma = 0 or more than MOST_UPDATES updates.
    """
    if setting.sigma <= 0:
        raise InputError(f"sigma: {setting.sigma!r}; allowed is a number > 0, the runs have noise")
    signs = sign_sequences(setting.updates)
    start = np.zeros(problem.shape) if x0 is None else np.asarray(x0, dtype=float)
    M = problem.noise_matrices(setting.sigma, 1, seed)[0]
    run = run_all_paths(problem, setting, start, signs, M)
    norm, first = get_norm(setting.norm), setting.updates - setting.K

    def expected(points: np.ndarray) -> float:
        """Mean over steps and paths of the gradient's dual norm."""
        return float(norm.dual(problem.grad(points)).mean())

    at_x, at_y = expected(run["x"][first:-1]), expected(run["y"][first:-1])
    constants = {
        "eta": setting.eta,
        "alpha": setting.alpha,
        "tau": float(setting.tau),
        "sigma": setting.sigma,
        "rho": problem.rho(setting.norm),
        "L": problem.L(setting.norm),
        "K": float(setting.K),
        "Delta0": float(problem.f(start)) - problem.f_star,
        "E0": float(norm.dual(problem.grad(start))),
    }
    if first:
        delta = norm.norm(run["y"][first:-1] - run["taken"][first:]) / setting.eta
        constants["dbar"] = float(delta.mean())
        constants["Delta1"] = float(problem.f(run["y"][1]).mean()) - problem.f_star
        pairs = [("error-feedback-any-delay", at_y)]
        if setting.tau == 1:
            pairs += [("error-feedback", at_y), ("error-feedback-at-x", at_x)]
    else:
        pairs = [
            ("delayed-lmo", at_x),
            ("delayed-lmo-finite", at_x),
            ("delayed-lmo-shifted", expected(run["taken"])),
            ("delayed-lmo-momentum", float(norm.dual(run["m"]).mean())),
        ]
    out = []
    for name, measured in pairs:
        bound = get_bound(name)
        values = {symbol: constants[symbol] for symbol in bound.symbols}
        out.append(Enumerated(bound, setting, len(signs), measured, values))
    return out
