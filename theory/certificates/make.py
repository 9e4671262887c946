"""Makes the certificate files: `python -m theory.certificates.make [FOLDER]` (extra `proofs`).

For each problem both programs are solved (own and PEPit; they must agree to 1e-6), then once more for a point with a
margin from every constraint at a value that is SLACK worse; that point is rounded to fractions, repaired so that the
linear conditions hold exactly, and must pass the exact check. A pair (i, j) that the optimum does not use is left out
where the rest still leaves a margin.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from theory.certificates.check import check
from theory.certificates.pep import pep_value
from theory.certificates.schema import FOLDER, SCHEMA, SDP_DENOMINATOR, Certificate, Lower, Upper
from theory.certificates.sdp import Instance, Multipliers, interior, interior_instance, solve
from theory.certificates.wanted import problems
from theory.certificates.worst_case import WorstCase

SLACK = 1e-6  # relative; below it the margins come near the accuracy of the solver
AGREE = 1e-6  # between the two programs, relative to the value where that is larger than 1
USED = 1e-6  # multipliers below this are zero at the optimum
DENOMINATOR = 10**11  # rounding moves eigenvalues by N/DENOMINATOR, a hundredth of the smallest margin


def round_upper(problem: WorstCase, point: Multipliers, denominator: int = DENOMINATOR) -> Upper:
    """Multipliers as fractions: w sums to 1, and mu follows from the coefficients of the f_i."""
    n, D = problem.N, denominator
    lam = {(i, j): round(point.lam[i, j] * D) for i in range(n) for j in range(n) if i != j}
    w = [round(value * D) for value in point.w]
    w[w.index(max(w))] += D - sum(w)
    mu = [sum(lam.get((j, i), 0) - lam.get((i, j), 0) for j in range(n)) for i in range(n)]
    value = round(point.value * D)
    mu[0] += value
    return Upper(
        Fraction(value, D),
        tuple(Fraction(number, D) for number in w),
        tuple(Fraction(number, D) for number in mu),
        {pair: Fraction(number, D) for pair, number in lam.items() if number},
    )


def round_lower(problem: WorstCase, point: Instance, denominator: int = DENOMINATOR) -> Lower:
    """An instance as fractions; its value is the smallest ||g_k||^2."""
    n, D = problem.N, denominator
    f = [Fraction(1), *(Fraction(round(value * D), D) for value in point.f[1:])]
    gram = [[Fraction(round((point.gram[i, j] + point.gram[j, i]) / 2 * D), D) for j in range(n)] for i in range(n)]
    return Lower(min(gram[k][k] for k in range(n)), tuple(f), gram)


def make(problem: WorstCase) -> Certificate:
    """The certificate of a problem. Raises RuntimeError if the programs disagree or no rounding passes the check."""
    best, pep = solve(problem), pep_value(problem)
    if abs(best.value - pep) > AGREE * max(1.0, pep):
        raise RuntimeError(f"{problem}: own program {best.value}, PEPit {pep}")
    lower = round_lower(problem, interior_instance(problem, best.value * (1 - SLACK)))
    own, other = (Fraction(round(value * SDP_DENOMINATOR), SDP_DENOMINATOR) for value in (best.value, pep))
    reason: str | None = None
    for support in (best.lam > USED, None):
        upper = round_upper(problem, interior(problem, best.value * (1 + SLACK), support))
        certificate = Certificate(problem, upper, lower, (own, other))
        if (reason := check(certificate).reason) is None:
            return certificate
    raise RuntimeError(f"{problem}: {reason}")


def _lines(certificate: Certificate) -> Iterator[str]:
    """A certificate as JSON, one long line for each of its parts."""
    upper, lower, D = certificate.upper, certificate.lower, DENOMINATOR

    def whole(value: Fraction, denominator: int = D) -> int:
        scaled = value * denominator
        assert scaled.denominator == 1
        return scaled.numerator

    def text(value: object) -> str:
        return json.dumps(value, separators=(",", ":"))

    sdp = [whole(value, SDP_DENOMINATOR) for value in certificate.sdp]
    above = {
        "denominator": D,
        "value": whole(upper.value),
        "w": [whole(value) for value in upper.w],
        "mu": [whole(value) for value in upper.mu],
        "lam": [[i, j, whole(value)] for (i, j), value in sorted(upper.lam.items())],
    }
    below = {
        "denominator": D,
        "value": whole(lower.value),
        "f": [whole(value) for value in lower.f],
        "gram": [[whole(value) for value in row[: i + 1]] for i, row in enumerate(lower.gram)],
    }
    yield f'{{"N":{certificate.problem.N},"sdp":{text(sdp)},'
    yield f'"upper":{text(above)},'
    yield f'"lower":{text(below)}}}'


def document(found: list[Certificate]) -> str:
    """A file's text: the certificates of one delay and step."""
    problem = found[0].problem
    head = f'{{"schema":"{SCHEMA}","tau":{problem.tau},"h":[{problem.h.numerator},{problem.h.denominator}],'
    body = ",\n".join("\n".join(_lines(certificate)) for certificate in found)
    return f'{head}"certificates":[\n{body}\n]}}\n'


def main(arguments: list[str] | None = None) -> int:
    """Writes every file into the folder (the package's own if not given)."""
    names = sys.argv[1:] if arguments is None else arguments
    folder = Path(names[0]) if names else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[int, Fraction], list[WorstCase]] = {}
    for problem in problems():
        groups.setdefault((problem.tau, problem.h), []).append(problem)
    for (tau, h), group in groups.items():
        found = []
        for problem in group:
            found.append(make(problem))
            low, high = found[-1].lower.value, found[-1].upper.value
            print(f"tau={tau} h={h} N={problem.N}: {float(low):.7f} .. {float(high):.7f}", file=sys.stderr, flush=True)
        path = folder / f"delayed-gd-tau{tau}-h{h.numerator}-{h.denominator}.json"
        path.write_text(document(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
