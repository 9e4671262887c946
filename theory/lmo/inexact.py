"""Theorem 1i: the oracle is inexact, as Newton-Schulz is, and Nesterov or not. Kind: upper bound.

If norm(d_k) <= r_hi and <m_{k+1}, d_k> >= r_lo dn(m_{k+1}), r_lo > 0 the smallest, r_hi the largest of the run and of
all layers, then with R0, N, mu as in `age`
  iterate   (1/K) sum E dn(grad f(x_k)) <= (1/r_lo) [Delta0/(eta K) + L eta r_hi^2/2
                                                      + (r_lo + r_hi) (R0 + L eta r_hi mu + N)];
  shifted   x_{(k-tau)+}: (1/r_lo) [Delta0/(eta K) + L eta r_hi^2 (1/2 + tau) + (r_lo + r_hi)(R0 + L eta r_hi E i + N)];
  median    x_{(k-s)+}: mu counts r_hi^2/r_lo times, E|A - s| r_hi times, in L eta;
  momentum  dn(m_{k+1}): as the first with r_hi alone in place of r_lo + r_hi.
r_lo = r_hi = 1 are Theorems 1, 1s and 1m. Under `nesterov` m_{k+1} is read as (1-a) m_{k+1} + a g, the age law and
N as there.

Proof: f(x_{k+1}) <= f(x_k) - eta <grad f(x_k), d_k> + L eta^2 r_hi^2/2 and
<grad f(x_k), d_k> >= <m, d_k> - r_hi dn(e_k) >= r_lo dn(m) - r_hi dn(e_k), then
dn(m) >= dn(grad f(y)) - dn(m - grad f(y)) at y = x_k, x_{(k-tau)+}, x_{(k-s)+}; Lemma C with steps of norm eta r_hi.
Divide by r_lo eta K.
r_lo and r_hi bound every run of the expectation; what is measured on one noisy run is of that run.
All have a machine-checked proof: `proofs/inexact`, `proofs/nesterov`, and `proofs/inexact_median`,
`proofs/nesterov_median`.
Checked by tests/theory/test_inexact.py, test_lmo_variant_proofs.py and test_lmo_variants_on_runs.py.
"""

from __future__ import annotations

from sympy import Expr, Le, Rational

from theory.bound import Bound
from theory.lmo import delayed, median, momentum, shifted
from theory.lmo.age import CLASSICAL, NESTEROV, AgeLaw
from theory.lmo.parts import ASSUMPTIONS_LMO, DELAY, INITIAL, L, eta
from theory.symbols import symbols

r_lo, r_hi = symbols("r_lo r_hi")

ASSUMPTIONS = tuple("inexact-lmo" if name == "lmo" else name for name in ASSUMPTIONS_LMO)
FORMS = {  # form -> (the exact oracle's bound, where the gradient is measured)
    "": (delayed.BOUND, "gradient at the iterate"),
    "-shifted": (shifted.BOUND, "gradient where it was taken"),
    "-median": (median.BOUND, "gradient at the median age"),
    "-momentum": (momentum.BOUND, "dual norm of the direction itself"),
}
LABELS = {  # form -> what the theorem is called
    "": "Theorem 1i",
    "-shifted": "Theorem 1i, shifted",
    "-median": "Theorem 1i, median age",
    "-momentum": "Theorem 1i, own norm",
}


def inexact_terms(form: str, law: AgeLaw) -> dict[str, Expr]:
    """The terms of one form of FORMS."""
    first, second = r_hi / r_lo, 1  # how often the error against x_k counts, and that against the measured point
    both = first + second if form != "-momentum" else first
    lag = {"": both, "-shifted": both, "-median": first, "-momentum": first}[form]
    delay = {"": both, "-shifted": first, "-median": first, "-momentum": first}[form]
    terms = {
        "initial": INITIAL / r_lo,
        "step": Rational(1, 2) * L * eta * r_hi**2 / r_lo,
        "momentum_lag": lag * r_hi * law.lag,
        "delay": delay * r_hi * DELAY,
        "noise": both * law.noise,
        "start": both * law.start,
    }
    if form == "-median":
        terms["reference"] = L * eta * r_hi * law.distance()
    return terms


def _bound(form: str, law: AgeLaw) -> Bound:
    exact, where = FORMS[form]
    nesterov = law is NESTEROV
    label = f"{LABELS[form]}, Nesterov's direction" if nesterov else LABELS[form]
    return Bound(
        name=f"delayed-lmo-inexact{'-nesterov' if nesterov else ''}{form}",
        title=f"{label}: inexact LMO method, {where}",
        terms=inexact_terms(form, law),
        metric=exact.metric if not (nesterov and form == "-momentum") else OWN_NORM,
        assumptions=(*ASSUMPTIONS, "nesterov") if nesterov else ASSUMPTIONS,
        conditions=(Le(r_lo, r_hi),),
        reference=f"derived here, {label}",
        optional={"s": law.median} if form == "-median" else {},
    )


OWN_NORM = r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|(1-\alpha) m_{k+1} + \alpha g_k\|_*"
INEXACT = {form: _bound(form, CLASSICAL) for form in FORMS}
INEXACT_NESTEROV = {form: _bound(form, NESTEROV) for form in FORMS}
