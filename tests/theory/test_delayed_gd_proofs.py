"""The proofs about delayed gradient descent: each fact and each step on runs, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from theory.axioms import axiom
from theory.checkers.check import check_step
from theory.euclidean import delayed_gd_two_sided
from theory.euclidean.proofs import delayed_gd, finite, two_sided
from theory.evaluation import free_names
from theory.ledger import closure, ledger
from theory.pipedream.proofs import any_delay, average
from theory.proof import Instance, Proof, ProofError, Relation, Step, le, statement, symbols, with_terms
from theory.splits import split_delay
from theory.unfolding import Unfolded

ROUND_OFF = 1e-11  # relative; sums of a few dozen numbers of size 0.01 to 10
A = np.array([[1.0, 0.2], [-0.3, 0.6]])
LARGEST = float(np.linalg.norm(A, 2) ** 2)
PROOFS = [p for p in closure([finite.PROOF, two_sided.PROOF]) if p.name != "window"]


def objective(x):
    return float(np.log(np.cosh(A @ x)).sum())


def gradient(x):
    return A.T @ np.tanh(A @ x)


def run(tau: int, K: int, gamma: float) -> list[dict[str, float]]:
    """What the proofs speak of at each step k < K - 1 of a run on f(x) = sum of log cosh((A x)_i), whose f_* is 0."""
    x = [np.array([0.7, -1.1])]
    for k in range(K):
        x.append(x[k] - gamma * gradient(x[max(k - tau, 0)]))
    g = [gradient(v) for v in x]
    least = min(float(v @ v) for v in g[:K])
    steps = []
    for k in range(K):
        taken, window = g[max(k - tau, 0)], [g[max(i - tau, 0)] for i in range(max(k - tau, 0), k)]
        together = sum(window, np.zeros(2))
        apart, move, t = x[k] - x[max(k - tau, 0)], -gamma * taken, 0.375
        along = gradient(x[k] + t * move) - g[k]
        fall = objective(x[k + 1]) - objective(x[k])
        squares = sum(float(v @ v) for v in window)
        values = {
            "f_now": objective(x[k]),
            "f_next": objective(x[k + 1]),
            "inner_update": g[k] @ taken,
            "inner_taken": g[k] @ taken,
            "update_square": taken @ taken,
            "taken_square": taken @ taken,
            "grad_square": g[k] @ g[k],
            "change_square": (g[k] - taken) @ (g[k] - taken),
            "apart_square": apart @ apart,
            "move_square": move @ move,
            "step_norm": np.sqrt(move @ move),
            "t": t,
            "segment_dual": np.sqrt(along @ along),
            "segment_inner": along @ move,
            "segment_mean": fall + gamma * g[k] @ taken,
            "block_apart_square": apart @ apart,
            "block_window_norm": np.sqrt(together @ together),
            "block_window_square": together @ together,
            "block_window_squares": squares,
            "block_window_excess": squares - len(window) * least,
            "window_excess": squares - len(window) * least,
            "update_excess": taken @ taken - least,
            # with the next iterate
            "next_grad_square": g[k + 1] @ g[k + 1],
            "next_change_square": (g[k + 1] - g[k]) @ (g[k + 1] - g[k]),
            "next_apart_square": (g[k + 1] - taken) @ (g[k + 1] - taken),
            "inner_changes": (g[k] - taken) @ (g[k + 1] - g[k]),
            "inner_next_taken": g[k + 1] @ taken,
            "inner_next_update": g[k + 1] @ taken,
            "inner_grad_move": g[k] @ move,
            "inner_next_move": g[k + 1] @ move,
        }
        values |= {f"E_{name}": value for name, value in values.items()}
        values |= {"j": len(window), "k": k, "length_square": min(k, tau) ** 2}
        steps.append({name: float(value) for name, value in values.items()})
    whole = {"tau": tau, "K": K, "steps": K - 1, "gamma": gamma, "L": LARGEST, "f_star": 0.0, "f_infimum": 0.0}
    names = ("E_grad_square", "E_taken_square", "E_apart_square", "E_update_excess", "E_window_excess", "length_square")
    names += ("E_next_grad_square", "E_change_square")
    whole |= {f"total_{n.removeprefix('E_')}": sum(s[n] for s in steps[: K - 1]) for n in names}
    h = LARGEST * gamma
    whole["finite_weight"] = 1 + h * ((K - 1) * (2 - h) - h**2 * whole["total_length_square"])
    s, W = max(1, h * (1 + tau)), whole["total_length_square"]
    whole |= {"relative_step": h, "share": s, "bend": 1 + (s / (s - h) if tau else 1 / max(1 - h, 0.5))}
    whole["two_sided_weight"] = 0.5 + (K - 1) * (h - s * h**2 / 4) - h**3 * whole["bend"] * W / 4
    whole |= {"E_f_first": objective(x[0]), "Delta0": objective(x[0]), "E_f_end": objective(x[K - 1])}
    return [whole | {"least_square": least} | s for s in steps]


def relations(proofs: list[Proof] = PROOFS) -> dict[str, Relation]:
    """Every fact and conclusion that has numbers."""
    found = {}
    for proof in proofs:
        for step in proof.steps:
            for fact in (*proof.facts(step), proof.fact(step.name)):
                if not fact.relation.vectors and fact.key != "theorem window":
                    found.setdefault(f"{proof.name}: {fact.key}", fact.relation)
    return found


def excess(relation: Relation, values: dict[str, float]) -> float:
    left, right = relation.evaluate({name: values[name] for name in free_names(relation.left, relation.right)})
    gap = left - right if relation.sense == "<=" else abs(left - right)
    return gap / (1 + abs(left) + abs(right))


@pytest.mark.parametrize("tau, K, h", [(0, 5, 0.9), (1, 7, 0.6), (3, 2, 0.2), (3, 9, 0.28)])
def test_every_step_holds_on_runs(tau, K, h):
    found = relations()
    assert len(found) > 90
    for values in run(tau, K, h / LARGEST):
        for where, relation in found.items():
            assert excess(relation, values) <= ROUND_OFF, f"{where}, k={values['k']}"


def test_the_two_sided_proof_holds_where_the_other_does_not_apply():
    """L gamma = 1.3 without delay, and the largest step for tau = 2."""
    for tau, h in ((0, 1.3), (2, 0.39)):
        for values in run(tau, 6, h / LARGEST):
            for where, relation in relations([two_sided.PROOF]).items():
                assert excess(relation, values) <= ROUND_OFF, f"{where}, tau={tau}, k={values['k']}"


@pytest.mark.mutation
def test_wrong_facts_show_on_a_run():
    """Another delay, one more step, a smallest square that is none."""
    found, values = relations(), run(3, 9, 0.28 / LARGEST)[6]
    for name, change in (
        ("length_of_a_window", {"tau": 2.0}),
        ("up_to_the_last_iterate", {"steps": 9.0}),
        ("least_of_an_iterate", {"least_square": 1.0}),
        ("excess_of_a_window", {"j": 2.0}),
        ("overlap_of_the_excess", {"total_window_excess": 4 * values["total_window_excess"]}),
        ("least_of_the_next", {"steps": 40.0}),
        ("interpolation_forwards", {"L": LARGEST / 20}),
        ("next apart by both", {"bend": 1.0}),
    ):
        relation = next(r for where, r in found.items() if where.endswith(name))
        assert excess(relation, values) <= ROUND_OFF < 1e-4 < excess(relation, values | change), name


# what is refused


def changed(proof: Proof, name: str, **changes: object) -> tuple[Proof, Step]:
    step = next(s for s in proof.steps if s.name == name)
    new = replace(step, **changes)
    return replace(proof, steps=tuple(new if s is step else s for s in proof.steps)), new


@pytest.mark.mutation
def test_a_step_too_long_or_a_window_left_out_is_refused():
    """Without the condition on the step, or with the windows of the start not counted at all."""
    for name in ("fall", "weight is positive"):
        step = next(s for s in finite.STEPS if s.name == name)
        result = check_step(*changed(finite.PROOF, name, premises=step.premises[:-1]))
        assert not result.proved and "does not follow; counterexample" in result.reason
    lengths = next(s for s in finite.STEPS if s.name == "lengths")
    wrong = replace(lengths.rule, sums={key: value - 1 for key, value in lengths.rule.sums.items()})
    assert "is not" in check_step(*changed(finite.PROOF, "lengths", rule=wrong)).reason
    with pytest.raises(ProofError, match="are not known to be all"):
        changed(finite.PROOF, "lengths", rule=replace(lengths.rule, cases=lengths.rule.cases[:1]))


@pytest.mark.mutation
def test_a_random_path_has_no_smallest_square_by_an_average():
    """min ||grad f(x_k)||^2 of a path is not below a bound on expectations."""
    least, grad = symbols("least_square mean_grad_square")
    bound = any_delay.A.theorem
    false = replace(bound, name="false", metric=delayed_gd.PROOF.theorem.metric)
    end = Step("s", (any_delay.A, axiom("least_of_the_iterates")), statement(false, least))
    with pytest.raises(ProofError, match="least_of_the_iterates holds only where delayed-gd is assumed"):
        Proof(false, (end,), left=least)
    assert average.EXACT.conclusion.left == grad


@pytest.mark.mutation
def test_the_last_iterate_is_one_of_the_run_only_without_noise():
    now, end, star = symbols("E_f_now E_f_end f_star")
    assert Instance("the last iterate").apply(le(star, now)).difference == star - end
    theorem = replace(average.PROOF.theorem, name="false", left=end, terms={"now": now}, assumptions=("block-sgd",))
    with pytest.raises(ProofError, match="'the last iterate' is an instance only where delayed-gd is assumed"):
        Proof(theorem, (Step("s", (axiom("second_moment"),), statement(theorem), Instance("the last iterate")),))
    with pytest.raises(ProofError, match="E_f_next has no name at the last iterate"):
        Instance("the last iterate").apply(le(now, symbols("E_f_next")[0]))


@pytest.mark.mutation
def test_a_definition_is_unfolded_as_it_stands():
    weight, other, gamma = symbols("two_sided_weight share gamma")
    rule = Unfolded(name="two-sided weight")
    assert rule.apply(le(gamma, weight)).difference == gamma - delayed_gd_two_sided.WEIGHT
    assert rule.apply(le(gamma, other)).difference == gamma - other
    for name, reason in (
        ("two-sided wait", "'two-sided wait' is not one of the definitions"),
        ("sgd move", "is no definition of a quantity"),
        ("first excess", "is no definition of a quantity at every step"),
    ):
        with pytest.raises(ProofError, match=reason):
            changed(two_sided.PROOF, "theorem", rule=Unfolded(name=name))
    assert "two-sided weight" in ledger(two_sided.PROOF).definitions


@pytest.mark.mutation
def test_a_bend_too_small_is_refused():
    """The factor of ||grad f(x_k) - grad f(z_k)||^2 without what the next change costs; multipliers of less than 1."""
    step = next(s for s in two_sided.STEPS if s.name == "next apart by both")
    terms = {**dict(step.conclusion.terms), "change": sp.Integer(0)}
    result = check_step(*changed(two_sided.PROOF, step.name, conclusion=with_terms(step.conclusion.left, **terms)))
    assert not result.proved and "does not follow; counterexample" in result.reason
    step = next(s for s in two_sided.STEPS if s.name == "both neighbours")
    result = check_step(*changed(two_sided.PROOF, step.name, premises=step.premises[:2]))
    assert not result.proved and "does not follow; counterexample" in result.reason
    with pytest.raises(ProofError, match="are not known to be all"):
        changed(two_sided.PROOF, "bend where there is a delay", cases=split_delay()[1:])


@pytest.mark.mutation
def test_interpolation_is_euclidean():
    theorem = replace(average.PROOF.theorem, name="false", assumptions=("smoothness",))
    with pytest.raises(ProofError, match="interpolation_forwards holds only where euclidean is assumed"):
        Proof(theorem, (Step("s", (axiom("interpolation_forwards"),), statement(theorem)),))
