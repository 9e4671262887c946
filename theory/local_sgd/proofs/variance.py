"""Proof for LocalSGD of one objective: only noise drives the replicas apart, an induction over the steps of a round."""

from __future__ import annotations

from theory.local_sgd import variance
from theory.local_sgd.proofs import descent, rounds
from theory.pipedream.parts import K, L, S, gamma, sigma
from theory.pipedream.proofs.common import condition
from theory.proof import (
    Expected,
    Induction,
    Instance,
    Proof,
    SquareOf,
    Step,
    axiom,
    definition,
    eq,
    le,
    statement,
    symbols,
    with_terms,
)
from theory.replica_rules import OverReplicas, Totalled
from theory.splits import split_round

j, H, since, total_since, total_apart, left = symbols(
    "j H since total_since total_replicas_apart_square whole_grad_square"
)
apart, turn, inner, drifted, noise, rest, inner_noise, average = symbols(
    "replica_apart_square replica_turn_square replica_inner_turn replica_drifted_square replica_noise_square "
    "replica_rest_square replica_inner_noise average_noise_square"
)
aparts, turns, inners, drifteds, noises, rests, inner_noises = symbols(
    "replicas_apart_square replicas_turn_square replicas_inner_turn replicas_drifted_square replicas_noise_square "
    "replicas_rest_square replicas_inner_noise"
)
moved, inner_rest, E_moved, E_drifted, E_rest, E_inner_rest = symbols(
    "replica_moved_square replica_inner_rest E_replica_moved_square E_replica_drifted_square E_replica_rest_square "
    "E_replica_inner_rest"
)
E_moveds, E_drifteds, E_rests, E_noises, E_average, E_aparts, E_before = symbols(
    "E_replicas_moved_square E_replicas_drifted_square E_replicas_rest_square E_replicas_noise_square "
    "E_average_noise_square E_replicas_apart_square E_replicas_apart_square_before"
)
GROWTH = 1 + gamma * L
NEW = gamma**2 * (1 - 1 / S) * sigma**2
LONGEST = GROWTH ** (2 * (H - 2))

