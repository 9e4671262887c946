"""Proofs of the paper's theorem, A and C: the window by Cauchy-Schwarz, whatever the delays depend on."""

from __future__ import annotations

from theory.bound import Bound
from theory.pipedream import paper, second_moment, variance_any_delay
from theory.pipedream.proofs import average
from theory.pipedream.proofs.common import BLOCK, MOMENT, VARIANCE, WINDOWS_ANY, condition
from theory.proof import Fact, Proof, Step, statement, symbols

(LEFT,) = symbols("mean_grad_square")


def _proof(theorem: Bound, size: tuple[Step, ...], *more: Fact) -> Proof:
    end: tuple[Fact | str | Proof, ...] = (average.PROOF, WINDOWS_ANY, "second moment of a run", *more)
    return Proof(theorem, (*size, Step("theorem", end, statement(theorem, LEFT))), LEFT)


PAPER = _proof(paper.BOUND, BLOCK)
A = _proof(second_moment.BOUND, MOMENT)
C = _proof(variance_any_delay.BOUND, VARIANCE, condition(variance_any_delay.BOUND))
