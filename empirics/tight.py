"""Small exact instances on which each lemma holds with equality, so that no constant of it can be smaller.

One dimension, f(x) = L x^2/2, with the real optimizer code (`empirics.pathwise`); the noise is chosen step by step
(a pathwise statement holds for every noise). On each instance the lemma as encoded in `theory` has utilisation 1
up to round-off, and each mutated lemma (2 -> 1.9, 1/2 -> 0.45, tau -> tau - 1, a tenth off another coefficient)
goes above 1: it is refuted, without a solver.

instance     what happens
crossing     alpha = 1, every gradient sample is just across zero: each step goes uphill, away from the minimum
downhill     alpha = 1, no delay, no noise, far from the minimum: every step goes straight down
lagging      momentum with a delay, far from the minimum, first momentum and noise too large: all errors add up
orbit        norm l_1 in 2 tau + 1 dimensions, alpha = 1: a period-(4 tau + 2) orbit with constant gradient norm
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sympy import Rational

from empirics.errors import InputError
from empirics.lmo_path import Path, Setting, record
from empirics.pathwise import realised, sides, utilisation
from empirics.problems.matrix_least_squares import scalar_problem
from theory.bound import Bound
from theory.inequality import Inequality
from theory.lmo import PATHWISE
from theory.registry import get_bound
from theory.symbols import QUANTITIES

ACROSS = 1e-9  # how far across zero a sample lies
AT_STAKE = 1e-6  # all instances have L = 1 and eta = 0.1: one step changes a gradient by 0.1
Values = dict[str, np.ndarray | float]


@dataclass(frozen=True)
class TightResult:
    """Largest and least utilisation of a lemma over the steps of an instance, and the largest one of a mutant there.

    `least` leaves out the steps on which nothing is at stake (right side below AT_STAKE).
    """

    lemma: str
    instance: str
    utilisation: float
    least: float
    mutation: str
    mutated_utilisation: float

    @property
    def refuted(self) -> bool:
        """True if the mutant is violated on this instance by more than a thousandth."""
        return self.mutated_utilisation > 1.001

    def as_dict(self) -> dict[str, str | float | bool]:
        """The row of the result file."""
        return {
            "lemma": self.lemma,
            "instance": self.instance,
            "utilisation": self.utilisation,
            "least": self.least,
            "mutation": self.mutation,
            "mutated_utilisation": self.mutated_utilisation,
            "refuted": self.refuted,
        }


def crossing(tau: int = 0, correction: str = "none", form: str = "extrapolate", L: float = 1.0) -> Path:
    """alpha = 1 and m_{k+1} = -ACROSS at every step: x (and y) climbs by eta a step, from x_0 > 0."""
    setting = Setting("crossing", tau, 0.1, 1.0, 3, correction=correction, form=form, norm="sign")
    x0, U = 0.3, setting.eta
    # U_k = eta at every step, so the correction is zero and x_k = x_0 + k eta in every case.
    taken = x0 + U * np.maximum(np.arange(setting.updates) - tau, 0)
    noise = -(L * taken + ACROSS)
    problem = scalar_problem(L)
    return record(problem, setting, noise.reshape(-1, 1, 1), np.array([[x0]]))


def downhill(tau: int = 0, correction: str = "none", form: str = "extrapolate", L: float = 1.0) -> Path:
    """alpha = 1, no noise, far from the minimum: x falls by eta a step. Exact momentum without delay, and at the
    virtual iterate with error feedback.
    """
    setting = Setting("downhill", tau, 0.1, 1.0, 4, correction=correction, form=form, norm="sign")
    return record(scalar_problem(L), setting, np.zeros((setting.updates, 1, 1)), np.array([[2.0]]))


def lagging(tau: int, correction: str = "none", form: str = "extrapolate", L: float = 1.0) -> Path:
    """Every error of the momentum has one sign. With error feedback the first step goes the other way."""
    setting = Setting("lagging", tau, 0.1, 0.25, 12, correction=correction, form=form, norm="sign")
    x0, start_error = 3.0, 0.7
    noise = np.full((setting.updates, 1, 1), 0.4)
    if correction == "error-feedback":
        # d_0 = -1 and all later d_k = +1; the noise sum is positive from k = 1 on
        first = -(L * x0 + (1 - setting.alpha) * start_error) / setting.alpha - 0.1
        noise[0], noise[1] = first, -(1 - setting.alpha) * first + 0.2
    return record(scalar_problem(L), setting, noise, np.array([[x0]]), np.array([[L * x0 + start_error]]))


def _mutants(inequality: Inequality) -> list[tuple[str, Inequality]]:
    """Named mutants of a lemma: each constant that a proof could get wrong, a little smaller."""
    words = {
        "momentum_error": ("2 -> 1.9", Rational(19, 20)),
        "step": ("1/2 -> 0.45", Rational(9, 10)),
        "gradient": ("1 -> 1.1 of the gradient", Rational(11, 10)),
        "momentum_lag": ("lag (1-a)/a -> 0.9 of it", Rational(9, 10)),
        "delay": ("delay -> 0.9 of it", Rational(9, 10)),
        "noise": ("noise -> 0.9 of it", Rational(9, 10)),
        "start": ("start -> 0.9 of it", Rational(9, 10)),
        "start_shift": ("shift of the start -> 0.9 of it", Rational(9, 10)),
        "initial": ("initial gap -> 0.9 of it", Rational(9, 10)),
    }
    found = [(words[t][0], inequality.scaled(t, words[t][1])) for t in inequality.terms if t in words]
    if inequality.name in ("delay", "momentum-error"):
        tau = QUANTITIES["tau"].symbol
        found.append(("tau -> tau - 1", inequality.substituted("tau", tau - 1)))
    return found


def lemma_results(name: str) -> list[TightResult]:
    """All mutants of one entry of PATHWISE, each on the instance of that lemma where it goes furthest above 1."""
    if name not in PATHWISE:
        raise InputError(f"lemma: {name!r}; allowed are {', '.join(PATHWISE)}")
    inequality = PATHWISE[name]
    instances = {label: realised(build()) for label, build in INSTANCES[name].items()}
    used = {label: utilisation(inequality, values) for label, values in instances.items()}
    at_stake = {label: sides(inequality, values)[1] > AT_STAKE for label, values in instances.items()}
    results = []
    for mutation, mutant in _mutants(inequality):
        scores = {label: float(utilisation(mutant, values).max()) for label, values in instances.items()}
        label = max(scores, key=lambda key: scores[key])
        most, least = float(used[label].max()), float(used[label][at_stake[label]].min())
        results.append(TightResult(name, label, most, least, mutation, scores[label]))
    return results


INSTANCES: dict[str, dict[str, Callable[[], Path]]] = {
    "descent": {"crossing": crossing, "downhill": downhill},
    "delay": {"lagging, tau = 2": lambda: lagging(2)},
    "momentum-error": {"lagging, tau = 2": lambda: lagging(2)},
    "average": {"crossing": crossing, "downhill": downhill},
    "ef-descent": {
        "crossing, tau = 1": lambda: crossing(1, "error-feedback"),
        "downhill, tau = 1": lambda: downhill(1, "error-feedback"),
    },
    "ef-delay": {"lagging, tau = 1": lambda: lagging(1, "error-feedback")},
    "ef-momentum-error": {"lagging, tau = 3": lambda: lagging(3, "error-feedback")},
    "ef-average": {
        "crossing, tau = 1": lambda: crossing(1, "error-feedback"),
        "downhill, tau = 1": lambda: downhill(1, "error-feedback"),
    },
}


def _bound_results(
    bound: Bound, instance: str, measured: float, values: dict[str, float], terms: tuple[str, ...]
) -> list[TightResult]:
    """The bound against a measured average, and against it with each of the terms a tenth smaller."""
    parts = {t: float(v) for t, v in bound.evaluate_terms(**{n: values[n] for n in bound.symbols}).items()}
    total = sum(parts.values())
    used = measured / total
    return [
        TightResult(bound.name, instance, used, used, f"{t} -> 0.9 of it", measured / (total - 0.1 * parts[t]))
        for t in terms
    ]


def orbit(tau: int, eta: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """One period of delayed LMO descent (alpha = 1) in the norm l_1 and its gradients, both [4 tau + 2, 2 tau + 1].

    f(w) = w'Hw/2, H_ij = 1 if |i - j| <= tau, else -1: L = 1 from l_1 to l_inf. The LMO of l_1 changes the one
    coordinate with the largest gradient entry. Computed from the recursion, started with the orbit's history.
    """
    n = 2 * tau + 1
    index = np.arange(n)
    H = np.where(np.abs(index[:, None] - index[None, :]) <= tau, 1.0, -1.0)
    # history w_{-tau}, ..., w_0 = all +eta/2: the last coordinates turn positive one a step
    path = [np.where(index < n - j, 1.0, -1.0) * eta / 2 for j in range(tau, -1, -1)]
    for _ in range(2 * n - 1):
        g = H @ path[-1 - tau]
        j = int(np.argmax(np.abs(g)))
        w = path[-1].copy()
        w[j] -= eta * np.sign(g[j])
        path.append(w)
    points = np.array(path[tau:])
    return points, points @ H


def shifted_results(tau: int) -> list[TightResult]:
    """Theorem 1s with alpha = 1 and no noise on the orbit: both its constants, 1/2 and tau, are attained.

    The initial term is (f(x_0) - f(x_K))/(eta K) in the proof, which is 0 over whole periods.
    """
    eta = 0.1
    points, gradients = orbit(tau, eta)
    if not np.array_equal(np.abs(points), np.full_like(points, eta / 2)):
        raise InputError(f"orbit: tau = {tau} leaves the corners of the cube; allowed are exact orbits")
    measured = float(np.abs(gradients).max(axis=1).mean())
    K = float(len(points))
    values = dict(eta=eta, alpha=1.0, tau=float(tau), L=1.0, Delta0=0.0, E0=0.0, sigma=0.0, rho=1.0, K=K)
    terms = ("step", "delay") if tau else ("step",)
    return _bound_results(get_bound("delayed-lmo-shifted"), f"orbit, tau = {tau}", measured, values, terms)


def momentum_theorem_results(tau: int, alpha: float, K: int, terms: tuple[str, ...]) -> list[TightResult]:
    """Theorem 1m in one dimension, from x_0 = eta K down to 0 with all errors of one sign: tight as K grows.

    What is left between the two sides is the start-up of the two finite sums of Lemma C.
    """
    eta, start_error = 0.1, 0.2 * K
    setting = Setting("descending", tau, eta, alpha, K, norm="sign")
    x0 = eta * K
    path = record(scalar_problem(1.0), setting, np.zeros((K, 1, 1)), np.array([[x0]]), np.array([[x0 + start_error]]))
    values = realised(path)
    numbers = {name: float(np.asarray(values[name])) for name in ("eta", "alpha", "tau", "L", "E0", "K")}
    numbers |= {"Delta0": float(np.asarray(values["f_first"])), "sigma": 0.0, "rho": 1.0}
    measured = float(np.asarray(values["mean_momentum_norm"]))
    instance = f"descending, tau = {tau}, alpha = {alpha:g}"
    return _bound_results(get_bound("delayed-lmo-momentum"), instance, measured, numbers, terms)


def theorem_results() -> list[TightResult]:
    """The two theorems that are attained."""
    results = [result for tau in (0, 1, 2, 4) for result in shifted_results(tau)]
    results += momentum_theorem_results(0, 0.1, 600, ("initial", "momentum_lag", "start"))
    return results + momentum_theorem_results(4, 1.0, 100, ("delay",))


def all_results() -> list[TightResult]:
    """Every lemma and both theorems, every mutant."""
    return [result for name in PATHWISE for result in lemma_results(name)] + theorem_results()
