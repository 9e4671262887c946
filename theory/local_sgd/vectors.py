"""The vectors of proofs about LocalSGD and what they are made of. x_r is a replica, x_k the average of all S.

g_r is the sample of replica r, G_k the mean of all: x_{k+1} = x_k - gamma G_k, also where replicas are averaged.
"""

from __future__ import annotations

from functools import partial

import sympy as sp

import theory.pipedream.vectors  # noqa: F401  (the update, the gradient at x_k)
from theory.axioms import define
from theory.pipedream.parts import K, S, gamma
from theory.relation import eq
from theory.symbols import symbols
from theory.vectors import CONSTANT, INNER, INSTANCE_OF, INSTANCE_PLACE, INSTANCES, Vector, register, vectors

_define = partial(define, place="x")


def _vector(name: str, latex: str, meaning: str, square: str, norm: str | None = None) -> sp.Symbol:
    return register(Vector(name, latex, meaning, norm, square)).symbol


_grad, _update = vectors("sgd_grad update")
_mean = _vector("replicas_mean", r"\bar{g}_k", "mean of grad f(x_r) over the replicas", "replicas_mean_square")
_gap = _vector("replicas_gap", r"\nabla f(x_k) - \bar{g}_k", "gradient minus that mean", "replicas_gap_square")
_average_noise = _vector("average_noise", r"G_k - \bar{g}_k", "mean of the noises", "average_noise_square")
_noise = _vector("replica_noise", r"g_r - \nabla f(x_r)", "noise of a replica", "replica_noise_square")
_change = _vector(
    "replica_change", r"\nabla f(x_r) - \nabla f(x_k)", "from the average to a replica", "replica_change_square"
)
_turn = _vector("replica_turn", r"\nabla f(x_r) - \bar{g}_k", "from the mean to a replica", "replica_turn_square")
_apart = _vector("replica_apart", "x_r - x_k", "from the average to a replica", "replica_apart_square")
_far = _vector("replica_far", "x_r - x_{last}", "from the last average to a replica", "replica_far_square")
_average_far = _vector("average_far", "x_k - x_{last}", "from it to the average", "average_far_square")
_walk = _vector(
    "replica_walk", r"\sum_{i<j} g_{r,i}", "j samples of a replica", "replica_walk_square", "replica_walk_norm"
)
_rest = _vector("replica_rest", r"g_r - \nabla f(x_r) - (G_k - \bar{g}_k)", "noise minus mean", "replica_rest_square")
_drifted = _vector(
    "replica_drifted", r"x_r - x_k - \gamma (\nabla f(x_r) - \bar{g}_k)", "moved without it", "replica_drifted_square"
)
_moved = _vector("replica_moved", "x_r^+ - x_k^+", "after a step", "replica_moved_square")

INNER.update(
    {
        frozenset(pair): name
        for *pair, name in (
            ("sgd_grad", "replicas_mean", "inner_replicas"),
            ("update", "replicas_mean", "inner_update_replicas"),
            ("replica_change", "replicas_gap", "replica_inner_gap"),
            ("replica_far", "average_far", "replica_inner_far"),
            ("replica_noise", "average_noise", "replica_inner_noise"),
            ("replica_apart", "replica_turn", "replica_inner_turn"),
            ("replica_drifted", "replica_rest", "replica_inner_rest"),
        )
    }
)
CONSTANT.append("H")

_define("replicas gap", "gradient at the average minus the mean gradient", eq(_gap, _grad - _mean))
_define("average noise", "G_k is the mean gradient and the mean noise", eq(_average_noise, _update - _mean))
_define("replica turn", "by way of the gradient at the average", eq(_turn, _change + _gap))
_define("replica far", "the replica moved by its samples since the last average", eq(_far, -gamma * _walk))
_define("replica apart", "by way of the last average", eq(_apart, _far - _average_far))
_define("replica rest", "noise of a replica minus the mean of all", eq(_rest, _noise - _average_noise))
_define("replica drifted", "a step by the gradients alone", eq(_drifted, _apart - gamma * _turn))
_define("replica moved", "the noises, too", eq(_moved, _drifted - gamma * _rest))
_define("averaged", "right after an average every replica is the average", eq(_apart, 0 * _far), "samples' first")

INSTANCES["samples since the last average"] = (
    "every",
    {"block_window_norm": "replica_walk_norm", "block_window_squares": "replica_walk_squares", "j": "j"},
)
INSTANCES["one step of the replicas less"] = (
    "samples' later",
    {
        "E_replicas_apart_square": "E_replicas_apart_square_before",
        "E_replicas_moved_square": "E_replicas_apart_square",
    },
)
INSTANCES["rounds after the last step"] = (
    "every",
    {"round_sum": "round_sum_last", "round_squares": "round_squares_last"},
)
for _name in ("samples since the last average", "one step of the replicas less", "rounds after the last step"):
    INSTANCE_OF[_name], INSTANCE_PLACE[_name] = "local-sgd", "x"

_since, _next, H = symbols("since since_next H")
for _suffix, _at in (("", _since), ("_next", _next)):
    _sum, _squares = symbols(f"round_sum{_suffix} round_squares{_suffix}")
    _words = "of the steps since the last average, minus its share of a round" + _suffix.replace("_", ", ")
    _define(f"round sum{_suffix}", f"sum {_words}", eq(_sum, _at * (_at - 1) / 2 - _at * (H - 1) / 2))
    _define(
        f"round squares{_suffix}",
        f"sum of squares {_words}",
        eq(_squares, _at * (_at - 1) * (2 * _at - 1) / 6 - _at * (H - 1) * (2 * H - 1) / 6),
    )
_define("since squared", "its square", eq(symbols("since_square")[0], _since**2))
_define(
    "whole steps",
    "S^2/K times the sum over the whole steps",
    eq(symbols("whole_grad_square")[0], S**2 * symbols("total_grad_square")[0] / K),
)
