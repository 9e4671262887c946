"""Real optimizer code on a noisy quadratic against the exact theory: one joint test of known level and power.

torch.optim.SGD inside ErrorFeedback and Delayed runs on a parameter of shape [replicas, modes]: one run is `replicas`
independent runs. With Gaussian noise and a linear method each x_k is Gaussian with the mean and variance that
`theory.quadratic` predicts, so for every (setting, step, mode) two tests are exact, not asymptotic:
    mean        sqrt(R) (average of x - mean)/sd           ~ N(0, 1)
    variance    sum (x - mean)^2 / variance                ~ chi^2 with R degrees of freedom
The joint test fails if the smallest of all two-sided p-values is below FALSE_ALARM / (number of tests)
(Bonferroni: valid however the tests depend on each other).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy import stats

from empirics.errors import InputError
from empirics.impulse import Impulse, growth_per_step, impulse
from empirics.problems.noisy_quadratic import NoisyQuadratic
from pipeline.optim.delayed import Delayed
from pipeline.optim.error_feedback import ErrorFeedback
from theory.quadratic import QuadraticMethod

FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Setting:
    """A method (tau, beta, dampening, correction, form, nesterov), its step eta and the problem."""

    name: str
    tau: int
    beta: float
    dampening: float
    eta: float
    problem: NoisyQuadratic
    correction: str = "none"
    form: str = "extrapolate"
    nesterov: bool = False

    def __post_init__(self) -> None:
        if self.correction not in ("none", "error-feedback"):
            raise InputError(f"correction: {self.correction!r}; allowed are none, error-feedback")
        if self.nesterov and (self.dampening or not self.beta):
            raise InputError("nesterov: True; allowed with dampening = 0 and beta > 0, as in torch.optim.SGD")
        if not 0 < self.eta < math.inf:
            raise InputError(f"eta: {self.eta!r}; allowed is a finite number > 0")
        method_of(self)  # the theory refuses what it does not cover

    def predict(self, steps: int, method: QuadraticMethod | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of every mode, shapes [steps+1, modes], for this method or another one."""
        used = method_of(self) if method is None else method
        p = self.problem
        return used.predict(self.eta, np.array(p.curvatures), p.noise_std, p.x0, steps)


def method_of(setting: Setting) -> QuadraticMethod:
    """The theory's description of a setting."""
    return QuadraticMethod(
        tau=setting.tau,
        beta=setting.beta,
        dampening=setting.dampening,
        correction=setting.correction,
        form=setting.form,
        nesterov=setting.nesterov,
    )


def off_by_one(setting: Setting) -> dict[str, QuadraticMethod]:
    """The methods that a mistake of one in tau would give: the delay alone, or delay and correction together."""
    own = method_of(setting)
    out: dict[str, QuadraticMethod] = {}
    for tau in (setting.tau - 1, setting.tau + 1):
        if tau < 0:
            continue
        corrected = setting.correction == "error-feedback" and tau > 0
        out[f"tau = {tau}"] = replace(own, tau=tau, correction=setting.correction if corrected else "none")
        if corrected and setting.form == "extrapolate":
            label = f"tau = {tau}, correction for {setting.tau}"
            out[label] = replace(own, tau=tau, coefficient=float(setting.tau))
    return out


def optimizer_of(p: torch.nn.Parameter, method: QuadraticMethod, eta: float) -> Delayed:
    """The real code of a method. Raises InputError for one that no optimizer here is."""
    if method.correction not in ("none", "error-feedback") or method.start != "gradient":
        raise InputError(f"method: {method}; allowed are none and error-feedback, from the start 'gradient'")
    sgd = torch.optim.SGD(
        [p],
        lr=eta,
        momentum=method.beta,
        dampening=method.dampening if method.beta else 0.0,
        nesterov=method.nesterov,
        foreach=False,
    )
    if method.correction == "error-feedback":
        return Delayed(ErrorFeedback(sgd, method.tau, method.form, method.coefficient), method.tau)
    return Delayed(sgd, method.tau)


def optimizer_for(p: torch.nn.Parameter, setting: Setting) -> Delayed:
    """The real code under test."""
    return optimizer_of(p, method_of(setting), setting.eta)


def trajectory(setting: Setting, replicas: int, steps: int, seed: int) -> Iterator[torch.Tensor]:
    """Yield x_0, x_1, ..., x_steps of the real run, each a tensor [replicas, modes] valid until the next one."""
    generator = torch.Generator().manual_seed(seed)
    p = torch.nn.Parameter(setting.problem.start(replicas))
    optimizer = optimizer_for(p, setting)
    yield p.detach()
    for _ in range(steps):
        p.grad = setting.problem.gradient(p.detach(), generator)
        optimizer.step()
        yield optimizer.newest()[0].detach()


