"""PACI: asynchronous 1F1B, m microbatches accumulated (the paper's a), one weight version. Kind: exact.

The forward of a microbatch runs S - 1 - s microbatches ahead of its backward, so min(S-1-s, m) of the m microbatches of
a step see another version in the backward than in the forward, at most ceil((S-1-s)/m) apart. No backward is stale.
Reference: arXiv 2606.07881 (the mismatch is bounded); the counts derived here. Checked by
tests/agreement/test_schedules.py.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from theory.delays import pipedream
from theory.delays.closed_form import S, m, stage

FORM = replace(
    pipedream.FORM,
    name="paci",
    reference="arXiv 2606.07881",
    backward_delay=sp.S.Zero,
    version_gap=pipedream.FORM.delay,
    gap_microbatches=sp.Min(S - 1 - stage, m),
    versions=sp.S.One,
    parameters={"m": S},
)
