"""PipeDream with weight stashing: closed forms of both delay counts. Kind: exact.

Optimizer-step delay of stage s (from 0 at the input side), m microbatches per step: S - 1 - s microbatches
are in flight between a forward and its backward, so the delay is at most ceil((S-1-s)/m), reached in steady
state; with m = 1 it is S - 1 - s for every microbatch after start-up.

Block-update delay (m = 1, F = B = 1 slot, steady 1F1B, stage order: a read at (slot, stage) counts the
updates of that slot by earlier stages as done), stages a (active) and r (block read) counted from 1,
n = 2S - r - a:
    delta_{r,a} = ceil((S-r)/2) + ceil(n/2) c_r + floor(n/2) (S - c_r) + floor((a-1)/2)
with c_r = ceil(S/2) for odd r, floor(S/2) for even r. Hence
    max floor(S^2 - S/2) at r = a = 1,   mean (S^2-1)/2,   min floor((S-1)/2).
Why S^2: the round trip of stage 1 spans 2S - 1 slots and a slot carries S/2 updates on average.
startup_max, the largest over a whole run, is floor(5 S^2/4) - S, more than the steady maximum for S >= 3
(warm-up forwards back to back, at least S + 1 microbatches). minimal_max, S(S-1), is the steady maximum of
the smallest delay that returns the same block value.
Reference: arXiv 2606.03498 (the S^2 analysis); closed forms derived here.
Checked by tests/theory/test_delays.py and the agreement tests.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from theory.symbols import symbols

_S, _m, _stage = symbols("S m stage")
_a = sp.Symbol("a", integer=True, positive=True)  # active stage, from 1
_r = sp.Symbol("r", integer=True, positive=True)  # block read, from 1
_n = 2 * _S - _r - _a
_c = sp.floor((_S + sp.Mod(_r, 2)) / 2)

FORMULA: dict[str, sp.Expr] = {
    "optimizer_step_delay": sp.ceiling((_S - 1 - _stage) / _m),
    "block_update_delay": sp.ceiling((_S - _r) / 2)
    + sp.ceiling(_n / 2) * _c
    + sp.floor(_n / 2) * (_S - _c)
    + sp.floor((_a - 1) / 2),
    "max": sp.floor(_S**2 - _S / 2),
    "mean": (_S**2 - 1) / 2,
    "min": sp.floor((_S - 1) / 2),
    "startup_max": sp.floor(5 * _S**2 / 4) - _S,
    "minimal_max": _S * (_S - 1),
}


def optimizer_step_delay(S: int, m: int | None = None) -> list[int]:
    """Steady-state maximum of each of S stages, from the input side, in optimizer steps; m = 1 by default."""
    per_step = 1 if m is None else m
    return [-(-(S - 1 - s) // per_step) for s in range(S)]


def block_update_entry(S: int, active: int, read: int) -> int:
    """delta_{r,a} with a = active, r = read, a and r from 1: FORMULA["block_update_delay"] in integers."""
    n = 2 * S - read - active
    c = (S + read % 2) // 2
    return (S - read + 1) // 2 + (n + 1) // 2 * c + n // 2 * (S - c) + (active - 1) // 2


def block_update_delay(S: int) -> dict[str, Any]:
    """max, mean, min, startup_max, minimal_max and matrix (row = active stage, column = block read)."""
    return {
        "max": S * S - (S + 1) // 2,
        "mean": (S * S - 1) / 2,
        "min": (S - 1) // 2,
        "startup_max": 5 * S * S // 4 - S,
        "minimal_max": S * (S - 1),
        "matrix": [[block_update_entry(S, a, r) for r in range(1, S + 1)] for a in range(1, S + 1)],
    }
