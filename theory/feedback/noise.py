"""White noise alone: the displacement of a delayed gradient, without and with error feedback. Kind: exact.

m is the stationary EMA of independent noises of variance 1 (weight a, b = 1 - a): autocovariance a b^j/(2-a). The
gradient is taken at x_{k-tau}; its distance to where it is used, in steps eta, is
    plain           sum_{p=1..tau} m,                                   from x_k,
    error feedback  sum_j w_j (m - its predecessor)  (theory.feedback.linear),  from y_k.
`variance` gives E|.|^2 for each. At tau = 1: a/(2-a) and 2 a^2/(2-a), so the correction makes it smaller iff a < 1/2.
`break_even` is that limit for other tau: the only a in (0, 1) with equal variances, so the correction wins below it.
    tau             1      2      3      4
    extrapolate   .500   .382   .309   .259
    telescoped    .500   .382   .296   .239
The variance of the loss on quadratics (theory.quadratic.variance) is another metric: break-even a = 2/5 at tau = 1.
Checked by tests/theory/feedback/test_noise.py (against sums over the noises).
"""

from __future__ import annotations

from functools import cache

import sympy as sp

from theory.errors import InputError
from theory.feedback.linear import FORMS, weights
from theory.lmo.parts import alpha
from theory.tightness.lattice import check_natural


@cache
def variance(form: str | None, tau: int) -> sp.Expr:
    """E|displacement|^2/eta^2 as a rational function of alpha; form None: plain delay."""
    check_natural("tau", tau, 1)
    if form is None:
        momentum = [1] * tau  # coefficients of m_k, m_{k-1}, ...
    else:
        w = weights(form, tau)
        momentum = [a - b for a, b in zip([*w, 0], [0, *w], strict=True)]
    b = 1 - alpha
    total = sum(u * v * b ** abs(i - j) for i, u in enumerate(momentum) for j, v in enumerate(momentum))
    return sp.factor(total * alpha / (2 - alpha))


def break_even(form: str, tau: int) -> sp.Expr:
    """The a in (0, 1) at which error feedback and plain delay have equal variances, as an exact root."""
    if form not in FORMS:
        raise InputError(f"form={form!r} is not one of {', '.join(FORMS)}")
    ratio = sp.cancel(variance(form, tau) / variance(None, tau))
    roots = [root for root in sp.Poly(sp.numer(ratio) - sp.denom(ratio), alpha).real_roots() if 0 < root < 1]
    if len(roots) != 1:
        raise InputError(f"tau={tau}, form={form}: {len(roots)} break-even points in (0, 1); one is needed")
    return roots[0]
