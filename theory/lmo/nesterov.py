"""Theorems 1, 1s, 1m for Nesterov's direction (1-a) m_{k+1} + a g, an exact oracle (torch's Muon). Kind: upper bound.

Statement: as there, with (1-a)/a -> (1-a)^2/a in the lag and the start, and in the noise
    a/(2-a) -> (a/(2-a)) [a (2-a)^3 + (1-a)^4],
both of the age law P(0) = a (2-a), P(i) = a (1-a)^{i+1} (`age`). The lag falls by the factor 1-a, the variance rises
to a/(2-a) + 2 a^2 (1-a), which is the same number. At a = 1 they are the theorems without momentum.

Proof: Lemma C for (1-a) m_{k+1} + a g_k = sum_i P(i) g(x_{(k-i-tau)+}) + (1-a)^{k+2} m_0, with orthogonal
martingale noise; the rest is the proof of the theorem. The law is the momentum's with probability 1-a, and A = tau with
probability a. Machine-checked, with those of an inexact oracle: `proofs/nesterov`, `proofs/nesterov_median`.
Checked by tests/theory/test_inexact.py, test_age.py, test_proofs.py, test_proofs_on_runs.py,
test_false_nesterov_proofs.py and test_lmo_variants_on_runs.py.
"""

from __future__ import annotations

from theory.bound import Bound
from theory.lmo.age import NESTEROV
from theory.lmo.inexact import FORMS, OWN_NORM, inexact_terms, r_hi, r_lo
from theory.lmo.parts import ASSUMPTIONS_LMO


def _bound(form: str) -> Bound:
    exact, where = FORMS[form]
    label = exact.title.partition(":")[0]  # Theorem 1, 1s, 1m
    return Bound(
        name=f"delayed-lmo-nesterov{form}",
        title=f"{label}, Nesterov's direction: delayed LMO method, {where}",
        terms={name: term.subs({r_lo: 1, r_hi: 1}) for name, term in inexact_terms(form, NESTEROV).items()},
        metric=exact.metric if form != "-momentum" else OWN_NORM,
        assumptions=(*ASSUMPTIONS_LMO, "nesterov"),
        reference=f"derived here, {label} with the age law of Nesterov's direction",
        optional={"s": NESTEROV.median} if form == "-median" else {},
    )


NESTEROV_BOUNDS = {form: _bound(form) for form in FORMS}
