"""PipeDream's block-update delay: closed forms of every entry, under four conventions. Kind: exact.

m = 1, F = B = 1 slot, steady 1F1B; stages a (active) and r (block read) are counted from 1. The read and the update of
a microbatch are 2S + 1 - r - a slots apart, and n = 2S - r - a is one less. In a slot either the odd or the even stages
update, ceil(S/2) or floor(S/2) of them: c_r of the parity of r, S - c_r of the other, which updates in the slot of the
read itself. Then
    slot         ceil((n+1)/2) (S - c_r) + floor((n+1)/2) c_r               all updates of a slot share one index
    physical     slot + floor((a-1)/2)                                       updates of the active slot before stage a
    stage order  physical - floor(r/2)                                       updates of the read's slot before stage r
    minimal      ceil(n/2) c_r + floor(n/2)(S - c_r) + floor((a-1)/2) - floor((r-1)/2)     from block r's next update on
where c_r = ceil(S/2) for odd r, floor(S/2) for even r. block_update_derivation.py gets the largest, smallest and mean
entries from these symbolically, and S^2 - S/2 + O(1) from a round trip of 2S - 1 slots at S/2 updates each.

startup_max, the largest delay of a whole run, is that of the last warm-up microbatch at stage 1, which reads before any
update and updates after floor(S^2/4) + S(S-1) of them: floor(5 S^2/4) - S, more than the steady maximum for S >= 3
(warm-up forwards back to back, at least S + 1 microbatches).
Reference: arXiv 2606.03498 (the S^2 analysis; its Lemma C.1 is exact under ``slot``); the closed forms derived here.
Checked by tests/theory/test_block_update.py and tests/agreement/test_schedules.py.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from theory.delays.exact import evaluate
from theory.errors import InputError
from theory.symbols import symbols

(S,) = symbols("S")
a = sp.Symbol("a", integer=True, positive=True)  # active stage, from 1
r = sp.Symbol("r", integer=True, positive=True)  # block read, from 1

CONVENTIONS = ("stage order", "physical", "slot", "minimal")
DEFAULT_CONVENTION = "stage order"

_n = 2 * S - r - a
_c = sp.floor((S + sp.Mod(r, 2)) / 2)
_slot = sp.ceiling((_n + 1) / 2) * (S - _c) + sp.floor((_n + 1) / 2) * _c
_physical = _slot + sp.floor((a - 1) / 2)

ENTRY: dict[str, sp.Expr] = {
    "stage order": _physical - sp.floor(r / 2),
    "physical": _physical,
    "slot": _slot,
    "minimal": sp.ceiling(_n / 2) * _c
    + sp.floor(_n / 2) * (S - _c)
    + sp.floor((a - 1) / 2)
    - sp.floor((r - 1) / 2),
}

_even = sp.Eq(sp.Mod(S, 2), 0)
MAX: dict[str, sp.Expr] = {
    "stage order": sp.floor(S**2 - S / 2),
    "physical": sp.floor(S**2 - S / 2),
    "slot": sp.floor(S**2 - S / 2),
    "minimal": S * (S - 1),
}
MIN: dict[str, sp.Expr] = {
    "stage order": sp.floor((S - 1) / 2),
    "physical": S - 1,
    "slot": sp.floor(S / 2),
    "minimal": sp.S.Zero,
}
MEAN: dict[str, sp.Expr] = {
    "stage order": (S**2 - 1) / 2,
    "physical": sp.Piecewise(
        ((2 * S**2 + S - 2) / 4, _even), ((S - 1) * (S + 1) * (2 * S + 1) / (4 * S), True)
    ),
    "slot": sp.Piecewise((S**2 / 2, _even), ((S**3 - 1) / (2 * S), True)),
    "minimal": S * (S - 1) / 2,
}
STARTUP_MAX = sp.floor(5 * S**2 / 4) - S
#: Of a whole run under ``minimal``: start-up is no worse than the steady state.
STARTUP_MINIMAL_MAX = S * (S - 1)

FORMULA: dict[str, sp.Expr] = {
    "block_update_delay": ENTRY[DEFAULT_CONVENTION],
    "max": MAX[DEFAULT_CONVENTION],
    "mean": MEAN[DEFAULT_CONVENTION],
    "min": MIN[DEFAULT_CONVENTION],
    "startup_max": STARTUP_MAX,
    "minimal_max": MAX["minimal"],
}


def entry(stages: int, active: int, read: int, convention: str = DEFAULT_CONVENTION) -> int:
    """delta_{r,a} with a = active and r = read counted from 1."""
    return int(evaluate(ENTRY[convention], S=stages, a=active, r=read))


def summary(stages: int, convention: str = DEFAULT_CONVENTION) -> dict[str, Any]:
    """max, mean, min, startup_max, minimal_max, convention and matrix (row = active stage, column = block read)."""
    if convention not in CONVENTIONS:
        raise InputError(f"convention={convention!r} is not allowed: known are {', '.join(CONVENTIONS)}")
    counts = range(1, stages + 1)
    startup = STARTUP_MINIMAL_MAX if convention == "minimal" else STARTUP_MAX
    return {
        "max": int(evaluate(MAX[convention], S=stages)),
        "mean": float(evaluate(MEAN[convention], S=stages)),
        "min": int(evaluate(MIN[convention], S=stages)),
        "startup_max": int(evaluate(startup, S=stages)),
        "minimal_max": int(evaluate(MAX["minimal"], S=stages)),
        "convention": convention,
        "matrix": [[entry(stages, active, read, convention) for read in counts] for active in counts],
    }
