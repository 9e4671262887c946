"""Every pathwise step of the proofs, evaluated along literal runs of the method: left <= right at each step.

A step may hold at the first or at later steps only. Numbers are computed here from the definitions, for l_inf and l_1.
"""

from __future__ import annotations

import numpy as np
import pytest

from theory.axioms import DEFINITIONS, SCHEMAS, axiom
from theory.evaluation import free_names
from theory.proof_quantities import PREFIX
from theory.proofs import PROOFS
from theory.relation import Relation

ROUND_OFF = 1e-10  # relative; sums of a few dozen numbers of size 1 to 1e3


def dual(v: np.ndarray) -> float:
    return float(np.abs(v).sum())


def primal(v: np.ndarray) -> float:
    return float(np.abs(v).max())


def quantities(run, k: int) -> dict[str, float]:
    """What the proofs speak of at step k, from the definitions; z is x, or y with error feedback."""
    first = 0 if run.form is None else 1
    eta, alpha, tau = run.eta, run.alpha, run.tau

    def error(i: int) -> np.ndarray:
        return run.m[i + 1] - run.gradient(run.point(i))

    def noise(i: int) -> np.ndarray:
        return alpha * sum(((1 - alpha) ** (i - p) * run.noise[p] for p in range(i + 1)), np.zeros(len(run.v)))

    def drift(i: int) -> float:
        return primal(run.point(i) - run.x[max(i - tau, 0)]) / eta

    def weighted(i: int) -> float:
        return alpha * sum((1 - alpha) ** (i - p) * drift(p) for p in range(1, i + 1))

    here = run.point(k)
    there = run.x[k + 1] if run.b else here + run.U[k]
    d, step, t = -run.U[k] / eta, there - here, 0.375
    g, m, taken = run.gradient(here), run.m[k + 1], run.x[max(k - tau, 0)]
    along = run.H @ step
    values = {
        "f_now": run.f(here),
        "f_next": run.f(there),
        "grad_norm": dual(g),
        "momentum_norm": dual(m),
        "error_norm": dual(m - g),
        "direction_norm": primal(d),
        "step_norm": primal(step),
        "inner_grad": g @ d,
        "inner_momentum": m @ d,
        "inner_error": (m - g) @ d,
        "t": t,
        "segment_dual": dual(t * along),
        "segment_inner": t * along @ step,
        "segment_mean": along @ step / 2,
        "delay_bias": dual(run.gradient(taken) - g),
        "gap_norm": primal(taken - here),
        "age": min(k, tau),
        "lag_norm": dual(error(k) - noise(k)),
        "noise_norm": dual(noise(k)),
        "noise_square": noise(k) @ noise(k),
        "sample_square": run.noise[k] @ run.noise[k],
        "delay_age": alpha * sum((1 - alpha) ** (k - i) * min(i, tau) for i in range(1, k + 1)),
        "taken_norm": dual(run.gradient(taken)),
        "shifted_error_norm": dual(m - run.gradient(taken)),
        "shifted_lag_norm": dual(m - run.gradient(taken) - noise(k)),
        "delta": drift(k),
        "delta_mean_weighted": weighted(k),
        "delta_mean_weighted_before": weighted(k - 1),
        "E0": dual(run.m[0] - run.gradient(run.x[0])),
        "extra": tau - 1,
        "noise_growth": 1 - (1 - alpha) ** (2 * k + 2),
        "noise_growth_root": np.sqrt(1 - (1 - alpha) ** (2 * k + 2)),
        "noise_frobenius": np.sqrt(noise(k) @ noise(k)),
    }
    values |= {"eta": eta, "alpha": alpha, "tau": tau, "k": k, "L": run.L, "rho": np.sqrt(len(run.v))}
    values |= {"r_lo": 1, "r_hi": 1, "longest_step": eta}  # an exact oracle
    called = (1 - alpha) * m + alpha * (run.gradient(taken) + run.noise[k])
    called_noise = (1 - alpha) * noise(k) + alpha * run.noise[k]
    values |= {
        "called_norm": dual(called),
        "called_error_norm": dual(called - g),
        "called_shifted_error_norm": dual(called - run.gradient(taken)),
        "called_lag_norm": dual(called - g - called_noise),
        "called_shifted_lag_norm": dual(called - run.gradient(taken) - called_noise),
        "called_noise_norm": dual(called_noise),
        "called_noise_square": called_noise @ called_noise,
        "called_noise_frobenius": np.sqrt(called_noise @ called_noise),
        "inner_called": called @ d,
        "inner_called_error": (called - g) @ d,
    }
    # a walk of j steps that ends at k
    j = min(k - first, 3)
    start = run.point(k - j) if j else there
    values |= {"j": j + 1 if j else 1, "walk_norm": primal(there - (start if j else here))}
    values |= {"walk_norm_before": primal(here - start) if j else 0.0}
    if k > first:
        before, stale = run.point(k - 1), max(k - 1 - tau, 0)
        values |= {
            "lag_norm_before": dual(error(k - 1) - noise(k - 1)),
            "grad_change": dual(run.gradient(before) - g),
            "step_norm_before": primal(here - before),
            "noise_square_before": noise(k - 1) @ noise(k - 1),
            "inner_noise": noise(k - 1) @ run.noise[k],
            "shifted_lag_norm_before": dual(run.m[k] - run.gradient(run.x[stale]) - noise(k - 1)),
            "taken_change": dual(run.gradient(run.x[stale]) - run.gradient(taken)),
            "taken_step_norm": primal(taken - run.x[stale]),
            "stale_step_norm": primal(run.U[stale]),
        }
    if run.form is not None:
        values |= {
            "first_direction_norm": primal(run.U[0] / eta),
            "start_gap_norm": primal(run.x[0] - run.point(1)),
            "start_change": dual(run.gradient(run.x[0]) - run.gradient(run.point(1))),
            "direction_norm_before": primal(run.U[k - 1] / eta),
            "return_gap_norm": primal(run.x[k] - here),
            "return_change": dual(run.gradient(run.x[k]) - g),
            "grad_norm_at_x": dual(run.gradient(run.x[k])),
        }
        if k > first:
            values["return_before"] = dual(run.gradient(taken) - run.gradient(run.point(k - 1)))
    if run.b:
        star = np.linalg.solve(run.H, -run.v)
        values |= {
            "b": run.b,
            "r": run.b * primal(star) / eta,
            "f_star": run.f(star),
            "iterate_norm": primal(here),
            "minimiser_norm": primal(star),
            "inner_step": g @ step,
            "inner_iterate": g @ here,
            "inner_grad_minimiser": g @ star,
            "inner_momentum_minimiser": m @ star,
            "inner_error_minimiser": (m - g) @ star,
        }
        if k:
            values |= {"iterate_norm_before": primal(run.x[k - 1]), "direction_norm_before": primal(run.U[k - 1] / eta)}
    return {name: float(value) for name, value in values.items()}


