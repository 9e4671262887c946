"""How far the steps are from the last average: sums over a run, the last round unfinished, by telescoping.

R = (sum so far in this round) - (steps so far in it)(sum of a round)/H is 0 at the start of a round, and at most 0.
"""

from __future__ import annotations

from sympy import Expr, Integer

import theory.local_sgd.axioms  # noqa: F401  (registers the schemas)
from theory.proof import Instance, Step, axiom, definition, eq, le, symbols, with_terms
from theory.replica_rules import Totalled
from theory.splits import split_since

H, T, since, since_square, total_since, total_square = symbols(
    "H steps since since_square total_since total_since_square"
)
MEAN = (H - 1) / 2
MEAN_SQUARE = (H - 1) * (2 * H - 1) / 6


def _rounds(name: str, mean: Expr, each: str) -> tuple[Step, ...]:
    now, after, first, last, one, total = symbols(
        f"round_{name} round_{name}_next round_{name}_first round_{name}_last {each} total_{each}"
    )
    squared = (definition("since squared"),) if each == "since_square" else ()
    own, following = definition(f"round {name}"), definition(f"round {name}_next")
    return (
        Step(
            f"{name}, one step",
            (axiom("one_step_on"), axiom("end_of_a_round"), own, following, *squared),
            eq(one, mean + after - now),
            mutant=eq(one, mean * 19 / 20 + after - now),
        ),
        Step(
            f"{name}, summed",
            (f"{name}, one step",),
            eq(total, mean * T + last - first),
            Totalled(
                {each: f"total_{each}"},
                ((f"round_{name}", f"round_{name}_next", f"round_{name}_first", f"round_{name}_last"),),
                axioms=("local-sgd", "finite-sum"),
            ),
        ),
        Step(
            f"{name}, a part of a round",
            (own, axiom("walk_of_a_replica"), axiom("walk_of_a_round")),
            le(now, Integer(0)),
            mutant=le(now, Integer(-1)),
            cases=split_since() if squared else ({},),
        ),
        Step(
            f"{name}, the last round",
            (f"{name}, a part of a round",),
            le(last, Integer(0)),
            Instance("rounds after the last step"),
            mutant=le(last, Integer(-1)),
        ),
        Step(
            f"{name} of a run",
            (f"{name}, summed", f"{name}, the last round", axiom("start_of_a_round", name)),
            with_terms(total, rounds=mean * T),
        ),
    )


SUM = _rounds("sum", MEAN, "since")
SQUARES = _rounds("squares", MEAN_SQUARE, "since_square")
