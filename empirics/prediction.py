"""Predicted against measured delay gap: the local quadratic model of a problem at a point.

At w_0 take f(w_0 + d) = f_0 + <g, d> + <d, H d>/2 and the noise of the gradient as it is there, covariance C/b for a
batch of b. A linear method then moves the mode of curvature lam by m_k times its gradient and adds noise of variance
(C/b) V_k, both known (`theory.quadratic`, responses to a constant gradient and to noise of 1), so
    E f_k = f_0 + sum_i g_i^2 (m_k + lam_i m_k^2/2) + sum_i (C_ii/b) lam_i V_k/2:
sums over two measures of H, that of g and that of the noise, which Lanczos gives by products with H alone
(`empirics.estimators.spectral_measure`): exact for polynomials of degree 2m - 1, so to round-off for the first steps.

Kinds: on a quadratic whose noise is the same everywhere it is an equality. On a network it is a report: how far the
model is right is what is measured, with intervals over seeds; nothing gates on it.
Checked by tests/empirics/test_prediction.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from empirics.errors import InputError
from empirics.estimators.spectral_measure import spectral_measure
from empirics.monte_carlo import optimizer_of
from empirics.problems.replicas import ReplicaLoss
from empirics.statistics import Interval, Ratio, fieller_ratio, paired_interval, student_interval
from pipeline.optim.delayed import Delayed
from theory.quadratic import QuadraticMethod
from theory.quadratic.state_space import responses

#: A loss beyond this multiple of the first one: the run is labelled, and nothing is averaged.
DIVERGED = 100.0


@dataclass(frozen=True)
class LocalQuadratic:
    """f_0, and the measures of g and of one sample's noise: nodes and weights of each. products: with the Hessian."""

    f0: float
    nodes: np.ndarray
    weights: np.ndarray
    noise_nodes: np.ndarray
    noise_weights: np.ndarray
    products: int

    @property
    def sharpness(self) -> float:
        """The largest node."""
        return float(max(self.nodes.max(), self.noise_nodes.max()))

    @property
    def negative_share(self) -> float:
        """How much of the squared gradient lies along negative curvature."""
        return float(self.weights[self.nodes < 0].sum() / self.weights.sum()) if self.weights.any() else 0.0

    @property
    def noise_trace(self) -> float:
        """tr C: variance of one sample's gradient."""
        return float(self.noise_weights.sum())

    def expected_loss(self, method: QuadraticMethod, eta: float, steps: int, batch: int) -> np.ndarray:
        """E f_k of the model, k = 0..steps; not finite where the method diverges out of float64."""
        if not 0 < eta < math.inf or steps < 0 or batch < 1:
            raise InputError(f"eta, steps, batch: {eta!r}, {steps!r}, {batch!r}; allowed are > 0, >= 0, >= 1")
        _, first, later = responses(method, eta * self.nodes, 0.0, steps)
        with np.errstate(over="ignore", invalid="ignore"):
            moved = _sum_of_past(first, later)
            fall = (self.weights * (eta * moved + self.nodes * (eta * moved) ** 2 / 2)).sum(axis=1)
            _, first, later = responses(method, eta * self.noise_nodes, 0.0, steps)
            spread = _sum_of_past(first**2, later**2) * eta**2
            rise = (self.noise_weights * self.noise_nodes * spread).sum(axis=1) / (2 * batch)
        return np.asarray(self.f0 + fall + rise)


def _sum_of_past(first: np.ndarray, later: np.ndarray) -> np.ndarray:
    """first[k] + later[1] + ... + later[k-1]: all that has arrived at step k."""
    out = first.copy()
    out[2:] += np.cumsum(later[1:-1], axis=0)
    return out


