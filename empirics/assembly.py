"""The theorems put together again from the lemmas, by numbers: a second way to every constant of a bound.

Theorem 1 is the averaged descent lemma with Lemma C inside. Here each bound of `theory` is compared with the sum
that its proof adds up, evaluated from the lemmas: Lemma C's finite sums far from the start for lag and delay, its
start term summed over all steps, and the standard deviation of the noise sum. A constant that is changed in a
bound but not in a lemma, or the other way round, shows as a difference.

    momentum   Delta0/(eta K) + L eta/2 + M                         M: Lemma C averaged over the run
    shifted    Delta0/(eta K) + L eta/2 + M + (M without the delay)
    Theorem 1  Delta0/(eta K) + L eta/2 + 2 M
    Theorem 2  the same from the lemmas at the virtual iterate, from k = 1 on
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from theory.lmo import PATHWISE
from theory.registry import get_bound

NAMES = ("delayed-lmo", "delayed-lmo-shifted", "delayed-lmo-momentum", "error-feedback")


@dataclass(frozen=True)
class Assembled:
    """A bound's value and the value put together from the lemmas."""

    name: str
    bound: float
    lemmas: float

    @property
    def relative_error(self) -> float:
        return abs(self.bound - self.lemmas) / abs(self.lemmas)


def _far(alpha: float) -> int:
    """A step from which (1-alpha)^k is below round-off."""
    return 2 if alpha == 1 else math.ceil(math.log(1e-18) / math.log1p(-alpha)) + 2


def assemble(name: str, values: dict[str, float]) -> Assembled:
    """One bound of NAMES at `values` (eta alpha tau L K Delta0 E0 sigma rho, and dbar for error feedback)."""
    bound = get_bound(name)
    corrected = name.startswith("error-feedback")
    step = PATHWISE["ef-momentum-error" if corrected else "momentum-error"]
    average = PATHWISE["ef-average" if corrected else "average"]
    alpha, K = values["alpha"], values["K"]
    k = np.arange(1 if corrected else 0, _far(alpha) + int(values["tau"]) + 1, dtype=float)
    weights = alpha * (1 - alpha) ** np.arange(k.size)
    noise = values["rho"] * values["sigma"] * math.sqrt(float((weights**2).sum()))
    lemma = step.evaluate_terms(
        {**values, "k": k, "error_norm": 0.0, "noise_norm": noise, "delta_mean_weighted": values.get("dbar", 0.0)}
    )
    terms = {term: np.broadcast_to(np.asarray(value, dtype=float), k.shape) for term, value in lemma.items()}
    once = sum(float(terms[t].sum()) for t in ("start", "start_shift") if t in terms) / K
    steady = once + float(terms["momentum_lag"][-1]) + float(terms["noise"][-1])
    M = steady + float(terms["delay"][-1])

    def averaged(error: float) -> float:
        return float(
            average.evaluate(
                {
                    **values,
                    "f_first": values["Delta0"],
                    "f_last": 0.0,
                    "mean_error_norm": error,
                    "mean_grad_norm": 0.0,
                }
            )[1]
        )

    if name == "delayed-lmo-shifted":
        lemmas = averaged((M + steady) / 2)
    elif name == "delayed-lmo-momentum":
        lemmas = averaged(M / 2)
    else:
        lemmas = averaged(M)
    value = float(bound.evaluate(**{symbol: values[symbol] for symbol in bound.symbols}))
    return Assembled(name, value, lemmas)


def assemble_all() -> list[Assembled]:
    """Every bound at several values, chosen so that each term is a visible share."""
    out = []
    for alpha, tau in ((0.05, 1.0), (0.3, 4.0), (1.0, 2.0), (0.2, 0.0)):
        values = dict(eta=0.02, alpha=alpha, tau=tau, L=1.7, K=300.0, Delta0=0.9, E0=2.5, sigma=0.1, rho=3.0)
        names = NAMES[:3] if tau == 0 else NAMES
        for name in names:
            extra = {"dbar": 0.7, "tau": 1.0} if name == "error-feedback" else {}
            out.append(assemble(name, {**values, **extra}))
    return out