@dataclass(frozen=True)
class Measured:
    """Moments of a run about the predicted mean, per step and mode, and the loss; R replicas.

    mean, variance [K+1, M]: predicted; shift [K+1, M]: average of x - mean; square [K+1, M]: sum of
    (x - mean)^2; loss, loss_error [K+1]: average over replicas of sum_j lam_j x_j^2/2 and its standard error.
    """

    setting: Setting
    replicas: int
    mean: np.ndarray
    variance: np.ndarray
    shift: np.ndarray
    square: np.ndarray
    loss: np.ndarray
    loss_error: np.ndarray

    def against(self, method: QuadraticMethod) -> Measured:
        """The same run, centred on another method's prediction."""
        mean, variance = self.setting.predict(len(self.loss) - 1, method)
        moved = self.mean - mean
        square = self.square + self.replicas * (2 * self.shift * moved + moved**2)
        return replace(self, mean=mean, variance=variance, shift=self.shift + moved, square=square)

    def p_values(self) -> np.ndarray:
        """Two-sided p-values of the exact tests, shape [steps, modes, 2] (mean, variance), from step 1 on."""
        R, variance = self.replicas, self.variance[1:]
        if self.setting.problem.noise_std == 0:
            raise InputError("noise_std: 0; allowed is a number > 0 for a statistical test")
        with np.errstate(divide="ignore", invalid="ignore"):  # a predicted variance of 0 is rejected below
            z = self.shift[1:] * np.sqrt(R / variance)
            total = self.square[1:] / variance
        two = 2.0 * np.minimum(stats.chi2.sf(total, R), stats.chi2.cdf(total, R))
        p = np.stack([2.0 * stats.norm.sf(np.abs(z)), np.minimum(two, 1.0)], axis=-1)
        return np.where(np.isfinite(p), p, 0.0)  # a run that left float64 is rejected

    def expected_loss(self, method: QuadraticMethod | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Expected loss [K+1] under a method, and the exact standard error of its average over the replicas."""
        lam = np.array(self.setting.problem.curvatures)
        mean, variance = self.setting.predict(len(self.loss) - 1, method)
        spread = (lam**2 / 4 * (2 * variance**2 + 4 * mean**2 * variance)).sum(axis=1)
        return (lam / 2 * (mean**2 + variance)).sum(axis=1), np.sqrt(spread / self.replicas)

    def standard_errors_from(self, method: QuadraticMethod) -> tuple[float, float]:
        """Largest distance of the loss curve from another method's prediction, in standard errors: measured, and
        expected from the two theories (its power: the measured one is a normal variable around it, unit spread).
        """
        other, error = self.expected_loss(method)
        own, own_error = self.expected_loss()
        scale = np.maximum(error, own_error)[1:]
        measured = np.abs(self.loss - other)[1:] / scale
        expected = np.abs(own - other)[1:] / scale
        return float(measured.max()), float(expected.max())


def measure(setting: Setting, replicas: int, steps: int, seed: int) -> Measured:
    """Run the real code and keep what the tests need. Raises InputError for replicas < 2 or steps < 1."""
    if replicas < 2 or steps < 1:
        raise InputError(f"replicas, steps: {replicas!r}, {steps!r}; allowed are replicas >= 2 and steps >= 1")
    mean, variance = setting.predict(steps)
    lam = torch.tensor(setting.problem.curvatures, dtype=torch.float64)
    shift, square = np.empty_like(mean), np.empty_like(mean)
    loss, error = np.empty(steps + 1), np.empty(steps + 1)
    for k, x in enumerate(trajectory(setting, replicas, steps, seed)):
        centred = x - torch.from_numpy(mean[k])
        shift[k] = centred.mean(dim=0).numpy()
        square[k] = (centred**2).sum(dim=0).numpy()
        losses = (x * x) @ lam / 2
        loss[k] = float(losses.mean())
        # Where nothing is random yet the spread is round-off, not a standard error.
        error[k] = float(losses.std()) / math.sqrt(replicas) if variance[k].any() else 0.0
    return Measured(setting, replicas, mean, variance, shift, square, loss, error)


def noise_free_error(setting: Setting, steps: int) -> float:
    """max |x_k (real code, no noise) - predicted mean| / max |predicted mean| over steps and modes."""
    quiet = replace(setting, problem=replace(setting.problem, noise_std=0.0))
    mean, _ = quiet.predict(steps)
    path = np.array([x[0].numpy().copy() for x in trajectory(quiet, 1, steps, 0)])
    error = float(np.abs(path - mean).max() / np.abs(mean).max())
    return error if math.isfinite(error) else math.inf


def growth(method: QuadraticMethod, h: list[float], steps: int) -> np.ndarray:
    """Growth per step of the real code at each h = eta lam, started at x_0 = 1; shape of h. Below 1: it decays.

    See `empirics.impulse.growth_per_step`. Raises InputError for a method that a Setting cannot describe.
    """
    own = {name: getattr(method, name) for name in ("tau", "beta", "dampening", "correction", "form", "nesterov")}
    setting = Setting("growth", eta=1.0, problem=NoisyQuadratic(tuple(h), 0.0), **own)
    if method_of(setting) != method:
        raise InputError(f"method: {method}; allowed are a coefficient of None and the start 'gradient'")
    return growth_per_step(np.array([x[0].numpy().copy() for x in trajectory(setting, 1, steps, 0)]))


def stationary_variances(method: QuadraticMethod, h: np.ndarray) -> np.ndarray:
    """For eta = s = 1 and lam = h; inf where the method is not stable."""
    radius = np.atleast_1d(method.spectral_radius(h))
    return np.array(
        [method.stationary_variance(1.0, x, 1.0) if r < 1 else math.inf for x, r in zip(h, radius, strict=True)]
    )


def impulse_of(setting: Setting, h: np.ndarray) -> Impulse:
    """Response of the real code at these h, recorded until its energy has fallen by 1e-16; shape [steps, modes]."""
    radius = float(np.max(method_of(setting).spectral_radius(h)))
    steps = 100 + math.ceil(16 * math.log(10) / (-2 * math.log(radius)))
    return impulse(lambda ps: optimizer_for(ps[0], replace(setting, eta=1.0)), h, steps)
