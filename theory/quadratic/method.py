"""Linear methods with gradient delay and a correction on a quadratic: the whole expected curve. Kind: exact.

One mode of curvature lam, momentum beta, dampening d, as torch.optim.SGD inside the wrappers treats it:
    g_k = lam x_{(k-tau)+} + s xi_k,   xi_k independent, mean 0, variance 1
    m_{k+1} = beta m_k + (1 - d) g_k,   m_1 = g_0 (start "gradient") or m_0 = 0 (start "zero");   beta = 0: d = 0
    U_k = -eta m_{k+1},   with nesterov   U_k = -eta (beta m_{k+1} + (1 - d) g_k)
    x_{k+1} = x_k + U_k
d = 0 is heavy ball and torch's nesterov=True; d = beta is the exponential average (EMA), and with nesterov the
direction (1 - alpha) m_{k+1} + alpha g_k, alpha = 1 - beta, that Muon orthogonalises. torch.optim.SGD starts with
"gradient" (the first gradient undamped) and does not use d where beta = 0; torch.optim.Muon starts with "zero".
Corrections, with coefficient c and lag:
    error-feedback           x_{k+1} = x_k + U_k + c (U_k - U_{k-lag}),   a missing U_j (j < 0) is U_0
    gradient-extrapolation   g_k + c (g_k - g_{k-1}) in place of g_k,     a missing g_j is g_0
    weight-prediction        g_k at x_{k-tau} + c U_{k-tau-1},            a missing U_j is 0
All three have one characteristic polynomial. The first two are the same filter: they differ by their start alone. The
third is error feedback seen at y_k = x_k - c U_{k-1}: its noise is not extrapolated.
The mean of the state (`theory.quadratic.state_space`) follows a linear recursion from the first step on, start-up
included, and so does what each noise adds; a variance is a sum of squares of such responses. If xi is Gaussian, x_k is
Gaussian with exactly these moments.
Checked by tests/theory/test_quadratic_method.py (against a literal transcription, and by enumeration) and
tests/agreement/test_linear_optimizers.py (against the optimizer code).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sympy as sp
from scipy.linalg import solve_discrete_lyapunov

from theory.errors import InputError
from theory.quadratic.polynomial import characteristic
from theory.quadratic.state_space import recursion, responses
from theory.symbols import QUANTITIES

CORRECTIONS = ("none", "error-feedback", "gradient-extrapolation", "weight-prediction")
FORMS = ("extrapolate", "telescoped")
STARTS = ("gradient", "zero")


@dataclass(frozen=True)
class QuadraticMethod:
    """A linear method: delay tau, momentum beta with dampening, correction and its form, see the module.

    coefficient: None for the form's own (extrapolate: c = tau, lag 1; telescoped: c = 1, lag tau), or any c
    >= 0. Raises InputError for tau not a natural number, beta not in [0, 1), dampening not in [0, 1), unknown
    names, a correction without a delay, and the form telescoped for another correction than error-feedback.
    """

    tau: int = 0
    beta: float = 0.0
    dampening: float = 0.0
    correction: str = "none"
    form: str = "extrapolate"
    coefficient: float | None = None
    nesterov: bool = False
    start: str = "gradient"

    def __post_init__(self) -> None:
        if isinstance(self.tau, bool) or not isinstance(self.tau, (int, np.integer)) or self.tau < 0:
            raise InputError(f"tau={self.tau!r} is not allowed: tau must be an integer >= 0")
        for name, value in (("beta", self.beta), ("dampening", self.dampening)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
                raise InputError(f"{name}={value!r} is not allowed: {name} must be a number in [0, 1)")
        if self.correction not in CORRECTIONS:
            raise InputError(f"correction={self.correction!r} is not one of {', '.join(CORRECTIONS)}")
        if self.form not in FORMS:
            raise InputError(f"form={self.form!r} is not one of {', '.join(FORMS)}")
        if self.start not in STARTS:
            raise InputError(f"start={self.start!r} is not one of {', '.join(STARTS)}")
        if not isinstance(self.nesterov, bool):
            raise InputError(f"nesterov={self.nesterov!r} is not allowed: nesterov must be True or False")
        if self.correction != "none" and self.tau == 0:
            raise InputError(f"tau=0 is not allowed with {self.correction}: tau must be an integer >= 1")
        if self.form == "telescoped" and self.correction not in ("none", "error-feedback"):
            raise InputError(f"form='telescoped' is not allowed with {self.correction}: it looks one step back")
        if self.coefficient is not None:
            if self.correction == "none":
                raise InputError(f"coefficient={self.coefficient!r} is given, but correction is 'none'")
            QUANTITIES["c"].check(self.coefficient)

    @property
    def gain(self) -> float:
        """Weight of a new gradient after the first step; torch ignores dampening without momentum."""
        return 1.0 - self.dampening if self.beta else 1.0

    @property
    def lag(self) -> int:
        """How many steps back the correction looks; 0 without correction."""
        if self.correction == "none":
            return 0
        return 1 if self.form == "extrapolate" else int(self.tau)

    @property
    def c(self) -> float:
        """Coefficient of the correction; 0 without correction."""
        if self.correction == "none":
            return 0.0
        if self.coefficient is not None:
            return float(self.coefficient)
        return float(self.tau) if self.form == "extrapolate" else 1.0

    @property
    def exact(self) -> tuple[sp.Rational, sp.Rational, sp.Rational]:
        """(c, beta, gain) as exact decimals."""
        c, beta, d = (sp.Rational(str(float(v))) for v in (self.c, self.beta, self.dampening))
        return c, beta, 1 - d if beta else sp.S.One

    @property
    def size(self) -> int:
        """Dimension n of the state."""
        return int(self.tau) + 2 + self.lag

    @property
    def ages(self) -> int:
        """How many of the state's entries are weights: x_k, ..., x_{k-ages+1}."""
        return int(self.tau) + 1 + (self.lag if self.correction == "weight-prediction" else 0)

    def characteristic(self) -> sp.Expr:
        """The polynomial in z and h with this method's numbers as exact decimals."""
        c, beta, gain = self.exact
        return characteristic(int(self.tau), self.lag, c, beta, gain, self.nesterov)

    def transition(self, h: float | np.ndarray) -> np.ndarray:
        """Companion matrix A(h) of a step k >= 1; shape h.shape + (n, n)."""
        return recursion(self, QUANTITIES["h"].check(h))[0]

    def first_transition(self, h: float | np.ndarray) -> np.ndarray:
        """Matrix of step 0: plain; the correction remembers it as all earlier steps. h.shape + (n, n)."""
        return recursion(self, QUANTITIES["h"].check(h), first=True)[0]

    def predict(
        self,
        eta: float,
        lam: float | np.ndarray,
        noise_std: float | np.ndarray,
        x0: float | np.ndarray,
        steps: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of x_0, ..., x_steps.

        eta: step size; lam: curvatures, any shape; noise_std (of one gradient entry) and x0 broadcast with
        lam. Returns two arrays of shape (steps+1,) + the broadcast shape. Raises InputError for bad values,
        and where the moments leave float64 because the method diverges.
        """
        eta_value = float(QUANTITIES["eta"].check(eta))
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 0:
            raise InputError(f"steps={steps!r} is not allowed: steps must be an integer >= 0")
        try:
            curvature, noise_level, start = np.broadcast_arrays(
                QUANTITIES["lam"].check(lam),
                QUANTITIES["sigma"].check(noise_std),
                QUANTITIES["f_now"].check(x0),
            )
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"lam, noise_std and x0 do not broadcast: {error}") from None
        means, first, later = responses(self, eta_value * curvature, start, int(steps))
        with np.errstate(over="ignore", invalid="ignore"):
            # x_k has in it the first noise and k - 1 later ones.
            variances = first**2
            variances[2:] += np.cumsum(later[1:-1] ** 2, axis=0)
            variances *= (eta_value * noise_level) ** 2
        finite = np.isfinite(means) & np.isfinite(variances)
        if not finite.all():
            k = int(np.flatnonzero(~finite.reshape(steps + 1, -1).all(axis=1))[0])
            raise InputError(f"steps={steps}: the method diverges and leaves float64 at step {k}")
        return means, variances

    def expected_loss(
        self,
        eta: float,
        lam: float | np.ndarray,
        noise_std: float | np.ndarray,
        x0: float | np.ndarray,
        steps: int,
    ) -> np.ndarray:
        """E of the sum over modes of lam x_k^2 / 2, k = 0..steps; shape (steps+1,). Input as `predict`."""
        means, variances = self.predict(eta, lam, noise_std, x0, steps)
        losses = 0.5 * np.asarray(lam, dtype=np.float64) * (means**2 + variances)
        return losses.reshape(steps + 1, -1).sum(axis=1)

    def spectral_radius(self, h: float | np.ndarray) -> float | np.ndarray:
        """Largest modulus of an eigenvalue of A(h); shape of h."""
        radius = np.abs(np.linalg.eigvals(self.transition(h))).max(axis=-1)
        return radius if radius.ndim else float(radius)

    def stability_limit(self) -> float:
        """The h* with A(h) stable for all 0 < h < h*; see `theory.quadratic.stability`."""
        from theory.quadratic.stability import stability_limit

        return stability_limit(self)

    def stationary_variance(self, eta: float, lam: float, noise_std: float) -> float:
        """Variance of x_k as k -> infinity (Lyapunov equation). Raises InputError where A(h) is unstable."""
        eta_value, curvature = float(QUANTITIES["eta"].check(eta)), float(QUANTITIES["lam"].check(lam))
        level = float(QUANTITIES["sigma"].check(noise_std))
        radius = self.spectral_radius(eta_value * curvature)
        if not radius < 1:
            raise InputError(
                f"eta*lam={eta_value * curvature:g}: not stable, the spectral radius is {radius:g}"
            )
        matrix, noise = recursion(self, eta_value * curvature)
        added = eta_value * level * noise
        return float(solve_discrete_lyapunov(matrix, np.outer(added, added), method="bilinear")[0, 0])