def at_reference(run, k: int, s: int) -> dict[str, float]:
    """The same for the gradient s steps back."""
    taken, reference = max(k - run.tau, 0), max(k - s, 0)
    g = run.gradient(run.x[reference])

    def noise(i: int) -> np.ndarray:
        return run.alpha * sum(((1 - run.alpha) ** (i - p) * run.noise[p] for p in range(i + 1)), np.zeros(len(run.v)))

    values = {
        "s": s,
        "reference_norm": dual(g),
        "reference_error_norm": dual(run.m[k + 1] - g),
        "reference_lag_norm": dual(run.m[k + 1] - g - noise(k)),
        "reference_bias": dual(run.gradient(run.x[taken]) - g),
        "reference_gap_norm": primal(run.x[taken] - run.x[reference]),
        "reference_age": abs(taken - reference),
    }
    a, b = run.alpha, 1 - run.alpha
    called = b * run.m[k + 1] + a * (run.gradient(run.x[taken]) + run.noise[k])
    values["called_reference_error_norm"] = dual(called - g)
    values["called_reference_lag_norm"] = dual(called - g - b * noise(k) - a * run.noise[k])
    if k > 0:
        values["reference_lag_norm_before"] = dual(run.m[k] - g - noise(k - 1))
    return {name: float(value) for name, value in values.items()}


def pathwise(relation: Relation) -> bool:
    """Whether it speaks of one path and one step, not of an expectation, a run's average or a vector."""
    names = set() if relation.vectors else set(free_names(relation.left, relation.right))
    whole = {"f_first", "f_last", "K", "Delta0", "Delta1", "sigma", "dbar", "scale", "noise_scale"}
    return bool(names) and not any(n.startswith((PREFIX, "mean_")) or n in whole for n in names)


#: Proofs about stochastic gradient descent, whose runs are in test_pipedream_runs.py and test_delayed_sgd_runs.py.
OF_SGD = ("block-", "full-", "exact-", "window", "rpd-", "pipedream-", "delayed-gd", "local-")


def relations(place: str, nesterov: bool = False) -> list[tuple[str, str, Relation]]:
    """(where, scope, relation) of every pathwise conclusion and axiom of the proofs at x, y, or x with decay."""
    found = {}
    for name, proof in PROOFS.items():
        own = proof.place == place and ("nesterov" in proof.theorem.assumptions) == nesterov
        if name.startswith(OF_SGD) or not own:
            continue
        for step in proof.steps:
            for fact in (*proof.facts(step), proof._facts[step.name]):
                if pathwise(fact.relation):
                    found.setdefault(str(fact.relation), (f"{name}: {fact.key}", fact.scope, fact.relation))
    return list(found.values())


def excess(relation: Relation, values: dict[str, float]) -> float:
    left, right = relation.evaluate(values)
    gap = left - right if relation.sense == "<=" else abs(left - right)
    return gap / (1 + abs(left) + abs(right))


