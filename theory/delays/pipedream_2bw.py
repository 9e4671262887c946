"""PipeDream-2BW: two weight versions, delay 1 at every stage for every microbatch. Kind: exact.

After start-up W(t+1) = W(t) + U(grad f(W(t-1))), also with one stage. Needs m >= S - 1 microbatches per step: with
fewer, two versions do not cover the microbatches in flight. Then either the devices wait (``stall``: the rule is kept,
and a device that runs a ready backward first, else the next forward whose version exists, takes (m + S - 1)/2 slots of
t_f + t_b per step on average), or the delay grows (``uniform``: ceil((S-1)/m) at every stage, no device idles).
Reference: Narayanan et al. 2021, section 3.1; stall and uniform derived here. Checked by
tests/agreement/test_schedules.py.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from theory.delays.closed_form import ClosedForm, S, m, stage, t_b, t_f

FORM = ClosedForm(
    name="pipedream-2bw",
    reference="Narayanan et al. 2021",
    delay=sp.S.One,
    mean_delay=sp.S.One,
    versions=sp.Integer(2),
    in_flight=S - stage,
    period=m * (t_f + t_b),
    fill_and_drain=(S - 1) * (t_f + t_b),
    conditions=((sp.Ge(m, S - 1), "m >= S - 1"),),
)

STALL = replace(
    FORM,
    name="pipedream-2bw (stall)",
    reference="derived here",
    in_flight=sp.Min(S - stage, 2 * m),
    in_flight_total=None,
    period=sp.Max(m, (m + S - 1) / 2) * (t_f + t_b),
    fill_and_drain=None,
    conditions=(),
)

_TAU = sp.Max(1, sp.ceiling((S - 1) / m))

UNIFORM = replace(
    FORM,
    name="pipedream-2bw (uniform)",
    reference="derived here",
    delay=_TAU,
    mean_delay=_TAU,
    backward_delay=_TAU,
    versions=_TAU + 1,
    conditions=(),
)
