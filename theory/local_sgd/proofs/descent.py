"""Proof of the descent of the average of the replicas, one step and a run."""

from __future__ import annotations

import theory.local_sgd.axioms  # noqa: F401  (registers the schemas)
from theory.local_sgd import steps
from theory.pipedream.parts import Delta0, L, S, gamma, sigma
from theory.pipedream.proofs.descent import ALONG
from theory.proof import Expected, Proof, SquareOf, Step, axiom, definition, eq, ge, statement, symbols, with_terms
from theory.replica_rules import OverReplicas, Totalled

gap, grad, mean, inner, turn, change, inner_gap = symbols(
    "replicas_gap_square grad_square replicas_mean_square inner_replicas replica_turn_square replica_change_square "
    "replica_inner_gap"
)
E_gap, E_grad, E_mean, E_inner, E_apart, E_update, E_along = symbols(
    "E_replicas_gap_square E_grad_square E_replicas_mean_square E_inner_replicas E_replicas_apart_square "
    "E_update_square E_inner_update"
)
turns, changes, inner_gaps, apart = symbols(
    "replicas_turn_square replicas_change_square replicas_inner_gap replicas_apart_square"
)
average_noise, update, along_mean, E_average_noise, E_along_mean, E_noise, E_noises = symbols(
    "average_noise_square update_square inner_update_replicas E_average_noise_square E_inner_update_replicas "
    "E_replica_noise_square E_replicas_noise_square"
)
first, end, f_end, f_star, total_grad, total_mean, total_apart, T, f_now, f_next = symbols(
    "E_f_first E_f_end f_end f_star total_grad_square total_replicas_mean_square total_replicas_apart_square steps "
    "E_f_now E_f_next"
)

#: The gradients at the replicas around their mean, by the distances of the replicas.
TURNS = (
    Step(
        "turn",
        (definition("replica turn"),),
        eq(turn, change + 2 * inner_gap + gap),
        SquareOf(),
        mutant=eq(turn, change + inner_gap + gap),
    ),
    Step(
        "turns",
        ("turn",),
        eq(turns, changes + 2 * inner_gaps + gap),
        OverReplicas(
            means={
                "replica_turn_square": "replicas_turn_square",
                "replica_change_square": "replicas_change_square",
                "replica_inner_gap": "replicas_inner_gap",
            }
        ),
        mutant=eq(turns, changes + inner_gaps + gap),
    ),
    Step(
        "changes by the distances",
        (axiom("smoothness_at_a_replica"),),
        with_terms(changes, apart=L**2 * apart),
        OverReplicas(
            means={
                "replica_change_square": "replicas_change_square",
                "replica_apart_square": "replicas_apart_square",
            }
        ),
    ),
    Step(
        "turns by the distances",
        ("turns", axiom("mean_along_the_gap"), "changes by the distances"),
        with_terms(turns, apart=L**2 * apart, gap=-gap),
    ),
)
GAP = (
    Step(
        "gap by the distances",
        ("turns by the distances",),
        with_terms(gap, apart=L**2 * apart),
    ),
    Step(
        "gap by the distances, expected",
        ("gap by the distances",),
        with_terms(E_gap, apart=L**2 * E_apart),
        Expected(),
    ),
    Step(
        "square of the gap",
        (definition("replicas gap"),),
        eq(gap, grad + mean - 2 * inner),
        SquareOf(),
        mutant=eq(gap, grad + mean - inner),
    ),
    Step(
        "square of the gap, expected",
        ("square of the gap",),
        eq(E_gap, E_grad + E_mean - 2 * E_inner),
        Expected(),
        mutant=eq(E_gap, E_grad + E_mean - E_inner),
    ),
)
#: E|n|^2, of the mean noise by that of each.
NOISES = (
    Step(
        "noises",
        (axiom("variance_of_a_replica"),),
        with_terms(E_noises, variance=sigma**2),
        OverReplicas(means={"E_replica_noise_square": "E_replicas_noise_square"}),
    ),
)
MOMENT = (
    *NOISES,
    Step(
        "square of the mean noise",
        (definition("average noise"),),
        eq(average_noise, update - 2 * along_mean + mean),
        SquareOf(),
        mutant=eq(average_noise, update - along_mean + mean),
    ),
    Step(
        "square of the mean noise, expected",
        ("square of the mean noise",),
        eq(E_average_noise, E_update - 2 * E_along_mean + E_mean),
        Expected(),
        mutant=eq(E_average_noise, E_update - E_along_mean + E_mean),
    ),
    Step(
        "square of the update",
        (
            "square of the mean noise, expected",
            axiom("samples_along_their_mean"),
            axiom("independent_samples"),
            "noises",
        ),
        with_terms(E_update, mean=E_mean, noise=sigma**2 / S),
    ),
)
PROOF = Proof(
    steps.DESCENT,
    (
        *ALONG,
        *TURNS,
        *GAP,
        Step(
            "mean of the update",
            (axiom("replicas_are_known"), axiom("mean_of_the_samples")),
            eq(E_along, E_inner),
            mutant=eq(E_along, E_inner * 19 / 20),
        ),
        *MOMENT,
        Step(
            "lemma",
            (
                "along the update, expected",
                "mean of the update",
                "square of the gap, expected",
                "gap by the distances, expected",
                "square of the update",
            ),
            statement(steps.DESCENT),
        ),
    ),
)


AVERAGE = Proof(
    steps.AVERAGE,
    (
        Step(
            "descent summed",
            (PROOF,),
            with_terms(
                total_grad,
                initial=2 * (first - end) / gamma,
                mean=-(1 - gamma * L) * total_mean,
                apart=L**2 * total_apart,
                noise=gamma * L * sigma**2 * T / S,
            ),
            Totalled(
                {
                    "E_grad_square": "total_grad_square",
                    "E_replicas_mean_square": "total_replicas_mean_square",
                    "E_replicas_apart_square": "total_replicas_apart_square",
                },
                (("E_f_now", "E_f_next", "E_f_first", "E_f_end"),),
                axioms=("local-sgd", "finite-sum"),
            ),
        ),
        Step(
            "last objective",
            (axiom("lower_bound_at_the_end"),),
            ge(end, f_star),
            Expected(),
            mutant=ge(end, f_star + end / 20),
        ),
        Step(
            "descent from the start",
            ("descent summed", "last objective", definition("first gap")),
            with_terms(
                total_grad,
                initial=2 * Delta0 / gamma,
                mean=-(1 - gamma * L) * total_mean,
                apart=L**2 * total_apart,
                noise=gamma * L * sigma**2 * T / S,
            ),
        ),
        Step(
            "lemma",
            ("descent from the start", definition("whole steps"), axiom("whole_steps")),
            statement(steps.AVERAGE),
        ),
    ),
)
