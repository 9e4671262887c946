"""Proof for LocalSGD with steps counted: a replica is as many samples away as there were steps since the average."""

from __future__ import annotations

from theory.local_sgd import averaged
from theory.local_sgd.proofs import descent, rounds
from theory.pipedream.parts import B, K, S, gamma
from theory.pipedream.proofs import window
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

j, since, since_square, total_square, total_apart, left = symbols(
    "j since since_square total_since_square total_replicas_apart_square whole_grad_square"
)
norm, square, squares, E_square, E_squares, E_sample = symbols(
    "replica_walk_norm replica_walk_square replica_walk_squares E_replica_walk_square E_replica_walk_squares "
    "E_replica_sample_square"
)
far, E_far, E_fars, fars, apart, aparts, inner, inners, average, E_aparts = symbols(
    "replica_far_square E_replica_far_square E_replicas_far_square replicas_far_square replica_apart_square "
    "replicas_apart_square replica_inner_far replicas_inner_far average_far_square E_replicas_apart_square"
)

WALK = (
    Step(
        "walk by squares",
        (window.PROOF,),
        le(norm**2, j * squares),
        Instance("samples since the last average"),
        mutant=le(norm**2, j * squares * 19 / 20),
    ),
    Step(
        "walk by squares since the average",
        ("walk by squares", axiom("walk_norm_square"), axiom("walk_of_a_replica")),
        with_terms(square, squares=since * squares),
    ),
    Step(
        "walk by squares, expected",
        ("walk by squares since the average",),
        with_terms(E_square, squares=since * E_squares),
        Expected(),
    ),
    Step(
        "squares of j samples",
        (axiom("no_sample_yet"), axiom("one_sample_more"), axiom("second_moment_of_a_sample")),
        le(E_squares, j * B**2),
        Induction(
            {"E_replica_walk_squares_before": "E_replica_walk_squares"},
            ("no_sample_yet",),
            ("E_replica_sample_square",),
            index="j",
            axioms=(),
        ),
        mutant=le(E_squares, j * B**2 * 19 / 20),
    ),
    Step(
        "walk in numbers",
        ("walk by squares, expected", "squares of j samples", axiom("walk_of_a_replica")),
        with_terms(E_square, moment=since**2 * B**2),
    ),
)
FAR = (
    Step(
        "far",
        (definition("replica far"),),
        eq(far, gamma**2 * square),
        SquareOf(),
        mutant=eq(far, gamma**2 * square * 19 / 20),
    ),
    Step(
        "far, expected",
        ("far",),
        eq(E_far, gamma**2 * E_square),
        Expected(),
        mutant=eq(E_far, gamma**2 * E_square * 19 / 20),
    ),
    Step(
        "far in numbers",
        ("far, expected", "walk in numbers"),
        with_terms(E_far, moment=gamma**2 * since**2 * B**2),
    ),
    Step(
        "replicas far in numbers",
        ("far in numbers",),
        with_terms(E_fars, moment=gamma**2 * since**2 * B**2),
        OverReplicas(means={"E_replica_far_square": "E_replicas_far_square"}),
    ),
)
APART = (
    Step(
        "apart",
        (definition("replica apart"),),
        eq(apart, far - 2 * inner + average),
        SquareOf(),
        mutant=eq(apart, far - inner + average),
    ),
    Step(
        "replicas apart",
        ("apart",),
        eq(aparts, fars - 2 * inners + average),
        OverReplicas(
            means={
                "replica_apart_square": "replicas_apart_square",
                "replica_far_square": "replicas_far_square",
                "replica_inner_far": "replicas_inner_far",
            }
        ),
        mutant=eq(aparts, fars - inners + average),
    ),
    Step(
        "a mean minimises squares",
        ("replicas apart", axiom("mean_along_the_average")),
        with_terms(aparts, far=fars),
    ),
    Step(
        "a mean minimises squares, expected",
        ("a mean minimises squares",),
        with_terms(E_aparts, far=E_fars),
        Expected(),
    ),
    Step(
        "apart in numbers",
        ("a mean minimises squares, expected", "replicas far in numbers", definition("since squared")),
        with_terms(E_aparts, moment=gamma**2 * B**2 * since_square),
    ),
    Step(
        "apart, summed",
        ("apart in numbers",),
        with_terms(total_apart, moment=gamma**2 * B**2 * total_square),
        Totalled(
            {"E_replicas_apart_square": "total_replicas_apart_square", "since_square": "total_since_square"},
            axioms=("local-sgd", "finite-sum"),
        ),
    ),
)
STEPS = (
    *WALK,
    *FAR,
    *APART,
    *rounds.SQUARES,
    Step(
        "drift of the whole steps",
        ("apart, summed", "squares of a run", axiom("whole_steps")),
        with_terms(S**2 * total_apart / K, rounds=gamma**2 * B**2 * rounds.MEAN_SQUARE),
    ),
    Step(
        "theorem",
        (descent.AVERAGE, "drift of the whole steps", condition(averaged.COUNTED)),
        statement(averaged.COUNTED, left),
    ),
)

PROOF = Proof(averaged.COUNTED, STEPS, left)
