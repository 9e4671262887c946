"""The steps that the proofs of this folder share, as inequalities. Kind: certified, in expectation.

  block-descent  E f(x_{k+1}) <= E f(x_k) - (gamma/2S) E||grad f(x_k)||^2 - (gamma/2S) E||grad f(z_k)||^2
                                 + (gamma L^2/2S) E||x_k - z_k||^2 + (gamma^2 L/2) E||G_k||^2
  block-average  mean||grad f(x)||^2 <= 2 S Delta0/(gamma K) - mean||grad f(z)||^2 + L^2 mean||x - z||^2
                                        + gamma L S mean||G||^2
  full-descent, full-average  the same for an update of all blocks, S = 1
  exact-descent, exact-average  the same without noise
  window         ||sum of j updates||^2 <= j (sum of their squares)          pathwise, the Cauchy-Schwarz inequality
  windows-*      what follows for ||x_k - z_k||^2, by what is known of delays and noise:
                 any (paper, A, C), counted (B), split (D), fixed (E)
Proofs: theory/pipedream/proofs. Checked by tests/theory/test_pipedream_runs.py and
tests/theory/test_pipedream_proofs.py.
"""

from __future__ import annotations

from sympy import Expr, Integer, Rational

from theory.inequality import Inequality
from theory.pipedream.parts import Delta0, G, K, L, S, delta_max, gamma, sigma, theta
from theory.symbols import symbols

f_now, f_next = symbols("E_f_now E_f_next")
grad, taken, apart, update = symbols("E_grad_square E_taken_square E_apart_square E_update_square")
mean_grad, mean_taken, mean_apart, mean_update = symbols(
    "mean_grad_square mean_taken_square mean_apart_square mean_update_square"
)
j, window_norm, window_squares = symbols("j block_window_norm block_window_squares")


def _descent(name: str, title: str, stages: Expr, assumptions: tuple[str, ...]) -> Inequality:
    half = Rational(1, 2) * gamma / stages
    return Inequality(
        name=name,
        title=title,
        statement=r"\mathbb{E} f(x_{k+1}) \le \mathbb{E} f(x_k) - \frac{\gamma}{2 S} \mathbb{E} \|\nabla f(x_k)\|^2"
        r" - \frac{\gamma}{2 S} \mathbb{E} \|\nabla f(z_k)\|^2 + \frac{\gamma L^2}{2 S} \mathbb{E} \|x_k - z_k\|^2"
        r" + \frac{\gamma^2 L}{2} \mathbb{E} \|G_k\|^2".replace("2 S", "2 S" if stages == S else "2"),
        left=f_next,
        terms={
            "objective": f_now,
            "gradient": -half * grad,
            "taken": -half * taken,
            "apart": half * L**2 * apart,
            "curvature": Rational(1, 2) * gamma**2 * L * update,
        },
        assumptions=assumptions,
        reference="derived here; the first step of arXiv 2606.03498, Theorem 4.1",
    )


def _average(name: str, title: str, stages: Expr, assumptions: tuple[str, ...]) -> Inequality:
    return Inequality(
        name=name,
        title=title,
        statement=r"\overline{\|\nabla f(x)\|^2} \le \frac{2 S \Delta_0}{\gamma K} - \overline{\|\nabla f(z)\|^2}"
        r" + L^2 \overline{\|x - z\|^2} + \gamma L S \overline{\|G\|^2}".replace(" S", " S" if stages == S else ""),
        left=mean_grad,
        terms={
            "initial": 2 * stages * Delta0 / (gamma * K),
            "taken": -mean_taken,
            "apart": L**2 * mean_apart,
            "curvature": gamma * L * stages * mean_update,
        },
        assumptions=(*assumptions, "lower-bound"),
        reference="derived here; the descent step summed",
    )


_BLOCK = ("euclidean", "smoothness", "block-sgd", "unbiased")
_EXACT = ("euclidean", "smoothness", "delayed-gd")
_FULL = ("euclidean", "smoothness", "pipedream", "unbiased")

