"""What a row of a budget can say: whether it could have failed on this run, and whether it is certified.

kind             means
certified        an inequality whose every constant is exact: must never be violated
by construction  an inequality whose constant is the extreme that this run used of it: it holds because of that
equality         an equality that a run of another method or delay would break
definition       an equality that holds of any vectors, by how its quantities are recorded: it cannot fail
Evidence are the equalities, and of the certified inequalities all but those that any vectors fulfil: triangle
inequality, duality, norm ratio. These could be broken by a norm that is computed wrongly, but not by the run.
tests/empirics/test_budget_kinds.py records arbitrary vectors and finds just the rows of the two tables unbroken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from theory.evaluation import free_names
from theory.inequality import Inequality
from theory.relation import Relation

CERTIFIED, BY_CONSTRUCTION, EQUALITY, DEFINITION = "certified", "by construction", "equality", "definition"
#: Kinds whose violation refutes something.
GATING = (CERTIFIED, EQUALITY)
#: Left sides of definitions: a direction is the step over eta, the segment's integral what is missing in the objective,
#: an error the momentum without the gradient, nu_k the sum of what it is said to be the sum of; ages in closed form.
DEFINED = frozenset(
    {
        "step_norm", "f_next - f_now", "inner_grad", "noise_square", "called_noise_square", "called_shifted_lag_norm",
        "delta", "delta_mean_weighted", "longest_step", "extra", "tau", "delay_age", "noise_growth",
        "noise_growth_root",
    }
)  # fmt: skip
#: Inequalities of any vectors.
OF_ANY_VECTORS = frozenset(
    {
        "walk_norm <= step_norm + walk_norm_before",
        "error_norm <= lag_norm + noise_norm",
        "grad_norm <= error_norm + momentum_norm",
        "grad_norm_at_x <= grad_norm + return_change",
        "taken_norm <= momentum_norm + shifted_error_norm",
        "shifted_error_norm <= noise_norm + shifted_lag_norm",
        "segment_inner <= segment_dual*step_norm",
        "inner_error <= direction_norm*error_norm",
        "noise_norm <= noise_frobenius*rho",
        "grad_norm <= called_error_norm + called_norm",
        "taken_norm <= called_norm + called_shifted_error_norm",
        "called_lag_norm <= alpha*delay_bias + lag_norm*(1 - alpha)",
        "called_error_norm <= called_lag_norm + called_noise_norm",
        "called_shifted_error_norm <= called_noise_norm + called_shifted_lag_norm",
        "inner_called_error <= called_error_norm*direction_norm",
        "called_noise_norm <= called_noise_frobenius*rho",
        "reference_norm <= momentum_norm + reference_error_norm",
        "reference_lag_norm <= reference_bias + shifted_lag_norm",
        "reference_error_norm <= noise_norm + reference_lag_norm",
        "reference_norm <= called_norm + called_reference_error_norm",
        "called_reference_lag_norm <= alpha*reference_bias + reference_lag_norm*(1 - alpha)",
        "called_reference_error_norm <= called_noise_norm + called_reference_lag_norm",
    }
)
#: The run's own extremes: of the directions' norms and of what they have along what the oracle is called at.
EXTREMES = {"r_lo", "r_hi", "longest_step"}
#: What an inequality with an extreme can be wrong about all the same.
TOLD = {"L", "age", "j", "reference_age"}


def statement(relation: Relation | Inequality) -> str:
    """The relation in words of symbols."""
    return f"{relation.left} {getattr(relation, 'sense', '<=')} {relation.right}"


def kind_of(relation: Relation | Inequality, exact: bool) -> str:
    """The kind of a row; exact: whether its L is that of the problem, not the largest that this run used."""
    if isinstance(relation, Relation) and relation.sense == "==":
        return DEFINITION if str(relation.left) in DEFINED else EQUALITY
    names = set(free_names(relation.left, relation.right))
    estimated = "L" in names and not exact
    return BY_CONSTRUCTION if estimated or (names & EXTREMES and not names & TOLD) else CERTIFIED


def is_evidence(relation: Relation | Inequality, kind: str) -> bool:
    """Whether the run could have broken it."""
    return kind == EQUALITY or (kind == CERTIFIED and statement(relation) not in OF_ANY_VECTORS)


def counts(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many rows there are of each kind, and how many are evidence."""
    rows = list(rows)
    kinds = (CERTIFIED, EQUALITY, BY_CONSTRUCTION, DEFINITION)
    found = {kind: sum(row["kind"] == kind for row in rows) for kind in kinds}
    return {"rows": len(rows), "evidence": sum(row["evidence"] for row in rows), **found}


def refuted(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Places of certified inequalities and equalities that do not hold at every step."""
    return [row["place"] for row in rows if row["violations"] and row["kind"] in GATING]