def measure_local(problem: ReplicaLoss, w0: Tensor, lanczos: int = 20) -> LocalQuadratic:
    """The model at w0 [n]: `lanczos` steps from the gradient and from the noise of every sample, all at once."""
    w = w0.detach()[None]
    g = problem.gradient(w)
    many = w.expand(problem.samples, -1)
    noise = problem.gradient(many, torch.arange(problem.samples)[:, None]) - g
    nodes, weights = spectral_measure(lambda v: problem.hessian_product(w, v), g, lanczos)
    noise_nodes, noise_weights = spectral_measure(lambda v: problem.hessian_product(many, v), noise, lanczos)
    return LocalQuadratic(
        float(problem.value(w)[0]),
        nodes[0],
        weights[0],
        noise_nodes.ravel(),
        noise_weights.ravel() / problem.samples,
        nodes.shape[1] + noise_nodes.shape[1] * problem.samples,
    )


@dataclass(frozen=True)
class ReplicaRuns:
    """f at x_0 .. x_K of every replica, [K+1, R], and the drift |U_k - U_{k-1}|/|U_k| of its updates, [K-1, R]."""

    losses: np.ndarray
    drift: np.ndarray

    @property
    def diverged(self) -> bool:
        """Whether some replica left float64, or DIVERGED times the value that it started from."""
        return not bool((self.losses <= DIVERGED * np.abs(self.losses[0])).all())


def run_replicas(
    problem: ReplicaLoss, w0: Tensor, make: Callable[[torch.nn.Parameter], Delayed], rows: Tensor
) -> ReplicaRuns:
    """Runs of the real optimizer code from w0 [n]; rows [K, R, b]: what each replica samples at each step."""
    if rows.ndim != 3:
        raise InputError(f"rows: shape {tuple(rows.shape)}; allowed is (steps, replicas, batch)")
    p = torch.nn.Parameter(w0.detach().repeat(rows.shape[1], 1))
    optimizer = make(p)
    x, before, losses, drift = p.detach().clone(), None, [problem.value(p.detach())], []
    for sampled in rows:
        p.grad = problem.gradient(p, sampled)
        optimizer.step()
        new = optimizer.newest()[0].detach().clone()
        losses.append(problem.value(new))
        update = new - x
        if before is not None:
            drift.append((update - before).norm(dim=1) / update.norm(dim=1))
        x, before = new, update
    return ReplicaRuns(
        torch.stack(losses).numpy(), torch.stack(drift).numpy() if drift else np.empty((0, rows.shape[1]))
    )


def draw_rows(problem: ReplicaLoss, steps: int, seeds: int, batch: int, seed: int) -> Tensor:
    """Samples of every step, replica and place in the batch, with replacement."""
    if min(steps, batch) < 1 or seeds < 2:
        raise InputError(f"steps, seeds, batch: {steps!r}, {seeds!r}, {batch!r}; allowed are >= 1, >= 2, >= 1")
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(problem.samples, (steps, seeds, batch), generator=generator)


def three_arms(tau: int, beta: float = 0.0, dampening: float = 0.0) -> dict[str, QuadraticMethod]:
    """Without delay, with it, and with error feedback. Raises InputError for tau < 1."""
    if tau < 1:
        raise InputError(f"tau: {tau!r}; allowed is an integer >= 1, there is no gap without a delay")
    plain = QuadraticMethod(tau=tau, beta=beta, dampening=dampening)
    return {"sync": replace(plain, tau=0), "delayed": plain, "corrected": replace(plain, correction="error-feedback")}


@dataclass(frozen=True)
class GapPrediction:
    """Average over the window first..last of f delayed - f without delay, and the share of it that error feedback takes
    away: predicted, and measured over paired seeds. status: "finite", or "diverged" with nothing measured.
    """

    problem: str
    tau: int
    beta: float
    eta: float
    first: int
    last: int
    seeds: int
    status: str
    predicted_gap: float
    measured_gap: Interval | None
    predicted_share: float
    measured_share: Ratio | None
    kind: str = "report"

    @property
    def gap_ratio(self) -> float:
        """Predicted over measured; NaN where nothing was measured or it is 0."""
        if self.measured_gap is None or not self.measured_gap.value:
            return math.nan
        return self.predicted_gap / self.measured_gap.value

    @property
    def covered(self) -> bool:
        """Whether the measured interval has the predicted gap in it."""
        return self.measured_gap is not None and self.measured_gap.covers(self.predicted_gap)

    def as_dict(self) -> dict[str, Any]:
        """For a result file."""
        return asdict(self) | {"gap_ratio": self.gap_ratio, "covered": self.covered}


