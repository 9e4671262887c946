"""Theorem 4.2 of arXiv 2606.30634 as its public summary reports it, for comparison. Kind: upper bound; as reported.

The summary says that delay 1 changes one term of the star-convex bound with weight decay, the noise:
sqrt(mu) rho sigma -> sqrt(2 mu) sqrt(rho^2 sigma^2 + 8 (L eta)^2), mu = alpha. The other terms here are those of
`star_convex` without delay and with r = 1; so this row is a reading, not a quotation, and no theorem of this project.

Where it differs: without noise its delay costs 4 sqrt(a) L eta per momentum error, ours 2 L eta (steps are 2 eta long).
The reported one falls below ours for a < 1/4 and vanishes with a; but a bias does not average down: on a run whose
steps all go one way the delay alone displaces the momentum by L times a step, for every a (Lemma C is attained).
The reported theorem may still hold for f(x_K), by an argument that its summary does not show; what the run refutes is
the momentum error that its term suggests.
Checked by tests/theory/test_star_convex.py.
"""

from __future__ import annotations

from sympy import sqrt

from theory.bound import Bound
from theory.lmo.parts import L, alpha, eta, rho, sigma
from theory.lmo.star_convex import ASSUMPTIONS, METRIC, UNIT, b, r
from theory.lmo.star_convex import BOUND as OURS

BOUND = Bound(
    name="star-convex-reported",
    title="Theorem 4.2 of arXiv 2606.30634, as reported: star-convex objective, delay 1",
    terms={name: term.subs(r, 1) for name, term in OURS.terms.items() if name != "delay"}
    | {"noise": 2 * eta / b * sqrt(2 * alpha) * sqrt(rho**2 * sigma**2 + 8 * L**2 * eta**2)},
    metric=METRIC,
    unit=UNIT,
    assumptions=(*ASSUMPTIONS, "delay-one"),
    reference="arXiv 2606.30634, Theorem 4.2, the noise term of its public summary; other terms as in star-convex",
    origin="as reported",
)
