"""1F1B with a flush after every step: no delay. Kind: exact.

Every forward of a step comes after the previous step, so its gradient updates the weights it was taken at.
Reference: Narayanan et al. 2021. Checked by tests/theory/test_delays.py and the agreement tests.
"""

from __future__ import annotations

import sympy as sp

FORMULA: dict[str, sp.Expr] = {"optimizer_step_delay": sp.S.Zero}


def optimizer_step_delay(S: int, m: int | None = None) -> list[int]:
    """Delay of each of S stages, from the input side, in optimizer steps."""
    return [0] * S
