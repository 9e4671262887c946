"""All proofs by the name of their theorem; imported only where proofs are asked for, not by `import theory`."""

from __future__ import annotations

from theory.errors import InputError
from theory.lmo.proofs import (
    average,
    delay,
    delayed,
    descent,
    error_feedback,
    error_feedback_path,
    finite,
    momentum,
    momentum_error,
    shifted,
)
from theory.proof import Proof

PROOFS: dict[str, Proof] = {
    proof.name: proof
    for proof in (
        descent.PROOF,
        delay.PROOF,
        momentum_error.PROOF,
        average.PROOF,
        delayed.PROOF,
        shifted.PROOF,
        momentum.PROOF,
        finite.PROOF,
        descent.PROOF_AT_Y,
        error_feedback_path.DELAY,
        error_feedback_path.MOMENTUM_ERROR,
        error_feedback_path.AVERAGE,
        error_feedback.AT_Y,
        error_feedback.AT_X,
        error_feedback.ANY_DELAY,
    )
}


def get_proof(name: str) -> Proof:
    """The proof of that name. Raises InputError listing the known names."""
    if name not in PROOFS:
        raise InputError(f"unknown proof {name!r}; known: {', '.join(PROOFS)}")
    return PROOFS[name]
