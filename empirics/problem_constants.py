"""The constants of a problem at its start, each with how it is known: closed form first, else the estimator's word."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from empirics.constants import Constant, not_applicable
from empirics.elsewhere import ELSEWHERE
from empirics.errors import InputError
from empirics.estimators.gradient_noise import dual_noise, exact_variance, known_mean_sigma
from empirics.estimators.hessian_lipschitz import along_path
from empirics.estimators.initial_gap import f_star, initial_gap
from empirics.estimators.lanczos import Spectrum, extreme_eigenvalues
from empirics.estimators.model_norm import AnyNorm, model_norm
from empirics.estimators.norm_ratio import effective_rho, rho
from empirics.estimators.start_error import MOST, start_error
from empirics.estimators.upper_smoothness import upper_smoothness
from empirics.estimators.weights import Weights, combine, flatten, minus
from empirics.problems.interface import Problem, check_batch
from pipeline.errors import InputError as PipelineInputError

#: Steps of the path on which the Hessian's change is measured, and their length relative to the weights.
PATH_STEPS, PATH_LENGTH = 8, 0.01
#: Most samples that are drawn in all, draws times batch: some ten seconds' work.
MOST_SAMPLES = 1_000_000
#: Most numbers that all gradients drawn may hold together: 2 GB in float64.
MOST_NUMBERS = 2**28


def check_draws(draws: int, batch: int, what: str = "draws times batch") -> None:
    """Raises InputError for more samples than are drawn in reasonable time."""
    if draws * batch > MOST_SAMPLES:
        raise InputError(f"{what}: {draws} x {batch}; allowed is at most {MOST_SAMPLES}; give fewer draws")


def check_numbers(draws: int, weights: Weights) -> None:
    """Raises InputError for gradients that together do not fit into a usual memory."""
    size = sum(v.numel() for v in weights.values())
    if draws * size > MOST_NUMBERS:
        raise InputError(f"draws: {draws}; allowed are at most {MOST_NUMBERS // size} with {size} weights")


@dataclass(frozen=True)
class ProblemConstants:
    """problem in the norm of that name; batch: samples a gradient; draws: gradients drawn where none can be counted."""

    problem: Problem
    norm_name: str
    batch: int = 1
    draws: int = 64
    seed: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        check_batch(self.batch)
        if self.draws < 2:
            raise InputError(f"draws: {self.draws!r}; allowed is an integer >= 2")
        check_draws(self.draws, self.batch)
        if not 0 < self.level < 1:
            raise InputError(f"level: {self.level!r}; allowed is 0 < level < 1")
        self.norm  # noqa: B018  (refuses an unknown norm)

    @cached_property
    def start(self) -> dict[str, torch.Tensor]:
        return self.problem.start()

    @cached_property
    def norm(self) -> AnyNorm:
        return model_norm(self.norm_name, self.start)

    @cached_property
    def _known(self) -> dict[str, Constant]:
        return self.problem.known(self.norm_name)

    @cached_property
    def _noises(self) -> list[Weights]:
        check_numbers(self.draws, self.start)
        generator = torch.Generator().manual_seed(self.seed)
        _, g = self.problem.value_and_gradient(self.start)
        return [minus(self.problem.draw(self.start, self.batch, generator), g) for _ in range(self.draws)]

    @cached_property
    def _spectrum(self) -> Spectrum:
        return extreme_eigenvalues(self.product, self.start, "both", seed=self.seed, level=self.level)

    def product(self, v: Weights) -> Weights:
        """The Hessian at the start times v."""
        return self.problem.hessian_product(self.start, v)

    def L(self) -> Constant:
        if "L" in self._known:
            return self._known["L"]
        found = upper_smoothness(self.product, self.norm, self.start, seed=self.seed, level=self.level)
        return found.constant("start")

    def lambda_max(self) -> Constant:
        s = self._spectrum
        return self._eigenvalue("lambda_max", s.top, s.top, s.top + (s.reach or 0.0), s.settled("top"), s.residuals[-1])

    def lambda_min(self) -> Constant:
        s = self._spectrum
        low = s.bottom - (s.reach or 0.0)
        return self._eigenvalue("lambda_min", s.bottom, low, s.bottom, s.settled("bottom"), s.residuals[0])

    def hessian_norm(self) -> Constant:
        """The largest modulus of an eigenvalue: the smoothness at the start in the Frobenius norm."""
        s = self._spectrum
        assert s.bracket is not None
        low, high = s.bracket
        found = self._eigenvalue("hessian_norm", s.modulus, low, high, s.settled("magnitude"), s.residual)
        return replace(found, note=f"{found.note}; of the eigenvalue {s.signed:.6g}")

    def _eigenvalue(
        self, name: str, value: float, low: float, high: float, settled: bool, residual: float
    ) -> Constant:
        s = self._spectrum
        words = f"{'converged' if settled else 'not converged'} after {s.products} products; residual {residual:.1g}"
        level = s.level if high > low else None
        return Constant(name, value, "estimated", "start", low, high, level, "Lanczos", None, words)

    def sigma(self) -> Constant:
        share = 1 / math.sqrt(self.batch)
        note = f"of a batch of {self.batch}, drawn independently"
        if "sigma" in self._known:
            k = self._known["sigma"]
            assert k.value is not None
            return replace(k, value=k.value * share, low=k.value * share, high=k.value * share, note=note)
        N = self.problem.samples
        if N is not None and N <= MOST:
            v = exact_variance(self.problem.sample_gradient(self.start, i) for i in range(N))
            value = math.sqrt(v) * share
            note += "; a theorem asks for the largest over all weights"
            return Constant("sigma", value, "exact", "start", value, value, None, f"all {N} samples", N, note)
        squares = np.array([float((flatten(n) ** 2).sum()) for n in self._noises])
        return known_mean_sigma(squares, "start", self.level)

    def rho(self) -> Constant:
        return rho(self.norm, self.start)

    def rho_effective(self) -> Constant:
        duals = np.array([self.norm.dual(n) for n in self._noises])
        sizes = np.array([float(flatten(n).norm()) for n in self._noises])
        return effective_rho(duals, sizes, "start", self.level)

    def dual_noise(self) -> Constant:
        return dual_noise(self.norm, self._noises, "start", self.level)

    def f_star(self) -> Constant:
        return self._known.get("f_star") or self._bracket

    @cached_property
    def _bracket(self) -> Constant:
        return f_star(self.problem)

    def Delta0(self) -> Constant:
        return initial_gap("Delta0", self.problem.value(self.start), self.f_star())

    def E0(self) -> Constant:
        return start_error(self.problem, self.norm)

    def hessian_lipschitz(self) -> Constant:
        if "hessian_lipschitz" in self._known:
            return self._known["hessian_lipschitz"]
        points: list[Weights] = [self.start]
        length = PATH_LENGTH * max(self.norm.norm(self.start), 1.0)
        for _ in range(PATH_STEPS):
            _, g = self.problem.value_and_gradient(points[-1])
            points.append(combine([(1.0, points[-1]), (-length, self.norm.direction(g))]))
        found = along_path(self.problem, self.norm, points)
        return replace(found, where=f"{PATH_STEPS} steps of length {length:.3g} from the start")


NAMES = (
    "L", "hessian_norm", "lambda_max", "lambda_min", "sigma", "rho", "rho_effective", "dual_noise", "f_star", "Delta0",
    "E0", "hessian_lipschitz",
)  # fmt: skip


OnName = Callable[[float, str], None]


def quiet(share: float, name: str) -> None:
    """No progress."""


def constants_of(
    names: Sequence[str], known: Sequence[str], measure: Callable[[str], list[Constant]], on_name: OnName = quiet
) -> list[Constant]:
    """Each name measured, in order, at one point or several. What cannot be is not applicable with the reason; an
    unknown name is refused. on_name(share done, name) is called before each."""
    for name in names:
        if name not in known:
            given = f"; {name} is what {ELSEWHERE[name]} gives" if name in ELSEWHERE else ""
            raise InputError(f"constants: {name!r}; allowed are {', '.join(known)}{given}")
    found: list[Constant] = []
    for index, name in enumerate(names):
        on_name(index / len(names), name)
        try:
            found += measure(name)
        except (InputError, PipelineInputError) as error:  # of the measurement: a product that is not finite
            found.append(not_applicable(name, str(error)))
    return found


def problem_constants(setting: ProblemConstants, names: Sequence[str], on_name: OnName = quiet) -> list[Constant]:
    """The constants of these names."""
    return constants_of(names, NAMES, lambda name: [getattr(setting, name)()], on_name)
