r"""Assumptions, and meanings of symbols that hold a formula, in LaTeX mathematics: text with $...$.

`<sigma>` stands for the LaTeX of the quantity `sigma` in the table of `theory.symbols`, so that a statement and the
bounds that rest on it cannot write one quantity in two ways. Inner products are \langle and \rangle, never < and >.
The plain words are in `theory.assumptions` and in the table of symbols.
"""

from __future__ import annotations

import re

from theory.errors import InputError
from theory.symbols import QUANTITIES

ASSUMPTIONS_LATEX: dict[str, str] = {
    "duality": r"$\|v\|_* = \max_{\|d\| \le 1} \langle v, d \rangle$, so that "
    r"$\langle v, d \rangle \le \|v\|_* \, \|d\|$ for all $v$ and $d$",
    "smoothness": r"$\|\nabla f(x) - \nabla f(y)\|_* \le <L> \|x - y\|$ for all $x$ and $y$",
    "lower-bound": r"$f(x) \ge f_* > -\infty$ for all $x$",
    "lmo": r"$\|d_k\| \le 1$ and $\langle m_{k+1}, d_k \rangle = \|m_{k+1}\|_*$, that is "
    r"$d_k \in \arg\max_{\|d\| \le 1} \langle m_{k+1}, d \rangle$ (an exact linear minimisation oracle)",
    "inexact-lmo": r"$\|d_k\| \le <r_hi>$ and $\langle m_{k+1}, d_k \rangle \ge <r_lo> \|m_{k+1}\|_*$ at every step, "
    r"in every layer",
    "nesterov": r"the oracle is called at $(1-<alpha>) m_{k+1} + <alpha> g_k$ in place of $m_{k+1}$",
    "star-convex": r"$f(x) - f_* \le \langle \nabla f(x), x - x_* \rangle$ for all $x$, with one minimiser $x_*$",
    "weight-decay": r"$m_{k+1} = (1-<alpha>) m_k + <alpha> g_k$ and $x_{k+1} = (1-<b>) x_k - <eta> d_k$ with constant "
    r"$<eta>$, $<alpha>$ and $<b>$; $\|x_0\| \le <eta>/<b>$, $\|x_*\| = <r> <eta>/<b>$ with $<r> \le 1$",
    "no-delay": r"$<tau> = 0$",
    "fresh-gradient": r"$m_{k+1} = \nabla f(x_k)$: no noise, no momentum ($<alpha> = 1$), no delay",
    "sample-start": r"$m_0 = g(x_0; \xi)$ with a sample $\xi$",
    "tuned-step": r"$<eta>$ is the minimiser of the bound",
    "tuned-momentum": r"$<alpha> = 2 \sqrt{<L> <Delta0>/<K>} / (<rho> <sigma>)$",
    "constant-step": r"$m_{k+1} = (1-<alpha>) m_k + <alpha> g_k$ and $U_k = -<eta> d_k$ with the same $<eta>$ and "
    r"$<alpha>$ at every step, no weight decay; $x_{k+1} = x_k + U_k$ where error-feedback is not assumed",
    "fixed-delay": r"$g_k = g(x_{(k-<tau>)_+}; \xi_k)$ with the same $<tau>$ at every step, $(a)_+ = \max(a, 0)$",
    "unbiased": r"$\mathbb{E}[g(z; \xi_k) \mid \text{the past}] = \nabla f(z)$, $z$ the point where the sample of "
    r"step $k$ is taken",
    "independent-batch": r"$\xi_k$ is independent of all earlier steps and of the delay (no reshuffling within an "
    r"epoch, no delay that depends on timing)",
    "variance": r"$\mathbb{E} \|g(x; \xi) - \nabla f(x)\|_F^2 \le <sigma>^2$ for all $x$",
    "norm-ratio": r"$\|v\|_* \le <rho> \|v\|_F$ for all $v$",
    "error-feedback": r"$x_{k+1} = x_k + U_k + <c> (U_k - U_{k-\ell})$ with $U_k = -<eta> d_k$, $U_j = U_0$ for "
    r"$j < 0$; extrapolate: $<c> = <tau>$, $\ell = 1$, virtual iterate $y_k = x_k - <tau> U_{k-1}$; telescoped: "
    r"$<c> = 1$, $\ell = <tau>$, $y_k = x_k - \sum_{j=1}^{<tau>} U_{k-j}$",
    "delay-one": r"$<tau> = 1$",
    "euclidean": r"$\|v\| = \|v\|_* = \langle v, v \rangle^{1/2}$",
    "block-sgd": r"$x_{k+1} = x_k - <gamma> G_k$, $G_k$ is block $s_k$ of $g(z_k; \xi_k)$ and $0$ elsewhere; the stage "
    r"$s_k$ is uniform among $<S>$ and independent of the past, of $z_k$ and of $\xi_k$; $<gamma>$ is constant, no "
    r"momentum",
    "block-delay": r"$[z_k]_s = [x_{k - \delta_{k,s}}]_s$ for every block $s$, with "
    r"$\delta_{k,s} \le \min(<delta_max>, k)$",
    "independent-delay": r"the delays $\delta_{k,s}$ are independent of all $(s_j, \xi_j)$",
    "second-moment": r"$\mathbb{E} \|g(x; \xi)\|^2 \le <B>^2$ for all $x$, for the whole gradient sample",
    "block-second-moment": r"$\mathbb{E} \|[g(x; \xi)]_s\|^2 \le <G>^2$ for all $x$ and every stage $s$",
    "pl": r"$\|\nabla f(x)\|^2 \ge 2 <mu> (f(x) - f_*)$ for all $x$ (Polyak-Lojasiewicz)",
    "pipedream": r"$y_{m+1} = y_m - <gamma> g(z_m; \xi_m)$, $[z_m]_s = [y_{m - \min(m, <S>-1-s)}]_s$ for every block "
    r"$s = 0, \dots, <S>-1$: weight stashing, textbook warm-up, a step after every microbatch, constant $<gamma>$, no "
    r"momentum",
    "equal-noise": r"$\mathbb{E} \|[g(x; \xi) - \nabla f(x)]_s\|^2 \le <sigma>^2/<S>$ for all $x$ and every stage $s$",
    "local-sgd": r"$x^r_{t+1} = x^r_t - <gamma> g(x^r_t; \xi^r_t)$ for the replicas $r = 1, \dots, <S>$, with "
    r"independent $\xi^r_t$; after every $<H>$ steps each is set to $\bar{x}_t = \frac{1}{<S>} \sum_r x^r_t$; constant "
    r"$<gamma>$, no momentum",
    "delayed-gd": r"$x_{k+1} = x_k - <gamma> \nabla f(x_{(k-<tau>)_+})$, no noise",
}