def predict_gap(
    problem: ReplicaLoss,
    w0: Tensor,
    local: LocalQuadratic,
    tau: int,
    eta: float,
    beta: float = 0.0,
    dampening: float = 0.0,
    batch: int = 4,
    window: tuple[int, int] = (1, 60),
    seeds: int = 100,
    seed: int = 0,
    level: float = 0.95,
    real_tau: int | None = None,
) -> GapPrediction:
    """Prediction and runs from w0. The arms share their batches, so differences are paired.

    real_tau: a delay of the runs that the prediction does not know of, for tests that have to fail.
    """
    first, last = window
    if not 0 <= first <= last:
        raise InputError(f"window: {window!r}; allowed are 0 <= first <= last")
    arms = three_arms(tau, beta, dampening)
    predicted = {name: local.expected_loss(m, eta, last, batch)[first:].mean() for name, m in arms.items()}
    rows = draw_rows(problem, last, seeds, batch, seed)
    real = three_arms(tau if real_tau is None else real_tau, beta, dampening)
    runs = {name: run_replicas(problem, w0, partial(optimizer_of, method=m, eta=eta), rows) for name, m in real.items()}
    measured = {name: run.losses[first:].mean(axis=0) for name, run in runs.items()}
    gap = float(predicted["delayed"] - predicted["sync"])
    share = float(predicted["delayed"] - predicted["corrected"]) / gap if gap else math.nan
    cell = GapPrediction(problem.name, tau, beta, eta, first, last, seeds, "finite", gap, None, share, None)
    if any(run.diverged for run in runs.values()):
        return replace(cell, status="diverged")
    return replace(
        cell,
        measured_gap=paired_interval(measured["delayed"], measured["sync"], level),
        measured_share=fieller_ratio(
            measured["delayed"] - measured["corrected"], measured["delayed"] - measured["sync"], level
        ),
    )


def settle(problem: ReplicaLoss, steps: int, eta: float) -> Tensor:
    """A point on the way: full-gradient descent from the problem's start, [n]."""
    w = problem.start[None]
    for _ in range(steps):
        w = w - eta * problem.gradient(w)
    if not bool(torch.isfinite(w).all()):
        raise InputError(f"eta: {eta!r}; the run diverges and leaves float64")
    return w[0]


@dataclass(frozen=True)
class GapReport:
    """How good the predictions are, over cells of independent problems. covered: share of the measured intervals that
    have the prediction in them (about their level, were the model exact); ratio: mean of predicted/measured gaps, with
    Student's interval; share_error: median of |predicted - measured|/|measured| of the recovered shares.
    left_out: cells that diverged, or whose gap's interval has 0 in it.
    """

    cells: tuple[GapPrediction, ...]
    left_out: int
    covered: float
    ratio: Interval
    share_error: float
    kind: str = "report"

    def as_dict(self) -> dict[str, Any]:
        """For a result file."""
        return asdict(self) | {"cells": [cell.as_dict() for cell in self.cells]}


def gap_report(cells: Sequence[GapPrediction], level: float = 0.95) -> GapReport:
    """Sum the cells up. Raises InputError for fewer than 2 that have a gap."""
    used = [c for c in cells if c.measured_gap is not None and not c.measured_gap.covers(0.0)]
    if len(used) < 2:
        raise InputError(f"cells: {len(used)} with a gap; allowed are at least 2")
    shares = [
        abs(c.predicted_share - c.measured_share.value) / abs(c.measured_share.value)
        for c in used
        if c.measured_share is not None and c.measured_share.value
    ]
    return GapReport(
        tuple(cells),
        len(cells) - len(used),
        float(np.mean([c.covered for c in used])),
        student_interval([c.gap_ratio for c in used], level),
        float(np.median(shares)) if shares else math.nan,
    )
