"""The verdict table of a verification as plain text: what decides against it first, then by kind."""

from __future__ import annotations

from collections.abc import Sequence

from staleproof.claims import KINDS, OUTCOMES, Claim

HEADER = ("outcome", "kind", "claim", "value", "held against", "place")


def held_against(claim: Claim) -> str:
    """The limit of a claim in words, with the slack that is allowed on it."""
    if claim.limit is None:
        return "-"
    if claim.kind == "equality":
        slack = f" +- {claim.tolerance:.3g}" if claim.tolerance else " exactly"
        return f"{claim.limit:.6g}{slack}"
    if claim.kind == "certified":
        slack = f" + {claim.tolerance:.1g}" if claim.tolerance else ""
        return f"<= {claim.limit:.6g}{slack}"
    return f"{claim.limit:.6g}"


def _rank(claim: Claim) -> tuple[int, int]:
    decides = ("fails", "missing").index(claim.outcome) if claim.gates and claim.outcome != "holds" else 2
    return decides, KINDS.index(claim.kind)


def verdict_table(claims: Sequence[Claim]) -> str:
    """One row a claim, then a count by kind and outcome."""
    ordered = sorted(claims, key=_rank)
    rows = [HEADER]
    for claim in ordered:
        kind = claim.kind if claim.gates or claim.kind == "report" else f"{claim.kind} (no gate)"
        value = "-" if claim.value is None else f"{claim.value:.6g}"
        rows.append((claim.outcome, kind, claim.name, value, held_against(claim), claim.place))
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines.append("")
    for kind in KINDS:
        counts = [sum(c.kind == kind and c.outcome == outcome for c in claims) for outcome in OUTCOMES]
        parts = [f"{count} {outcome}" for count, outcome in zip(counts, OUTCOMES, strict=True) if count]
        if parts:
            lines.append(f"{kind}: {', '.join(parts)}")
    return "\n".join(lines)
