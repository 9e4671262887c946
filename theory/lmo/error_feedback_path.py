"""Error feedback, the steps of Theorem 2 on every path, any tau >= 1. Kind: certified, pathwise.

The virtual iterate is y_k = x_k - tau U_{k-1} (extrapolate) or x_k - sum_{i=1..tau} U_{k-i} (telescoped),
missing U_j (j < 0) read as U_0. In both forms y_1 = x_0 - (tau-1) U_0 and y_{k+1} = y_k + U_k for
k >= 1: y moves like a plain LMO method whose gradient is taken at x_{(k-tau)+}. Write
delta_k = norm(y_k - x_{(k-tau)+})/eta and, from k = 1 on, e_k = m_{k+1} - grad f(y_k).

Statements, b = 1 - alpha, k >= 1:
  ef-descent         Lemma A at y.
  ef-delay           dn(grad f(x_{(k-tau)+}) - grad f(y_k)) <= L eta delta_k.
  ef-momentum-error  dn(e_k) <= b^{k+1} E0 + b^k L eta (tau-1) + L eta b (1 - b^{k-1})/alpha
                     + L eta alpha sum_{i=1..k} b^{k-i} delta_i + dn(nu_k),
                     nu_k = alpha sum_{i=0..k} b^{k-i} n_i.
  ef-average         Lemma A summed over k = 1..K, from f(y_1) to f(y_{K+1}).

Proof of the third: m_1 is b m_0 + alpha g(x_0), so with norm(x_0 - y_1) <= (tau-1) eta
  m_1 - grad f(y_1) = b (m_0 - grad f(x_0)) + (grad f(x_0) - grad f(y_1)) + alpha n_0,
and for k >= 1
  e_k = b e_{k-1} + b (grad f(y_{k-1}) - grad f(y_k))
      + alpha (grad f(x_{(k-tau)+}) - grad f(y_k)) + alpha n_k,
where for k = 1 the first two are b (m_1 - grad f(y_1)); unroll, norm(y_k - y_{k-1}) <= eta for k >= 2.
In both forms delta_k <= 2 tau; at tau = 1 delta_1 = 0 and delta_k = norm(d_{k-1} - d_{k-2}).
Checked by tests/theory/test_error_feedback_path.py.
"""

from __future__ import annotations

from sympy import Rational

from theory.inequality import Inequality
from theory.lmo.momentum_error import lag_sum
from theory.symbols import symbols

f_now, f_next, grad_norm, error_norm, noise_norm, delay_bias = symbols(
    "f_now f_next grad_norm error_norm noise_norm delay_bias"
)
f_first, f_last, mean_grad_norm, mean_error_norm = symbols("f_first f_last mean_grad_norm mean_error_norm")
delta, delta_mean_weighted, E0, L, eta, alpha, tau, k, K = symbols(
    "delta delta_mean_weighted E0 L eta alpha tau k K"
)

_STEPS = ("smoothness", "lmo", "constant-step", "fixed-delay", "error-feedback")

DESCENT = Inequality(
    name="ef-descent",
    title="Lemma A at the virtual iterate of error feedback",
    statement=r"f(y_{k+1}) \le f(y_k) - \eta \|\nabla f(y_k)\|_* + 2 \eta \|e_k\|_* + \frac{L \eta^2}{2}",
    left=f_next,
    terms={
        "objective": f_now,
        "gradient": -eta * grad_norm,
        "momentum_error": 2 * eta * error_norm,
        "step": Rational(1, 2) * L * eta**2,
    },
    assumptions=("duality", "smoothness", "lmo", "error-feedback"),
    reference="derived here, proof of Theorem 2; method: arXiv 2606.30634",
)

DELAY = Inequality(
    name="ef-delay",
    title="Lemma B at the virtual iterate: the delay becomes a drift",
    statement=r"\|\nabla f(x_{(k-\tau)_+}) - \nabla f(y_k)\|_* \le L \eta \delta_k",
    left=delay_bias,
    terms={"delay": L * eta * delta},
    assumptions=("smoothness", "error-feedback"),
    reference="derived here, proof of Theorem 2; method: arXiv 2606.30634",
)

MOMENTUM_ERROR = Inequality(
    name="ef-momentum-error",
    title="Lemma C at the virtual iterate",
    statement=r"\|e_k\|_* \le "
    r"(1-\alpha)^{k+1} E_0 + (1-\alpha)^k L \eta (\tau-1) + L \eta \sum_{j=1}^{k-1} (1-\alpha)^j"
    r" + L \eta \alpha \sum_{i=1}^{k} (1-\alpha)^{k-i} \delta_i + \|\nu_k\|_*",
    left=error_norm,
    terms={
        "start": (1 - alpha) ** (k + 1) * E0,
        "start_shift": (1 - alpha) ** k * L * eta * (tau - 1),
        "momentum_lag": L * eta * lag_sum(k - 1),
        "delay": L * eta * delta_mean_weighted,
        "noise": noise_norm,
    },
    assumptions=_STEPS,
    reference="derived here, proof of Theorem 2; method: arXiv 2606.30634",
)

AVERAGE = Inequality(
    name="ef-average",
    title="Theorem 2, intermediate form: the average over a run",
    statement=r"\frac{1}{K} \sum_{k=1}^{K} \|\nabla f(y_k)\|_* \le "
    r"\frac{f(y_1) - f(y_{K+1})}{\eta K} + \frac{L \eta}{2}"
    r" + \frac{2}{K} \sum_{k=1}^{K} \|e_k\|_*",
    left=mean_grad_norm,
    terms={
        "initial": (f_first - f_last) / (eta * K),
        "step": Rational(1, 2) * L * eta,
        "momentum_error": 2 * mean_error_norm,
    },
    assumptions=("duality", "smoothness", "lmo", "constant-step", "error-feedback"),
    reference="derived here, proof of Theorem 2; method: arXiv 2606.30634",
)