@pytest.mark.parametrize("form, tau", [(None, 0), (None, 1), (None, 3), ("extrapolate", 1), ("extrapolate", 2),
                                       ("telescoped", 3)])  # fmt: skip
def test_every_pathwise_step_holds_on_runs(random_run, form, tau):
    first = 0 if form is None else 1
    found = relations("x" if form is None else "y")
    assert len(found) >= 15
    for seed in range(2):
        run = random_run(seed, tau, form, steps=8)
        for k in range(first, len(run.U)):
            values = quantities(run, k) | at_reference(run, k, s=(k + 3 * seed) % (tau + 4))
            for place, scope, relation in found:
                if (scope.endswith("later") and k == first) or (scope.startswith("first") and k > first):
                    continue
                if scope == "first" and first:  # k = 0, where y does not begin
                    continue
                if tau != 1 and place.startswith(("error-feedback-at-x", "error-feedback-weights", "error-feedback:")):
                    continue
                if form == "telescoped" and "back_to_the_weights" in place:
                    continue
                names = free_names(relation.left, relation.right)
                if k == first and not set(names) <= set(values):
                    continue  # it speaks of the step before
                here = values | {"walk_norm": 0.0, "j": 0} if scope == "walk's first" else values
                assert excess(relation, here) <= ROUND_OFF, f"{place}, seed {seed}, k={k}"


@pytest.mark.parametrize("tau", [0, 2])
def test_every_pathwise_step_holds_on_runs_with_nesterovs_direction(random_run, tau):
    found = relations("x", nesterov=True)
    assert sum("called" in str(relation) for _, _, relation in found) >= 12
    seen = 0
    for seed in range(2):
        run = random_run(seed, tau, steps=6, nesterov=True)
        for k in range(len(run.U)):
            values = quantities(run, k) | at_reference(run, k, s=(k + seed) % (tau + 3))
            for place, scope, relation in found:
                if (scope.endswith("later") and k == 0) or (scope == "first" and k > 0):
                    continue
                names = set(free_names(relation.left, relation.right))
                if k == 0 and not names <= set(values):
                    continue  # it speaks of the step before
                here = values | {"walk_norm": 0.0, "j": 0} if scope == "walk's first" else values
                assert excess(relation, here) <= ROUND_OFF, f"{place}, seed {seed}, k={k}"
                seen += 1
    assert seen > 400


@pytest.mark.mutation
def test_what_the_oracle_says_of_the_momentum_is_seen_to_fail_with_nesterovs_direction(random_run):
    """And what it says of c_k where it is called at m_{k+1}."""
    other, own = axiom("lmo_value").relation, axiom("lmo_value_where_called").relation
    for nesterov, wrong, right in ((True, other, own), (False, own, other)):
        run = random_run(2, 1, steps=30, nesterov=nesterov)
        assert max(excess(wrong, quantities(run, k)) for k in range(30)) > 1e-3
        assert max(excess(right, quantities(run, k)) for k in range(30)) <= ROUND_OFF


@pytest.mark.parametrize("tau", [0, 2])
def test_every_pathwise_step_with_weight_decay_holds_on_runs(decayed_run, tau):
    found = relations("x decayed")
    assert len(found) >= 25
    for seed in range(4):
        run = decayed_run(seed, tau, 8)
        for k in range(len(run.U)):
            values = quantities(run, k)
            for place, scope, relation in found:
                speaks = k or set(free_names(relation.left, relation.right)) <= set(values)
                if (scope == "first" and k) or (scope.endswith("later") and not k) or not speaks:
                    continue
                at = values | ({"walk_norm": 0.0, "j": 0} if scope == "walk's first" else {})
                assert excess(relation, at) <= ROUND_OFF, f"{place}, seed {seed}, k={k}"


@pytest.mark.mutation
def test_a_wrong_step_is_seen_on_a_run(random_run):
    """Data of another delay, or a mutated constant, show: the evaluation is no formality."""
    found = {place: relation for place, _, relation in relations("x")}
    fixed = axiom("fixed_delay").relation
    run = random_run(1, 3, steps=14)
    assert excess(fixed, quantities(run, 9)) <= ROUND_OFF
    assert excess(fixed, quantities(run, 9) | {"tau": 2.0}) > 0.1
    length = found["descent: length of the step"]
    assert excess(length, quantities(run, 9) | {"eta": 2 * run.eta}) > 1e-3


def test_the_tables_of_axioms_and_definitions_are_used():
    """No schema and no definition that no proof uses: each would be an open door."""
    used = {fact.key.split(" ")[0] for p in PROOFS.values() for s in p.steps for fact in p.facts(s) if fact.axiom}
    assert {n for n, (_, _, f, _) in SCHEMAS.items() if f.__module__.startswith("theory.lmo")} <= used
    cited = {f.key for p in PROOFS.values() for s in p.steps for f in p.facts(s) if f.kind == "definition"}
    assert {f"definition {name}" for name in DEFINITIONS} <= cited