MEANINGS_LATEX: dict[str, str] = {
    "theta": r"split of a squared sum: $\|u + v\|^2 \le (1+<theta>) \|u\|^2 + (1+1/<theta>) \|v\|^2$",
    "mu": r"Polyak-Lojasiewicz constant: $\|\nabla f\|^2 \ge 2 <mu> (f - f_*)$",
    "beta": r"momentum, $1 - <alpha>$",
    "Delta0": r"$f(x_0) - f_*$",
    "Delta1": r"$f(y_1) - f_*$, at the first virtual iterate",
    "r": r"$<b> \|x_*\| / <eta>$: norm of the minimiser in radii of the decay's ball",
    "r_lo": r"smallest $\langle m_{k+1}, d_k \rangle / \|m_{k+1}\|_*$ of a run",
    "r_hi": r"largest $\|d_k\|$ of a run",
    "dbar": r"average of $\mathbb{E} \|y_k - x_{(k-<tau>)_+}\| / <eta>$ over the run: drift of the updates, in steps",
    "block_age": r"$\sum_s (<S>-1-s) \sigma_s^2 / <sigma>^2$, $\sigma_s^2$ the variance of block $s$: age of the "
    r"blocks in microbatches, averaged with the noise of each",
    "E0": r"$\mathbb{E} \|m_0 - \nabla f(x_0)\|_*$",
}

_QUANTITY = re.compile(r"<(\w+)>")


def filled(template: str) -> str:
    """The text with the LaTeX of its quantities."""
    return _QUANTITY.sub(lambda found: QUANTITIES[found[1]].latex, template)


def assumption_latex(name: str) -> str:
    """An assumption of `theory.assumptions` in LaTeX. Raises InputError for an unknown name."""
    if name not in ASSUMPTIONS_LATEX:
        raise InputError(f"unknown assumption {name!r}; known: {', '.join(ASSUMPTIONS_LATEX)}")
    return filled(ASSUMPTIONS_LATEX[name])


def quantities_of(name: str) -> tuple[str, ...]:
    """Names of the quantities that the mathematics of an assumption speaks of."""
    return tuple(dict.fromkeys(_QUANTITY.findall(ASSUMPTIONS_LATEX[name])))


def meaning_latex(name: str) -> str | None:
    """What a quantity is, in LaTeX, where its meaning holds a formula; None where plain words say it."""
    return filled(MEANINGS_LATEX[name]) if name in MEANINGS_LATEX else None
