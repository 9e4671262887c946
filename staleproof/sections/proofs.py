"""The proofs of the theorems, every step by solver; the sharper constants refuted; what they rest on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.progress import Progress
from staleproof import certificates
from staleproof.claims import Claim
from staleproof.presets import Preset
from staleproof.sections import Skipped
from theory.certificates.check import check_all as check_certificates
from theory.checkers.check import ProofResult, check_all
from theory.checkers.solver import load
from theory.errors import InputError
from theory.proofs import PROOFS, get_proof

TITLE = "Proofs of the theorems"
EVIDENCE = "proofs.json"


def check(preset: Preset) -> None:
    """Refuse a preset that names proofs which do not exist."""
    for name in preset.proofs or ():
        get_proof(name)


def run(preset: Preset, progress: Progress, folder: Path) -> tuple[dict[str, Any], list[Claim]]:
    """Results and claims of this section; see `staleproof.sections`."""
    try:
        load()
    except InputError as error:
        raise Skipped(str(error)) from None
    chosen = [get_proof(name) for name in preset.proofs or PROOFS]
    results = check_all(chosen, progress)
    found: dict[str, Any] = {"proofs": [row(result) for result in results.values()]}
    claims = [claim(result) for result in results.values()]
    if not preset.proofs:
        checked = check_certificates()
        found["certificates"] = certificates.as_dict(checked)
        claims.append(certificates.claim(checked, EVIDENCE))
    progress(1.0, "done")
    return found, claims


def claim(result: ProofResult) -> Claim:
    """Proved means: no step fails and no proof that it rests on, and its ledger is the theorem's list."""
    failing = sum(not step.proved for step in result.steps)
    return Claim.equality(
        f"proofs.{result.name}",
        f"{result.title}: of {len(result.steps)} steps so many do not follow, have a constant that could be sharper or "
        "a premise they do not need",
        float(failing if failing else not result.proved),
        place=result.reason,
        evidence=EVIDENCE,
    )


def row(result: ProofResult) -> dict[str, Any]:
    """One proof for the result file, with the number of counterexamples."""
    found = [values for step in result.steps for values in (*step.mutants.values(), *step.premises.values())]
    return {**result.as_dict(), "counterexamples": sum(values is not None for values in found)}
