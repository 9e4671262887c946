"""GPipe: all forwards of a step, then all backwards. Kind: exact.

The period is that of 1F1B, (m + S - 1) t_f for the forwards and (m + S - 1) t_b for the backwards; all m microbatches
are in flight at every stage. Reference: Huang et al. 2019. Checked by tests/agreement/test_schedules.py.
"""

from __future__ import annotations

from dataclasses import replace

from theory.delays import one_f_one_b
from theory.delays.closed_form import m

FORM = replace(one_f_one_b.FORM, name="gpipe", reference="Huang et al. 2019", in_flight=m, in_flight_total=None)