DESCENT = _descent("block-descent", "One step of block SGD with old blocks, in expectation", S, _BLOCK)
EXACT_DESCENT = _descent("exact-descent", "One step of delayed gradient descent", Integer(1), _EXACT)
EXACT_AVERAGE = _average("exact-average", "A run of delayed gradient descent", Integer(1), _EXACT)
AVERAGE = _average("block-average", "A run of block SGD with old blocks, in expectation", S, _BLOCK)
FULL_DESCENT = _descent("full-descent", "One microbatch of PipeDream, in expectation", Integer(1), _FULL)
FULL_AVERAGE = _average("full-average", "A run of PipeDream, in expectation", Integer(1), _FULL)

WINDOW = Inequality(
    name="window",
    title="The updates in a window together, by their squares",
    statement=r"\|\sum_{i \le j} G_{i,s}\|^2 \le j \sum_{i \le j} \|G_{i,s}\|^2",
    left=window_norm**2,
    terms={"squares": j * window_squares},
    assumptions=(),
    reference="Cauchy-Schwarz",
)

mean_noise, apart_now = symbols("aged_variance E_apart_square")

WINDOWS_ANY = Inequality(
    name="windows-any",
    title="Distance between x_k and z_k, whatever the delays depend on",
    statement=r"\overline{\|x - z\|^2} \le \gamma^2 \delta_{\max}^2 \overline{\|G\|^2}",
    left=mean_apart,
    terms={"updates": gamma**2 * delta_max**2 * mean_update},
    assumptions=("block-sgd", "block-delay"),
    reference="derived here, proofs of A and C",
)
WINDOWS_COUNTED = Inequality(
    name="windows-counted",
    title="Distance between x_k and z_k, updates counted as they are drawn",
    statement=r"\mathbb{E} \|x_k - z_k\|^2 \le \gamma^2 G^2 (\delta_{\max}^2/S + \delta_{\max} (1 - 1/S))",
    left=apart_now,
    terms={"windows": gamma**2 * G**2 * (delta_max**2 / S + delta_max * (1 - 1 / S))},
    assumptions=("euclidean", "block-sgd", "block-delay", "independent-delay", "unbiased", "block-second-moment"),
    reference="derived here, proof of B",
)
WINDOWS_SPLIT = Inequality(
    name="windows-split",
    title="Distance between x_k and z_k as drift and martingale",
    statement=r"\overline{\|x - z\|^2} \le \frac{\gamma^2}{S^2} ((1+\theta) \delta_{\max}^2"
    r" + (1+1/\theta) \delta_{\max} (S-1)) \overline{\|\nabla f(z)\|^2}"
    r" + \gamma^2 (1+1/\theta) \delta_{\max} \sigma^2/S",
    left=mean_apart,
    terms={
        "gradients": gamma**2
        * ((1 + theta) * delta_max**2 + (1 + 1 / theta) * delta_max * (S - 1))
        * mean_taken
        / S**2,
        "noise": gamma**2 * (1 + 1 / theta) * delta_max * sigma**2 / S,
    },
    assumptions=("block-sgd", "block-delay", "independent-delay", "unbiased", "variance"),
    reference="derived here, proof of D",
)
WINDOWS_FIXED = Inequality(
    name="windows-fixed",
    title="Distance between y_m and z_m in PipeDream",
    statement=r"\overline{\|y - z\|^2} \le \gamma^2 (1+\theta) (S-1)^2 \overline{\|\nabla f(z)\|^2}"
    r" + \gamma^2 (1+1/\theta) \sum_s a_s \sigma_s^2",
    left=mean_apart,
    terms={
        "gradients": gamma**2 * (1 + theta) * (S - 1) ** 2 * mean_taken,
        "noise": gamma**2 * (1 + 1 / theta) * mean_noise,
    },
    assumptions=("pipedream", "unbiased", "variance"),
    reference="derived here, proof of E",
)

STEPS: dict[str, Inequality] = {
    step.name: step
    for step in (
        DESCENT,
        FULL_DESCENT,
        EXACT_DESCENT,
        AVERAGE,
        FULL_AVERAGE,
        EXACT_AVERAGE,
        WINDOW,
        WINDOWS_ANY,
        WINDOWS_COUNTED,
        WINDOWS_SPLIT,
        WINDOWS_FIXED,
    )
}
