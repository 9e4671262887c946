"""The vectors of proofs about SGD with old gradients, their definitions, and what stays the same during a run."""

from __future__ import annotations

from functools import partial

from sympy import sqrt

from theory.axioms import define, under
from theory.pipedream.parts import S, gamma, sigma
from theory.relation import eq
from theory.symbols import symbols
from theory.vectors import CONSTANT, CONSTANT_OF_BLOCK, INNER, INSTANCE_OF, INSTANCES, Vector, register

_define = partial(define, place="x")

_grad = register(Vector("sgd_grad", r"\nabla f(x_k)", "gradient at the iterate", None, "grad_square")).symbol
_taken = register(Vector("sgd_taken", r"\nabla f(z_k)", "gradient where step k looks", None, "taken_square")).symbol
_change = register(
    Vector("sgd_change", r"\nabla f(x_k) - \nabla f(z_k)", "their difference", None, "change_square")
).symbol
_update = register(Vector("update", "G_k", "update of step k without its step size", None, "update_square")).symbol
_move = register(Vector("move", "x_{k+1} - x_k", "step k", None, "move_square")).symbol
_difference = register(
    Vector("difference", r"G_k - \mathbb{E}_k G_k", "update minus its mean", None, "martingale_square")
).symbol
_apart = register(Vector("block_apart", "z_{k,s} - x_{k,s}", "block s apart", None, "block_apart_square")).symbol
_window = register(
    Vector("block_window", r"\sum_{i \le j} G_{i,s}", "updates together", "block_window_norm", "block_window_square")
).symbol
_window_before = register(
    Vector(
        "block_window_before",
        r"\sum_{i<j} G_{i,s}",
        "without the last",
        "block_window_norm_before",
        "block_window_square_before",
    )
).symbol
_block_update = register(
    Vector("block_update", "G_{j,s}", "the last update", "block_update_norm", "block_update_square")
).symbol
_drift = register(
    Vector(
        "block_drift",
        r"\sum_{i \le j} \mathbb{E}_i G_{i,s}",
        "means together",
        "block_drift_norm",
        "block_drift_square",
    )
).symbol
_martingale = register(
    Vector("block_martingale", r"\sum_{i \le j} (G - \mathbb{E} G)_{i,s}", "the rest", None, "block_martingale_square")
).symbol
_martingale_before = register(
    Vector(
        "block_martingale_before",
        r"\sum_{i<j} (G - \mathbb{E} G)_{i,s}",
        "the rest without the last",
        None,
        "block_martingale_square_before",
    )
).symbol
_block_difference = register(
    Vector("block_difference", r"(G - \mathbb{E} G)_{j,s}", "the last of the rest", None, "block_difference_square")
).symbol
_split = register(Vector("block_split", r"\theta u - v", "for Young's inequality", None, "block_split_square")).symbol

_walk = register(
    Vector("walk_window", "w_j", "first j updates in all windows", "walk_window_norm", "walk_window_square")
).symbol
_walk_before = register(
    Vector(
        "walk_window_before", "w_{j-1}", "first j - 1 of them", "walk_window_norm_before", "walk_window_square_before"
    )
).symbol
_walk_update = register(
    Vector("walk_update", "P_j G_j", "update j in the windows that hold it", "walk_update_norm", "walk_update_square")
).symbol
_whole_apart = register(Vector("apart", "z_k - x_k", "whole model apart", None, "apart_square")).symbol
INNER.update(
    {
        frozenset(("sgd_grad", "sgd_taken")): "inner_taken",
        frozenset(("walk_window_before", "walk_update")): "walk_inner",
        frozenset(("update", "sgd_taken")): "inner_update_taken",
        frozenset(("block_window_before", "block_update")): "block_inner",
        frozenset(("block_martingale_before", "block_difference")): "block_inner_martingale",
        frozenset(("block_drift", "block_martingale")): "block_inner_parts",
    }
)
INSTANCES["means in the window"] = (
    "every",
    {
        "block_window_norm": "block_drift_norm",
        "block_window_squares": "block_drift_squares",
        "j": "j",
    },
)

