"""Every assumption a theorem of this room may rest on, once, by name.

A `Bound` or an `Inequality` lists the names; what they mean is written here and nowhere else.
"""

from __future__ import annotations

from theory.errors import InputError

ASSUMPTIONS: dict[str, str] = {
    "duality": "norm and dual norm are a pair: <v, d> <= dualnorm(v) norm(d)",
    "smoothness": "dualnorm(grad f(x) - grad f(y)) <= L norm(x - y) for all x, y",
    "lower-bound": "f is bounded below by f_*",
    "lmo": "norm(d_k) <= 1 and <m_{k+1}, d_k> = dualnorm(m_{k+1}), an exact linear minimisation oracle",
    "constant-step": "eta and alpha are the same at every step; no weight decay",
    "fixed-delay": "the gradient of step k is taken at x_{(k - tau)+}, with the same tau at every step",
    "unbiased": "given the past, the gradient sample of step k has mean grad f where it is taken",
    "independent-batch": "the batch of step k is independent of all earlier steps and of the delay "
    "(no reshuffling within an epoch, no delay that depends on timing)",
    "variance": "E||g - grad f||_F^2 <= sigma^2 at every point",
    "norm-ratio": "dualnorm(v) <= rho ||v||_F for every v",
    "error-feedback": "x_{k+1} = x_k + U_k + c (U_k - U_{k-lag}) with U_k = -eta d_k; "
    "a missing U_j (j < 0) is U_0; extrapolate: c = tau, lag = 1; telescoped: c = 1, lag = tau",
    "delay-one": "tau = 1",
}


def check_assumptions(names: tuple[str, ...], owner: str) -> None:
    """Refuse (InputError) names that `ASSUMPTIONS` does not hold; `owner` is named in the message."""
    for name in names:
        if name not in ASSUMPTIONS:
            raise InputError(f"{owner}: unknown assumption {name!r}; known: {', '.join(ASSUMPTIONS)}")
