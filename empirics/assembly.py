"""The theorems put together again from the lemmas, by numbers: a second way to every constant of a bound.

Theorem 1 is the averaged descent lemma with Lemma C inside. Here each bound of `theory` is compared with the sum
that its proof adds up, evaluated from the lemmas: Lemma C's finite sums far from the start for lag and delay, its
start term summed over all steps, and the standard deviation of the noise sum. A constant that is changed in a
bound but not in a lemma, or the other way round, shows as a difference.

    momentum   Delta0/(eta K) + L eta/2 + M                         M: Lemma C averaged over the run
    shifted    Delta0/(eta K) + L eta/2 + M + (M without the delay)
    Theorem 1  Delta0/(eta K) + L eta/2 + 2 M
    finite     the same with M averaged over k < K as it stands, and the root of the average noise variance
    Theorem 2  the same from the lemmas at the virtual iterate, from k = 1 on; at x, L eta more
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from theory.lmo import PATHWISE
from theory.registry import get_bound

NAMES = (
    "delayed-lmo",
    "delayed-lmo-shifted",
    "delayed-lmo-momentum",
    "delayed-lmo-finite",
    "error-feedback",
    "error-feedback-at-x",
    "error-feedback-any-delay",
)


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


def _lemma_terms(values: dict[str, float], corrected: bool, k: np.ndarray) -> dict[str, np.ndarray]:
    """Lemma C's terms at the steps k, the noise as the standard deviation of its sum times rho sigma."""
    alpha = values["alpha"]
    step = PATHWISE["ef-momentum-error" if corrected else "momentum-error"]
    variance = np.cumsum((alpha * (1 - alpha) ** np.arange(k[-1] + 1)) ** 2)[k.astype(int)]
    given = {
        **values,
        "k": k,
        "error_norm": 0.0,
        "noise_norm": values["rho"] * values["sigma"] * np.sqrt(variance),
        "delta_mean_weighted": values.get("dbar", 0.0),
    }
    return {
        name: np.broadcast_to(np.asarray(term, dtype=float), k.shape)
        for name, term in step.evaluate_terms(given).items()
    }


def _averaged(values: dict[str, float], corrected: bool, error: float, gap: float) -> float:
    """Lemma A summed over the run, with the average momentum error and the initial gap put in."""
    average = PATHWISE["ef-average" if corrected else "average"]
    given = {"f_first": gap, "f_last": 0.0, "mean_error_norm": error, "mean_grad_norm": 0.0}
    return float(average.evaluate({**values, **given})[1])


def assemble(name: str, values: dict[str, float]) -> Assembled:
    """One bound of NAMES at `values` (eta alpha tau L K Delta0 E0 sigma rho; dbar and Delta1 for error feedback)."""
    bound = get_bound(name)
    corrected = name.startswith("error-feedback")
    K, first = values["K"], 1 if corrected else 0
    gap = values["Delta1"] if name == "error-feedback-any-delay" else values["Delta0"]
    if name == "delayed-lmo-finite":
        terms = _lemma_terms(values, False, np.arange(K))
        noise = math.sqrt(float((terms.pop("noise") ** 2).mean()))
        lemmas = _averaged(values, False, noise + sum(float(t.mean()) for t in terms.values()), gap)
    else:
        far = _far(values["alpha"]) + int(values["tau"])
        terms = _lemma_terms(values, corrected, np.arange(first, far + 1, dtype=float))
        once = sum(float(terms[t].sum()) for t in ("start", "start_shift") if t in terms) / K
        without_delay = once + float(terms["momentum_lag"][-1]) + float(terms["noise"][-1])
        M = without_delay + float(terms["delay"][-1])
        error = {"delayed-lmo-shifted": (M + without_delay) / 2, "delayed-lmo-momentum": M / 2}.get(name, M)
        lemmas = _averaged(values, corrected, error, gap)
        if name == "error-feedback-at-x":
            lemmas += values["L"] * values["eta"]
    value = float(bound.evaluate(**{symbol: values[symbol] for symbol in bound.symbols}))
    return Assembled(name, value, lemmas)


def assemble_all() -> list[Assembled]:
    """Every bound at several values, chosen so that each term is a visible share."""
    out = []
    for alpha, tau in ((0.05, 1.0), (0.3, 4.0), (1.0, 2.0), (0.2, 0.0)):
        values = dict(eta=0.02, alpha=alpha, tau=tau, L=1.7, K=300.0, Delta0=0.9, E0=2.5, sigma=0.1, rho=3.0)
        for name in NAMES:
            if not name.startswith("error-feedback"):
                out.append(assemble(name, values))
            elif tau > 0:
                changed = {} if name == "error-feedback-any-delay" else {"tau": 1.0}
                out.append(assemble(name, {**values, "dbar": 0.7, "Delta1": 1.1, **changed}))
    return out
