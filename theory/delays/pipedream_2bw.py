"""PipeDream-2BW: two weight versions, delay 1 at every stage for every microbatch. Kind: exact.

After start-up W(t+1) = W(t) + U(grad f(W(t-1))), also with one stage. Needs m >= S - 1 microbatches per step:
with fewer, two versions do not cover the microbatches in flight. Reference: Narayanan et al. 2021, section
3.1. Checked by tests/theory/test_delays.py and the agreement tests.
"""

from __future__ import annotations

import sympy as sp

from theory.errors import InputError

FORMULA: dict[str, sp.Expr] = {"optimizer_step_delay": sp.S.One}


def optimizer_step_delay(S: int, m: int | None = None) -> list[int]:
    """Delay of each of S stages, from the input side, in optimizer steps. Raises InputError for m < S - 1."""
    if m is not None and m < S - 1:
        raise InputError(
            f"m={m} is not allowed: pipedream-2bw with S={S} needs m >= {S - 1} microbatches per step"
        )
    return [1] * S
