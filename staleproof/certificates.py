"""The certificates of Euclidean worst cases, for `staleproof prove` and for the verdict of `staleproof verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from staleproof.claims import Claim
from staleproof.output import count

if TYPE_CHECKING:
    from theory.certificates.check import Checked

TITLE = "exact worst cases of delayed gradient descent (Euclidean norm)"


def as_dict(results: list[Checked]) -> dict[str, Any]:
    """Every certificate with its numbers, ready for JSON."""
    return {
        "title": TITLE,
        "all_proved": all(result.proved for result in results),
        "proved": sum(result.proved for result in results),
        "count": len(results),
        "certificates": [row(result) for result in results],
    }


def row(result: Checked) -> dict[str, Any]:
    """One certificate: the problem, both sides as fractions and as numbers, why it is refused."""
    certificate = result.certificate
    problem, lower, upper = certificate.problem, certificate.lower.value, certificate.upper.value
    return {
        "name": result.name,
        "tau": problem.tau,
        "N": problem.N,
        "h": str(problem.h),
        "lower": float(lower),
        "upper": float(upper),
        "lower_exact": str(lower),
        "upper_exact": str(upper),
        "proved": result.proved,
        "reason": result.reason,
    }


def line(results: list[Checked]) -> str:
    """One line of text."""
    proved = sum(result.proved for result in results)
    return f"{proved} of {count(len(results), 'certificate')} proved with fractions alone: {TITLE}"


def claim(results: list[Checked], evidence: str) -> Claim:
    """No certificate is refused."""
    refused = [result for result in results if not result.proved]
    return Claim.equality(
        "proofs.delayed-gd-worst-cases",
        f"{TITLE}: of {count(len(results), 'certificate')} so many are refused by the check with fractions",
        float(len(refused)),
        place=f"{refused[0].name}: {refused[0].reason}" if refused else "",
        evidence=evidence,
    )
