"""The vectors that proofs speak of, each with the quantities that are its norm and its inner products.

A vector is a formal symbol: an equality that is linear in vectors holds for vectors iff it holds for numbers.
z_k is x_k, or the virtual iterate y_k of error feedback.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from theory.errors import InputError


@dataclass(frozen=True)
class Vector:
    """name: in code; latex; meaning; norm: the quantity that is its dual norm (of a gradient, a momentum, an
    error) or its norm (of a step); square: the quantity that is its squared Frobenius norm; shift: for a
    difference of two gradients the vector between the two points.
    """

    name: str
    latex: str
    meaning: str
    norm: str | None = None
    square: str | None = None
    shift: str | None = None

    @cached_property
    def symbol(self) -> sp.Symbol:
        """Its formal symbol."""
        return sp.Symbol(f"vector_{self.name}", real=True)


_ALL = (
    Vector("grad", r"\nabla f(z_k)", "gradient at z_k", "grad_norm"),
    Vector("grad_before", r"\nabla f(z_{k-1})", "gradient at z_{k-1}"),
    Vector("grad_taken", r"\nabla f(x_{(k-\tau)_+})", "mean of the gradient sample that step k uses", "taken_norm"),
    Vector("momentum", "m_{k+1}", "momentum after the gradient of step k", "momentum_norm"),
    Vector("momentum_before", "m_k", "momentum before it"),
    Vector("direction", "d_k", "LMO direction of m_{k+1}", "direction_norm"),
    Vector("step", "z_{k+1} - z_k", "step k", "step_norm"),
    Vector("step_before", "z_k - z_{k-1}", "step k - 1", "step_norm_before"),
    Vector("error", "e_k", "m_{k+1} - grad f(z_k)", "error_norm"),
    Vector("error_before", "e_{k-1}", "m_k - grad f(z_{k-1})"),
    Vector("change", r"\nabla f(z_{k-1}) - \nabla f(z_k)", "change of it", "grad_change", None, "step_before"),
    Vector("bias", r"\nabla f(x_{(k-\tau)_+}) - \nabla f(z_k)", "bias of the delay", "delay_bias", None, "gap"),
    Vector("gap", r"x_{(k-\tau)_+} - z_k", "from z_k to where the gradient was taken", "gap_norm"),
    Vector("sample", "n_k", "gradient sample of step k minus its mean", None, "sample_square"),
    Vector("noise", r"\nu_k", "noise of the momentum", "noise_norm", "noise_square"),
    Vector("noise_before", r"\nu_{k-1}", "noise of the momentum one step before", None, "noise_square_before"),
    Vector("lag", "w_k", "e_k - nu_k", "lag_norm"),
    Vector("lag_before", "w_{k-1}", "e_{k-1} - nu_{k-1}", "lag_norm_before"),
    Vector("start", r"m_0 - \nabla f(x_0)", "error of the first momentum", "E0"),
    Vector("taken_before", r"\nabla f(x_{(k-1-\tau)_+})", "gradient that the step before used"),
    Vector(
        "taken_change",
        r"\nabla f(x_{(k-1-\tau)_+}) - \nabla f(x_{(k-\tau)_+})",
        "change of the gradient where it is taken",
        "taken_change",
        None,
        "taken_step",
    ),
    Vector("taken_step", r"x_{(k-\tau)_+} - x_{(k-1-\tau)_+}", "move of where it is taken", "taken_step_norm"),
    Vector("shifted_error", "e'_k", "m_{k+1} - grad f(x_{(k-tau)+})", "shifted_error_norm"),
    Vector("shifted_error_before", "e'_{k-1}", "m_k - grad f(x_{(k-1-tau)+})"),
    Vector("shifted_lag", "w'_k", "e'_k - nu_k", "shifted_lag_norm"),
    Vector("shifted_lag_before", "w'_{k-1}", "e'_{k-1} - nu_{k-1}", "shifted_lag_norm_before"),
    Vector("grad_reference", r"\nabla f(x_{(k-s)_+})", "gradient at the reference, s steps back", "reference_norm"),
    Vector("reference_error", "e^s_k", "m_{k+1} - grad f(x_{(k-s)+})", "reference_error_norm"),
    Vector("reference_error_before", "e^{s-1}_{k-1}", "m_k - grad f(x_{(k-s)+})"),
    Vector("reference_lag", "w^s_k", "e^s_k - nu_k", "reference_lag_norm"),
    Vector("reference_lag_before", "w^{s-1}_{k-1}", "e^{s-1}_{k-1} - nu_{k-1}", "reference_lag_norm_before"),
    Vector(
        "reference_bias",
        r"\nabla f(x_{(k-\tau)_+}) - \nabla f(x_{(k-s)_+})",
        "from the gradient at the reference to the one taken",
        "reference_bias",
        None,
        "reference_gap",
    ),
    Vector("reference_gap", r"x_{(k-\tau)_+} - x_{(k-s)_+}", "from the reference to it", "reference_gap_norm"),
    # error feedback: C_k = x_k - y_k is tau U_{k-1} (extrapolate) or sum_{i=1..tau} U_{k-i} (telescoped)
    Vector("x_step", "x_{k+1} - x_k", "what the weights move by"),
    Vector("correction", "C_{k+1} - C_k", "what x - y changes by"),
    Vector("first_direction", "d_0", "LMO direction of m_1", "first_direction_norm"),
    Vector("momentum_zero", "m_0", "first momentum"),
    Vector("grad_zero", r"\nabla f(x_0)", "gradient at x_0"),
    Vector("sample_zero", "n_0", "noise of the first sample"),
    Vector("start_zero", r"m_0 - \nabla f(x_0)", "error of the first momentum", "E0"),
    Vector("start_gap", "x_0 - y_1", "from the first virtual iterate to x_0", "start_gap_norm"),
    Vector(
        "start_change", r"\nabla f(x_0) - \nabla f(y_1)", "the gradient's change", "start_change", None, "start_gap"
    ),
    Vector("direction_before", "d_{k-1}", "LMO direction of m_k", "direction_norm_before"),
    Vector("return_gap", "x_k - y_k", "from the virtual iterate to the weights", "return_gap_norm"),
    Vector(
        "return_change", r"\nabla f(x_k) - \nabla f(y_k)", "the gradient's change", "return_change", None, "return_gap"
    ),
    Vector("return_before", r"\nabla f(x_{(k-\tau)_+}) - \nabla f(y_{k-1})", "from y_{k-1} to it", "return_before"),
    Vector("grad_at_x", r"\nabla f(x_k)", "gradient at the weights", "grad_norm_at_x"),
    Vector("walk", "z_{i+j} - z_i", "j steps", "walk_norm"),
    Vector("walk_before", "z_{i+j-1} - z_i", "the first j - 1 of them", "walk_norm_before"),
)

INNER: dict[frozenset[str], str] = {  # pairs of vectors -> the quantity that is their inner product
    frozenset(("grad", "direction")): "inner_grad",
    frozenset(("momentum", "direction")): "inner_momentum",
    frozenset(("error", "direction")): "inner_error",
    frozenset(("noise_before", "sample")): "inner_noise",
}

# The same quantities at another step or place: what holds at every one of them holds there, at the steps (scope of
# theory.axioms) where there is such a place.
INSTANCES: dict[str, tuple[str, dict[str, str]]] = {
    "step before": ("later", {"step_norm": "step_norm_before"}),
    "an old step": ("later", {"step_norm": "stale_step_norm"}),
    "direction before": ("every", {"direction_norm": "direction_norm_before"}),  # of y, whose steps count from 1
    "walk back to the gradient": ("every", {"walk_norm": "gap_norm", "j": "age"}),
    "walk to the reference": ("every", {"walk_norm": "reference_gap_norm", "j": "reference_age"}),
    "return before": ("later", {"return_change": "return_before"}),  # at delay 1 a gradient is taken at x_{k-1}
    "lag before": (
        "later",
        {"lag_norm": "lag_norm_before", "delta_mean_weighted": "delta_mean_weighted_before", "k": "k - 1"},
    ),
}
# where an instance is one only under an assumption, or only at one place
INSTANCE_OF = {"direction before": "error-feedback", "return before": "delay-one"}
INSTANCE_PLACE = dict.fromkeys(("walk back to the gradient", "walk to the reference", "an old step"), "x")
INSTANCE_PLACE |= dict.fromkeys(("direction before", "return before", "lag before"), "y")
# the same at every step of a run, and, but for s itself, for every reference s; and, for one block, at every step of
# its window
CONSTANT_OF_BLOCK: list[str] = []
# the same on every path: functions of the number of the step
COUNTED_BY_STEP = ("k", "since", "length_square")
CONSTANT = "eta alpha tau s K L sigma rho r_lo r_hi longest_step E0 Delta0 Delta1 f_star".split()

VECTORS: dict[str, Vector] = {vector.name: vector for vector in _ALL}
VECTOR_SYMBOLS: dict[sp.Symbol, Vector] = {vector.symbol: vector for vector in _ALL}


def get_vector(name: str) -> Vector:
    """The vector of that name. Raises InputError naming the known ones."""
    if name not in VECTORS:
        raise InputError(f"unknown vector {name!r}; known: {', '.join(VECTORS)}")
    return VECTORS[name]


def vectors(names: str) -> tuple[sp.Symbol, ...]:
    """Formal symbols of vectors, names separated by blanks."""
    return tuple(get_vector(name).symbol for name in names.split())


def norm_name(name: str) -> str:
    """The quantity that is the norm of a vector. Raises InputError where the table has none."""
    found = get_vector(name).norm
    if found is None:
        raise InputError(f"vector {name}: the table of vectors names no norm for it")
    return found


def inner_name(first: str, second: str) -> str:
    """The quantity that is the inner product of two vectors. Raises InputError where the table has none."""
    pair = frozenset((get_vector(first).name, get_vector(second).name))
    if pair not in INNER:
        raise InputError(f"inner product of {first} and {second}: the table of vectors has none")
    return INNER[pair]


def register(vector: Vector) -> Vector:
    """Add a vector to the table (for a folder of theorems with vectors of its own); refuses a second of one name."""
    if VECTORS.setdefault(vector.name, vector) != vector:
        raise InputError(f"vector {vector.name}: is in the table already with another meaning")
    return VECTOR_SYMBOLS.setdefault(VECTORS[vector.name].symbol, VECTORS[vector.name])