_define("sgd move", "the method: x_{k+1} = x_k - gamma G_k", eq(_move, -gamma * _update), place="x undecayed")
_define("sgd change", "difference of the gradients at x_k and z_k", eq(_change, _grad - _taken))
_define("block apart", "block s of z_k lacks the updates in its window", eq(_apart, gamma * _window))
_define("window", "j updates are j - 1 updates and one", eq(_window, _window_before + _block_update), "window's later")
_define("empty window", "no update", eq(_window, 0 * _block_update), "window's first")
_define("drift and martingale", "each update is its mean and the rest", eq(_window, _drift + _martingale))
_define(
    "block difference", "j of the rest", eq(_martingale, _martingale_before + _block_difference), "window's later"
)
_define("no difference", "nothing", eq(_martingale, 0 * _block_difference), "window's first")
_define("split", "theta u - v, u the means, v the rest", eq(_split, symbols("theta")[0] * _drift - _martingale))
_define("difference", "G_k minus its mean, grad f(z_k)/S", eq(_difference, _update - _taken / S))
_first, _floor = symbols("E_f_first f_star")
_define("first gap", "Delta0 = E f(x_0) - f_*", eq(symbols("Delta0")[0], _first - _floor))
INSTANCES["the largest update"] = ("every", {"E_update_square": "update_most"})
INSTANCES["one block"] = ("every", {"block_apart_square": "apart_square", "block_window_squares": "window_squares"})
INSTANCE_OF["one block"] = "delayed-gd"  # where the whole model is as old as a block of it
INSTANCES["after the last step"] = ("every", {"excess_next": "excess_last", "k": "K - 1"})
CONSTANT += [
    name
    for name in "gamma S G B mu delta_max theta sigma_b M block_age aged_variance age_max update_most".split()
    if name not in CONSTANT
]
CONSTANT_OF_BLOCK += "block_delay block_variance block_aged_variance".split()
_excess, _excess_next, _now, _next = symbols("excess_now excess_next E_f_now E_f_next")
_define("excess", "E f(x_k) - f_*", eq(_excess, _now - _floor))
_define("excess after the step", "E f(x_{k+1}) - f_*", eq(_excess_next, _next - _floor))
_define("first excess", "E f(x_0) - f_*", eq(_excess, symbols("Delta0")[0]), "first")
INSTANCES["one update less"] = (
    "window's later",
    {"E_block_window_norm": "E_block_window_norm_before", "j": "j_before"},
)
_define("one less", "without the last", eq(symbols("j_before")[0], symbols("j")[0] - 1), "window's later")
_define("equal split", "theta = 1", eq(symbols("theta")[0], 1 + 0 * S))
_define(
    "aged variance",
    "a_s times sigma_s^2",
    eq(symbols("block_aged_variance")[0], symbols("block_delay")[0] * symbols("block_variance")[0]),
)
_define(
    "block age",
    "sum_s a_s sigma_s^2 = block_age sigma^2",
    eq(symbols("aged_variance")[0], symbols("block_age")[0] * sigma**2),
)
_define("microbatches", "a step is a microbatch: K = M", eq(symbols("K")[0], symbols("M")[0]))
under("block-sgd", "definition difference")  # of G_k whose mean is grad f(z_k)/S
under("pipedream", "definition microbatches")
under("lower-bound", "definition first gap")  # Delta0 is not negative
_define("apart", "z_k lacks the updates in all windows", eq(_whole_apart, gamma * _walk))
_define(
    "walk of updates", "j updates are j - 1 updates and one", eq(_walk, _walk_before + _walk_update), "window's later"
)
_define("empty walk", "no update of any window", eq(_walk, 0 * _walk_update), "window's first")
INSTANCES["one update of the walk less"] = (
    "window's later",
    {"E_walk_window_norm": "E_walk_window_norm_before", "j": "j_before"},
)
_most, _most_before, _steps, _fewer, _second = symbols("walk_most walk_most_before j j_before B")
_define(
    "most of a walk",
    "(B/S) (j + sqrt(j (S-1)))",
    eq(_most, _second * (_steps + sqrt(_steps * (S - 1))) / S),
)
_define(
    "most of the walk before",
    "the same for one update less",
    eq(_most_before, _second * (_fewer + sqrt(_fewer * (S - 1))) / S),
    "window's later",
)
