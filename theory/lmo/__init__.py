"""Delayed LMO methods (Muon, sign descent, normalised SGD), without and with error feedback.

    x_{k+1} = x_k - eta d_k,   m_{k+1} = (1 - alpha) m_k + alpha g(x_{(k-tau)+}; xi_k),
    e_k = m_{k+1} - grad f(x_k)

`PATHWISE` holds the steps of the proofs that are true on every path, for evaluation on a run.
"""

from theory.inequality import Inequality
from theory.lmo import average, delay, descent, error_feedback_path, momentum_error

PATHWISE: dict[str, Inequality] = {
    inequality.name: inequality
    for inequality in (
        descent.INEQUALITY,
        delay.INEQUALITY,
        momentum_error.INEQUALITY,
        average.INEQUALITY,
        error_feedback_path.DESCENT,
        error_feedback_path.DELAY,
        error_feedback_path.MOMENTUM_ERROR,
        error_feedback_path.AVERAGE,
    )
}

__all__ = ["PATHWISE"]
