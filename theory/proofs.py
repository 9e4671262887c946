"""All proofs by the name of their theorem; imported only where proofs are asked for, not by `import theory`."""

from __future__ import annotations

from theory.errors import InputError
from theory.lmo.proofs import average, delay, delayed, descent, momentum, momentum_error, shifted
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
    )
}


def get_proof(name: str) -> Proof:
    """The proof of that name. Raises InputError listing the known names."""
    if name not in PROOFS:
        raise InputError(f"unknown proof {name!r}; known: {', '.join(PROOFS)}")
    return PROOFS[name]
