"""The proofs about LocalSGD: each fact and each step on a run whose expectations are exact.

Two replicas of f(x) = sum of log cosh((A x)_i), all signs of all noises; a fact about one path is checked on every path
and replica.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from theory.evaluation import free_names
from theory.ledger import closure
from theory.local_sgd.proofs import counted, variance
from theory.proof import Relation

ROUND_OFF = 1e-11  # relative; averages over 256 paths of numbers of size 0.01 to 10
A = np.array([[1.0, 0.2], [-0.3, 0.6]])
LARGEST = float(np.linalg.norm(A, 2) ** 2)
S, T, H, GAMMA = 2, 4, 3, 0.6
LOCAL = [p for p in closure([counted.PROOF, variance.PROOF]) if p.name.startswith("local-")]


def inner(a, b):
    return (a * b).sum(-1)


def square(a):
    return inner(a, a)


def objective(x):
    return np.log(np.cosh(x @ A.T)).sum(-1)


def gradient(x):
    return np.tanh(x @ A.T) @ A


class Run:
    """Every path of a run: arrays [path, replica] or, where it is the same for all replicas, [path, 1]."""

    def __init__(self) -> None:
        signs = np.array(list(itertools.product((-1, 1), repeat=S * T)), float).reshape(-1, T, S, 1)
        noise = np.array([0.5, 0.3])
        x = np.broadcast_to(np.array([0.7, -1.1]), (len(signs), S, 2))
        self.steps: list[dict] = []
        last, walk, squares, since = x, np.zeros_like(x), np.zeros(x.shape[:2]), 0
        before: dict = {}
        for k in range(T + 1):
            if k and k % H == 0:
                x = np.broadcast_to(x.mean(1, keepdims=True), x.shape)
                last, walk, squares, since = x, np.zeros_like(x), np.zeros(x.shape[:2]), 0
            n = noise * (signs[:, k] if k < T else signs[:, 0])
            values = self.one(x, n, last, walk, squares, since, k)
            if since:
                values |= {
                    "replica_walk_squares_before": before["replica_walk_squares"],
                    "replica_sample_square": before["sample"],
                    "replicas_apart_square_before": before["replicas_apart_square"],
                }
            self.steps.append(values)
            walk, squares, since = walk + values.pop("g"), squares + values["sample"], since + 1
            x, before = values.pop("x_next"), values

    def one(self, x, n, last, walk, squares, since, k) -> dict:
        mean = lambda v: v.mean(1, keepdims=True)  # noqa: E731
        average, grads, last_average = mean(x), gradient(x), mean(last)
        grad, mean_grad, g = gradient(average), mean(grads), grads + n
        G, a, u, rest = mean(g), x - average, grads - mean_grad, n - mean(n)
        move = -GAMMA * G
        drifted, change, gap, far = a - GAMMA * u, grads - grad, grad - mean_grad, x - last
        after = drifted - GAMMA * rest
        replicas = {
            "noise_square": square(n),
            "change_square": square(change),
            "inner_gap": inner(change, gap),
            "turn_square": square(u),
            "apart_square": square(a),
            "far_square": square(far),
            "inner_far": inner(far, average - last_average),
            "inner_noise": inner(n, mean(n)),
            "rest_square": square(rest),
            "inner_turn": inner(a, u),
            "drifted_square": square(drifted),
            "moved_square": square(after),
        }
        t, f_now, f_next = 0.375, objective(average), objective(average + move)
        along = gradient(average + t * move) - grad
        after_since = 0 if (since + 1) % H == 0 else since + 1
        values = {f"replica_{name}": v for name, v in replicas.items()}
        values |= {f"replicas_{name}": mean(v) for name, v in replicas.items()}
        values |= {
            "g": g,
            "x_next": x - GAMMA * g,
            "sample": square(g),
            "f_now": f_now,
            "f_next": f_next,
            "inner_update": inner(grad, G),
            "update_square": square(G),
            "move_square": square(move),
            "step_norm": np.sqrt(square(move)),
            "t": t,
            "segment_dual": np.sqrt(square(along)),
            "segment_inner": inner(along, move),
            "segment_mean": f_next - f_now + GAMMA * inner(grad, G),
            "inner_update_mean": inner(grad, mean_grad),
            "grad_square": square(grad),
            "replicas_mean_square": square(mean_grad),
            "inner_replicas": inner(grad, mean_grad),
            "replicas_gap_square": square(gap),
            "inner_update_replicas": inner(G, mean_grad),
            "average_noise_square": square(mean(n)),
            "average_far_square": square(average - last_average),
            "replica_walk_norm": np.sqrt(square(walk)),
            "replica_walk_square": square(walk),
            "replica_walk_squares": squares,
            "replica_inner_rest": inner(drifted, rest),
        }
        c, d = (H - 1) / 2, (H - 1) * (2 * H - 1) / 6
        for end, h in (("", since), ("_next", after_since)):
            values[f"round_sum{end}"] = h * (h - 1) / 2 - h * c
            values[f"round_squares{end}"] = h * (h - 1) * (2 * h - 1) / 6 - h * d
        return values | {"since": since, "since_next": after_since, "since_square": since**2, "j": since, "k": k}

    def expected(self, k: int) -> dict:
        """The same with the expectations, arrays [1, replica]."""
        now = self.steps[k]
        means = {f"E_{n}": v.mean(0, keepdims=True) for n, v in now.items() if isinstance(v, np.ndarray)}
        return now | means

    def whole(self) -> dict:
        """Sums over the run; K is no multiple of S^2."""
        states = [self.expected(k) for k in range(T + 1)]
        K = S * S * T + 1
        total = lambda name: sum(float(np.mean(s[name])) for s in states[:T])  # noqa: E731
        names = ("E_grad_square", "E_replicas_mean_square", "E_replicas_apart_square", "since", "since_square")
        values = {f"total_{name.removeprefix('E_')}": total(name) for name in names}
        for name in ("round_sum", "round_squares"):
            values |= {f"{name}_first": states[0][name], f"{name}_last": states[T][name]}
        f_first, f_end = (float(np.mean(states[k]["f_now"])) for k in (0, T))
        values |= {"E_f_first": f_first, "E_f_end": f_end, "f_end": f_end, "f_star": 0.0, "Delta0": f_first}
        B = max(float(s["sample"].max()) for s in states) ** 0.5
        values |= {"whole_grad_square": S * S / K * values["total_grad_square"], "B": B, "sigma": 0.34**0.5}
        return values | {"K": K, "steps": T, "S": S, "H": H, "gamma": GAMMA, "L": LARGEST}


@pytest.fixture(scope="module")
def run() -> Run:
    return Run()


def relations() -> list[tuple[str, str, Relation]]:
    """(where, scope, relation) of every fact and conclusion that has numbers."""
    found = {}
    for proof in LOCAL:
        for step in proof.steps:
            for fact in (*proof.facts(step), proof.fact(step.name)):
                if not fact.relation.vectors and fact.key != "theorem window":
                    found.setdefault(str(fact.relation), (f"{proof.name}: {fact.key}", fact.scope, fact.relation))
    return list(found.values())


def excess(relation: Relation, values: dict) -> float:
    left, right = relation.evaluate({name: values[name] for name in free_names(relation.left, relation.right)})
    gap = left - right if relation.sense == "<=" else np.abs(left - right)
    return float(np.max(gap / (1 + np.abs(left) + np.abs(right))))


def test_every_step_holds_on_a_run(run):
    found, whole, seen = relations(), run.whole(), set()
    for k in range(T):
        values = whole | run.expected(k)
        for where, scope, relation in found:
            if scope != "every" and (scope == "samples' first") != (values["since"] == 0):
                continue
            if values["since"] == 0 and "E_replica_sample_square" in free_names(relation.left, relation.right):
                continue  # of the last step of a walk
            assert excess(relation, values) <= ROUND_OFF, f"{where}, k={k}"
            seen.add(where)
    assert len(seen) == len(found) > 70


@pytest.mark.mutation
def test_wrong_facts_show_on_a_run(run):
    """Rounds of another length, less noise than there is, a mean taken for a replica."""
    values = run.whole() | run.expected(2)
    found = {where.split(": ")[1]: relation for where, _, relation in relations()}
    for name in ("apart since the average", "squares, one step", "variance_of_a_replica", "mean_along_the_average"):
        assert excess(found[name], values) <= ROUND_OFF
    assert excess(found["squares, one step"], values | {"H": 5}) > 0.1
    assert excess(found["variance_of_a_replica"], values | {"sigma": 0.5}) > 0.05
    assert excess(found["mean_along_the_average"], values | {"replicas_inner_far": values["replica_inner_far"]}) > 0.05
