"""Delay bias: b_k = grad f(x_{(k-tau)+}) - grad f(x_k), what staleness alone does to the gradient. No noise in it.

The lemma says dual(b_k) <= L eta tau; `share` is dual(b_k)/dual(grad f(x_k)).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from empirics.estimators.model_norm import AnyNorm
from empirics.estimators.weights import Weights, check_finite, minus


def delay_bias(norm: AnyNorm, at_taken: Weights, at_iterate: Weights) -> float:
    """dual(b_k) from the two full gradients."""
    return norm.dual(minus(at_taken, at_iterate))


@dataclass
class DelayBias:
    """Streams full gradients where they were taken and at the iterate. share: None where grad f(x_k) = 0."""

    norm: AnyNorm
    bias: list[float] = field(default_factory=list)
    share: list[float | None] = field(default_factory=list)

    def add(self, at_taken: Weights, at_iterate: Weights) -> None:
        """Raises InputError for gradients that are not finite."""
        check_finite(at_taken, f"stale gradient at step {len(self.bias)}")
        check_finite(at_iterate, f"gradient at step {len(self.bias)}")
        size = self.norm.dual(at_iterate)
        self.bias.append(delay_bias(self.norm, at_taken, at_iterate))
        self.share.append(self.bias[-1] / size if size else None)