DRIFTED = (
    *descent.TURNS,
    Step(
        "turns are short",
        ("turns by the distances",),
        with_terms(turns, apart=L**2 * aparts),
    ),
    Step(
        "along the turns",
        (axiom("along_all_replicas"), "turns are short"),
        with_terms(-inners, apart=L * aparts),
    ),
    Step(
        "drifted",
        (definition("replica drifted"),),
        eq(drifted, apart - 2 * gamma * inner + gamma**2 * turn),
        SquareOf(),
        mutant=eq(drifted, apart - gamma * inner + gamma**2 * turn),
    ),
    Step(
        "replicas drifted",
        ("drifted",),
        eq(drifteds, aparts - 2 * gamma * inners + gamma**2 * turns),
        OverReplicas(
            means={
                "replica_drifted_square": "replicas_drifted_square",
                "replica_apart_square": "replicas_apart_square",
                "replica_inner_turn": "replicas_inner_turn",
                "replica_turn_square": "replicas_turn_square",
            }
        ),
        mutant=eq(drifteds, aparts - gamma * inners + gamma**2 * turns),
    ),
    Step(
        "replicas drifted by the distances",
        ("replicas drifted", "turns are short", "along the turns"),
        le(drifteds, GROWTH**2 * aparts),
    ),
    Step(
        "replicas drifted, expected",
        ("replicas drifted by the distances",),
        le(E_drifteds, GROWTH**2 * E_aparts),
        Expected(),
    ),
)
RESTS = (
    *descent.NOISES,
    Step(
        "rest",
        (definition("replica rest"),),
        eq(rest, noise - 2 * inner_noise + average),
        SquareOf(),
        mutant=eq(rest, noise - inner_noise + average),
    ),
    Step(
        "rests",
        ("rest",),
        eq(rests, noises - 2 * inner_noises + average),
        OverReplicas(
            means={
                "replica_rest_square": "replicas_rest_square",
                "replica_noise_square": "replicas_noise_square",
                "replica_inner_noise": "replicas_inner_noise",
            }
        ),
        mutant=eq(rests, noises - inner_noises + average),
    ),
    Step(
        "rests by squares",
        ("rests", axiom("mean_along_the_noise")),
        eq(rests, noises - average),
        mutant=eq(rests, noises - average * 19 / 20),
    ),
    Step(
        "rests, expected",
        ("rests by squares",),
        eq(E_rests, E_noises - E_average),
        Expected(),
        mutant=eq(E_rests, E_noises - E_average * 19 / 20),
    ),
    Step(
        "rests in numbers",
        ("rests, expected", axiom("independent_samples"), "noises"),
        le(E_rests, (1 - 1 / S) * sigma**2),
    ),
)
MOVED = (
    Step(
        "moved",
        (definition("replica moved"),),
        eq(moved, drifted - 2 * gamma * inner_rest + gamma**2 * rest),
        SquareOf(),
        mutant=eq(moved, drifted - gamma * inner_rest + gamma**2 * rest),
    ),
    Step(
        "moved, expected",
        ("moved",),
        eq(E_moved, E_drifted - 2 * gamma * E_inner_rest + gamma**2 * E_rest),
        Expected(),
        mutant=eq(E_moved, E_drifted - gamma * E_inner_rest + gamma**2 * E_rest),
    ),
    Step(
        "moved with new noise",
        ("moved, expected", axiom("noise_along_the_known")),
        eq(E_moved, E_drifted + gamma**2 * E_rest),
        mutant=eq(E_moved, E_drifted + gamma**2 * E_rest * 19 / 20),
    ),
    Step(
        "replicas moved with new noise",
        ("moved with new noise",),
        eq(E_moveds, E_drifteds + gamma**2 * E_rests),
        OverReplicas(
            means={
                "E_replica_moved_square": "E_replicas_moved_square",
                "E_replica_drifted_square": "E_replicas_drifted_square",
                "E_replica_rest_square": "E_replicas_rest_square",
            }
        ),
        mutant=eq(E_moveds, E_drifteds + gamma**2 * E_rests * 19 / 20),
    ),
    Step(
        "replicas moved",
        ("replicas moved with new noise", "replicas drifted, expected", "rests in numbers"),
        with_terms(E_moveds, before=GROWTH**2 * E_aparts, new=NEW),
    ),
    Step(
        "one step more",
        ("replicas moved",),
        with_terms(E_aparts, before=GROWTH**2 * E_before, new=NEW),
        Instance("one step of the replicas less"),
    ),
)
ROUND = (
    Step("together", (definition("averaged"),), eq(apart, 0 * L), SquareOf(), mutant=eq(apart, 1 + 0 * L)),
    Step(
        "all together",
        ("together",),
        eq(aparts, 0 * L),
        OverReplicas(means={"replica_apart_square": "replicas_apart_square"}),
        mutant=eq(aparts, 1 + 0 * L),
    ),
    Step("all together, expected", ("all together",), eq(E_aparts, 0 * L), Expected(), mutant=eq(E_aparts, 1 + 0 * L)),
    Step(
        "apart after j steps",
        ("all together, expected", "one step more"),
        le(GROWTH**2 * E_aparts, NEW * j * GROWTH ** (2 * j)),
        Induction(
            {"E_replicas_apart_square_before": "E_replicas_apart_square"},
            ("all together, expected",),
            index="j",
            axioms=(),
        ),
    ),
    Step(
        "apart in a round",
        ("apart after j steps", axiom("walk_of_a_round")),
        le(E_aparts, NEW * j * LONGEST),
        cases=split_round(),
    ),
    Step(
        "apart since the average",
        ("apart in a round", axiom("walk_of_a_replica")),
        le(E_aparts, NEW * since * LONGEST),
    ),
    Step(
        "apart, summed",
        ("apart since the average",),
        le(total_apart, NEW * total_since * LONGEST),
        Totalled(
            {"E_replicas_apart_square": "total_replicas_apart_square", "since": "total_since"},
            axioms=("local-sgd", "finite-sum"),
        ),
    ),
)
STEPS = (
    *DRIFTED,
    *RESTS,
    *MOVED,
    *ROUND,
    *rounds.SUM,
    Step(
        "steps of a run",
        ("sum of a run", axiom("whole_steps")),
        with_terms(S**2 * total_since / K, rounds=rounds.MEAN),
    ),
    Step(
        "drift of the whole steps",
        ("apart, summed", "steps of a run"),
        le(S**2 * total_apart / K, NEW * LONGEST * rounds.MEAN),
    ),
    Step(
        "theorem",
        (descent.AVERAGE, "drift of the whole steps", condition(variance.BOUND)),
        statement(variance.BOUND, left),
    ),
)

PROOF = Proof(variance.BOUND, STEPS, left)
