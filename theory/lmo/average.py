"""The intermediate form of Theorem 1: Lemma A summed over a run. Kind: certified, pathwise.

Statement: (1/K) sum_{k<K} dn(grad f(x_k)) <= (f(x_0) - f(x_K))/(eta K) + L eta/2 + (2/K) sum_{k<K} dn(e_k).

Proof: sum Lemma A over k = 0..K-1, the objective telescopes, divide by eta K.
Checked by tests/theory/test_lmo_path.py.
"""

from __future__ import annotations

from sympy import Rational

from theory.inequality import Inequality
from theory.symbols import symbols

f_first, f_last, mean_grad_norm, mean_error_norm = symbols("f_first f_last mean_grad_norm mean_error_norm")
eta, L, K = symbols("eta L K")

INEQUALITY = Inequality(
    name="average",
    title="Theorem 1, intermediate form: the average over a run",
    statement=r"\frac{1}{K} \sum_{k<K} \|\nabla f(x_k)\|_* \le "
    r"\frac{f(x_0) - f(x_K)}{\eta K} + \frac{L \eta}{2}"
    r" + \frac{2}{K} \sum_{k<K} \|e_k\|_*",
    left=mean_grad_norm,
    terms={
        "initial": (f_first - f_last) / (eta * K),
        "step": Rational(1, 2) * L * eta,
        "momentum_error": 2 * mean_error_norm,
    },
    assumptions=("duality", "smoothness", "lmo", "constant-step"),
    reference="derived here, proof of Theorem 1",
)
