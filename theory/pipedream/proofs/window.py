"""Proof of the window inequality by induction, and what it says of the distance between x_k and z_k."""

from __future__ import annotations

import theory.pipedream.axioms  # noqa: F401  (registers the schemas)
from theory.pipedream import steps
from theory.proof import Induction, NormOf, Proof, Step, axiom, definition, le, statement, symbols

norm, before, squares, squares_before, one, j = symbols(
    "block_window_norm block_window_norm_before block_window_squares block_window_squares_before block_update_norm j"
)
RUN = {"block_window_norm_before": "block_window_norm", "block_window_squares_before": "block_window_squares"}

STEPS = (
    Step("no update", (definition("empty window"),), le(norm, 0 * one), NormOf(), mutant=le(norm, -one)),
    Step(
        "one update more",
        (definition("window"),),
        le(norm, before + one),
        NormOf(),
        mutant=le(norm, before + one * 19 / 20),
    ),
    Step(
        "j updates",
        ("no update", "one update more", axiom("one_square_more")),
        statement(steps.WINDOW),
        Induction(RUN, ("no update",), ("block_update_norm",), index="j", axioms=()),
    ),
    Step("lemma", ("j updates",), statement(steps.WINDOW)),
)

PROOF = Proof(steps.WINDOW, STEPS)
