"""Claims and the verdict: a fold over claims of four kinds that are never mixed.

equality      must hold to a stated tolerance                      always gates
certified     an inequality that must never be violated            always gates
statistical   an interval or a test with a stated level            gates only where it says so
report        a number that is shown and decides nothing           never gates
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from staleproof.errors import InputError

KINDS = ("equality", "certified", "statistical", "report")
OUTCOMES = ("holds", "fails", "report", "missing")
ALWAYS_GATING = ("equality", "certified")


@dataclass(frozen=True)
class Claim:
    """One statement with its kind, its numbers and where the evidence lies.

    value      the measured number (equality: the value; certified: the utilisation left/right)
    limit      what it is held against (equality: the expected value; certified: 1)
    tolerance  the slack allowed on the limit (equality: absolute; certified: round-off)
    place      where it failed or was worst, in words ("step 17 of tau=2")
    evidence   result file with the numbers; of a missing claim: why it is missing
    gates      True where a failure decides the verdict
    """

    name: str
    kind: str
    statement: str
    outcome: str
    value: float | None = None
    limit: float | None = None
    place: str = ""
    evidence: str = ""
    gates: bool = False
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable():
            raise InputError(f"claim name: {self.name!r} is not allowed; give a non-empty printable name")
        if self.kind not in KINDS:
            raise InputError(f"claim kind: {self.kind!r} is not one of {', '.join(KINDS)}")
        if self.outcome not in OUTCOMES:
            raise InputError(f"claim outcome: {self.outcome!r} is not one of {', '.join(OUTCOMES)}")
        if self.kind in ALWAYS_GATING and not self.gates:
            raise InputError(f"claim gates: False is not allowed for kind {self.kind}; it always gates")
        if self.kind == "report" and (self.gates or self.outcome not in ("report", "missing")):
            raise InputError(
                f"claim outcome: {self.outcome!r} with gates={self.gates} is not allowed for kind report; "
                "it never gates and its outcome is report or missing"
            )
        if self.kind != "report" and self.outcome == "report":
            raise InputError(f"claim outcome: 'report' is not allowed for kind {self.kind}")
        if not self.tolerance >= 0:
            raise InputError(f"claim tolerance: {self.tolerance!r} is not allowed; give a number >= 0")

    @classmethod
    def equality(
        cls,
        name: str,
        statement: str,
        value: float,
        expected: float = 0.0,
        tolerance: float = 0.0,
        place: str = "",
        evidence: str = "",
    ) -> Claim:
        """Holds iff |value - expected| <= tolerance; a NaN fails."""
        value, expected = float(value), float(expected)
        holds = value == expected or abs(value - expected) <= tolerance
        outcome = "holds" if holds else "fails"
        slack = float(tolerance)
        return cls(name, "equality", statement, outcome, value, expected, place, evidence, True, slack)

    @classmethod
    def certified(
        cls,
        name: str,
        statement: str,
        utilisation: float,
        round_off: float = 1e-10,
        place: str = "",
        evidence: str = "",
    ) -> Claim:
        """Holds iff left/right = utilisation <= 1 + round_off; a NaN fails."""
        utilisation = float(utilisation)
        outcome = "holds" if utilisation <= 1.0 + round_off else "fails"
        slack = float(round_off)
        return cls(name, "certified", statement, outcome, utilisation, 1.0, place, evidence, True, slack)

    @classmethod
    def statistical(
        cls,
        name: str,
        statement: str,
        value: float,
        limit: float | None,
        holds: bool,
        gates: bool,
        place: str = "",
        evidence: str = "",
    ) -> Claim:
        """A test decided by its caller; the statement names the level. A NaN value fails."""
        value = float(value)
        outcome = "holds" if bool(holds) and not math.isnan(value) else "fails"
        bound = None if limit is None else float(limit)
        return cls(name, "statistical", statement, outcome, value, bound, place, evidence, bool(gates))

    @classmethod
    def report(
        cls, name: str, statement: str, value: float | None, place: str = "", evidence: str = ""
    ) -> Claim:
        """A number that is shown and decides nothing."""
        number = None if value is None else float(value)
        return cls(name, "report", statement, "report", number, None, place, evidence, False)

    @classmethod
    def missing(cls, name: str, kind: str, statement: str, why: str, gates: bool | None = None) -> Claim:
        """A claim that could not be evaluated. `gates` matters for statistical claims only."""
        gating = kind in ALWAYS_GATING or (kind == "statistical" and bool(gates))
        return cls(name, kind, statement, "missing", None, None, "", why, gating)

    def as_dict(self) -> dict[str, Any]:
        """All fields by name, for claims.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Claim:
        """The inverse of `as_dict` (numbers may come as the strings NaN, Infinity, -Infinity)."""
        known = dict(fields)
        for key in ("value", "limit"):
            if known.get(key) is not None:
                known[key] = float(known[key])
        return cls(**known)


def badness(value: float) -> float:
    """`value` for finding the worst of several: a NaN is worse than any number."""
    return math.inf if math.isnan(value) else value


def verdict(claims: Iterable[Claim]) -> str:
    """'fails' if a gating claim fails; 'incomplete' if one is missing or there are none; else 'holds'."""
    gating = [claim for claim in claims if claim.gates]
    if any(claim.outcome == "fails" for claim in gating):
        return "fails"
    if not gating or any(claim.outcome == "missing" for claim in gating):
        return "incomplete"
    return "holds"
