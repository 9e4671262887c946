"""AMDP: S/2 pipelines in alternating directions, one update per window of m microbatches. Kind: exact.

The step stands before the first backward of the next window, after forwards of its first cycle of S microbatches: those
have read weights one step older, on all S microbatches at stages 0..S-2 and on S/2 of them at stage S-1. No old version
is stored. A cycle takes S(t_f + t_b) + (t_b - t_f) + max(0, t_b - 2 t_f) for t_b >= t_f, S(t_f + t_b) + 2(t_f - t_b)
otherwise; at t_b = 2 t_f the bubble is 1/(3S + 1), whatever the window. Edge devices (0 and 3 mod 4) hold S - 1
microbatches in flight, the others S. Reference: arXiv 2605.29664 for the schedule; the closed forms derived here.
Checked by tests/agreement/test_schedules.py.
"""

from __future__ import annotations

import sympy as sp

from theory.delays.closed_form import ClosedForm, S, device, m, stage, t_b, t_f

_STALE = sp.Piecewise((S / 2, sp.Eq(stage, S - 1)), (S, True))
_EXTRA = sp.Piecewise((t_b - t_f + sp.Max(0, t_b - 2 * t_f), t_b >= t_f), (2 * (t_f - t_b), True))
_EDGE = sp.Or(sp.Eq(sp.Mod(device, 4), 0), sp.Eq(sp.Mod(device, 4), 3))

FORM = ClosedForm(
    name="amdp",
    reference="arXiv 2605.29664",
    delay=sp.S.One,
    mean_delay=_STALE / m,
    backward_delay=sp.S.Zero,
    version_gap=sp.S.One,
    gap_microbatches=_STALE,
    versions=sp.S.One,
    in_flight=sp.Piecewise((3, sp.Eq(stage, 0)), (1, sp.Eq(stage, S - 1)), (2, True)),
    in_flight_total=sp.Piecewise((S - 1, _EDGE), (S, True)),
    period=m / S * (S * (t_f + t_b) + _EXTRA),
    fill_and_drain=sp.Piecewise((t_f + sp.Min(t_b, 2 * t_f), t_b >= t_f), (2 * t_b, True)),
    conditions=(
        (sp.Eq(sp.Mod(S, 4), 0), "S a multiple of 4"),
        (sp.Eq(sp.Mod(m, S), 0), "m a multiple of S"),
    ),
)
