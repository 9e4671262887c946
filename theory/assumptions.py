"""Every assumption a theorem of this room may rest on, once, by name.

A `Bound` or an `Inequality` lists the names; what they mean is written here, and in mathematics in
`theory.latex_words`. `MATHEMATICS` are the other axioms of the proofs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from theory.errors import InputError

ASSUMPTIONS: dict[str, str] = {
    "duality": "norm and dual norm are a pair: <v, d> <= dualnorm(v) norm(d)",
    "smoothness": "dualnorm(grad f(x) - grad f(y)) <= L norm(x - y) for all x, y",
    "lower-bound": "f is bounded below by f_*",
    "lmo": "norm(d_k) <= 1 and <m_{k+1}, d_k> = dualnorm(m_{k+1}), an exact linear minimisation oracle",
    "inexact-lmo": "norm(d_k) <= r_hi and <m_{k+1}, d_k> >= r_lo dualnorm(m_{k+1}) at every step and in every layer",
    "nesterov": "the oracle is called at (1-alpha) m_{k+1} + alpha g_k in place of m_{k+1}",
    "star-convex": "f(x) - f_* <= <grad f(x), x - x_*> for all x, with one minimiser x_*",
    "weight-decay": "m_{k+1} = (1-alpha) m_k + alpha g_k and x_{k+1} = (1-b) x_k - eta d_k with constant eta, alpha "
    "and b; norm(x_0) <= eta/b, "
    "norm(x_*) = r eta/b with r <= 1",
    "no-delay": "tau = 0",
    "fresh-gradient": "m_{k+1} = grad f(x_k): no noise, no momentum (alpha = 1), no delay",
    "sample-start": "m_0 is a gradient sample at x_0",
    "tuned-step": "eta is the minimiser of the bound",
    "tuned-momentum": "alpha = 2 sqrt(L Delta0/K) / (rho sigma)",
    "constant-step": "m_{k+1} = (1-alpha) m_k + alpha g_k and U_k = -eta d_k with the same eta and alpha at every "
    "step, no weight decay; x_{k+1} = x_k + U_k where error-feedback is not assumed",
    "fixed-delay": "the gradient of step k is taken at x_{(k - tau)+}, with the same tau at every step",
    "unbiased": "given the past, the gradient sample of step k has mean grad f where it is taken",
    "independent-batch": "the batch of step k is independent of all earlier steps and of the delay "
    "(no reshuffling within an epoch, no delay that depends on timing)",
    "variance": "E||g - grad f||_F^2 <= sigma^2 at every point",
    "norm-ratio": "dualnorm(v) <= rho ||v||_F for every v",
    "error-feedback": "x_{k+1} = x_k + U_k + c (U_k - U_{k-lag}) with U_k = -eta d_k; "
    "a missing U_j (j < 0) is U_0; extrapolate: c = tau, lag = 1; telescoped: c = 1, lag = tau",
    "delay-one": "tau = 1",
    "euclidean": "the norm is the Euclidean one, which is its own dual",
    "block-sgd": "x_{k+1} = x_k - gamma G_k, G_k = block s_k of g(z_k; xi_k) and 0 elsewhere; the stage s_k is "
    "uniform among S and independent of the past, of z_k and of xi_k; gamma is constant, no momentum",
    "block-delay": "block s of z_k is block s of x_{k - delta_{k,s}} with delta_{k,s} <= min(delta_max, k)",
    "independent-delay": "the delays delta_{k,s} do not depend on which stages and samples were drawn",
    "second-moment": "E||g||^2 <= B^2 at every point, for the whole gradient sample g",
    "block-second-moment": "E||g_s||^2 <= G^2 at every point, for each stage's block of a gradient sample",
    "pl": "||grad f(x)||^2 >= 2 mu (f(x) - f_*) for all x (Polyak-Lojasiewicz)",
    "pipedream": "y_{m+1} = y_m - gamma g(z_m; xi_m), block s of z_m is block s of y_{m - min(m, S-1-s)}: "
    "weight stashing, textbook warm-up, a step after every microbatch, constant gamma, no momentum",
    "equal-noise": "every stage's block of a gradient sample has variance at most sigma^2/S, at every point",
    "local-sgd": "S replicas of the whole model step by themselves and are averaged after every H steps; "
    "their samples are independent; constant gamma, no momentum",
    "delayed-gd": "x_{k+1} = x_k - gamma grad f(x_{(k-tau)+}), no noise",
}

# Assumptions that fix a symbol: name -> (symbol, its value).
FIXED: dict[str, tuple[str, float]] = {"no-delay": ("tau", 0.0), "delay-one": ("tau", 1.0)}

# Assumptions that tie choices to constants of the problem, so that these cannot be tuned: name -> (symbols, how).
TIED: dict[str, tuple[tuple[str, ...], str]] = {
    "weight-decay": (("eta", "b"), "r = b norm(x_*)/eta <= 1 and norm(x_0) <= eta/b"),
}

# Facts of mathematics that a proof may use by name; nobody has to assume them.
MATHEMATICS: dict[str, str] = {
    "norm": "norms are homogeneous and obey the triangle inequality",
    "inner-product": "the inner product is bilinear, ||v||_F^2 = <v, v>",
    "calculus": "f(y) - f(x) is the integral of <grad f, y - x> along the segment from x to y",
    "integral": "the integral is linear and monotone",
    "expectation": "the expectation is linear and monotone",
    "jensen": "(E X)^2 <= E X^2, and the mean of sqrt(X_k) is at most the square root of the mean",
    "double-sum": "a sum over windows has each step at most as often as there are windows that hold it",
    "finite-sum": "a sum of K relations of one kind is a relation between the sums",
}


def check_assumptions(names: tuple[str, ...], owner: str) -> None:
    """Refuse (InputError) names that `ASSUMPTIONS` does not hold; `owner` is named in the message."""
    for name in names:
        if name not in ASSUMPTIONS:
            raise InputError(f"{owner}: unknown assumption {name!r}; known: {', '.join(ASSUMPTIONS)}")


def tied(assumptions: Iterable[str], names: Iterable[str]) -> str | None:
    """Why the first of `names` that an assumption ties to the problem cannot be tuned, in words, or None."""
    wanted = tuple(names)
    for assumption in (a for a in assumptions if a in TIED):
        symbols, how = TIED[assumption]
        for name in (n for n in wanted if n in symbols):
            pair = " and ".join(symbols)
            return f"{name} cannot be tuned: {assumption} ties {pair} to the problem, {how}; set {pair}"
    return None


def contradiction(names: Iterable[str], values: Mapping[str, float]) -> str | None:
    """The first value that an assumption of `names` rules out, in words, or None."""
    for name in names:
        symbol, fixed = FIXED.get(name, ("", 0.0))
        if symbol in values and values[symbol] != fixed:
            return f"{symbol} = {values[symbol]:g} contradicts {name} ({symbol} = {fixed:g})"
    return None


def exclusive(first: Iterable[str], second: Iterable[str]) -> str | None:
    """Two assumptions, one of each, that fix a symbol at different values, in words, or None."""
    for one in (name for name in first if name in FIXED):
        for two in (name for name in second if name in FIXED):
            if FIXED[one][0] == FIXED[two][0] and FIXED[one] != FIXED[two]:
                return " and ".join(f"{name} ({FIXED[name][0]} = {FIXED[name][1]:g})" for name in (one, two))
    return None
