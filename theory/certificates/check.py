"""Exact worst cases of delayed gradient descent, checked with fractions alone: no solver, no floats.

Statement (each certificate): lower <= V(tau, N, h) <= upper, where V = sup min_{k<N} ||grad f(x_k)||^2/(L Delta0) over
L-smooth f (Euclidean norm, not necessarily convex) with f(x_0) - inf f <= Delta0, x_{k+1} = x_k - gamma grad
f(x_{(k-tau)+}) and h = L gamma. Kind: tight (the two numbers differ by some 1e-6 of the value).

Proof of the upper number: with lam, mu, w >= 0 and sum w = 1 the identity
  upper (f_0 - f_*) - sum_k w_k ||g_k||^2 = sum_ij lam_ij I_ij + sum_i mu_i J_i + sum_kl S_kl <g_k, g_l>
holds exactly (the coefficient of every f_i is compared, S is what is left over) and S is positive semidefinite by exact
LDL^T. All terms on the right are >= 0. It bounds the w-average of ||g_k||^2, not only the minimum.
Proof of the lower number: the Gram matrix is positive semidefinite by LDL^T, I_ij >= 0, J_i >= 0 and f_0 - f_* <= 1
hold exactly, so a function of the class has these values and gradients (theory.certificates.worst_case).

`python -m theory.certificates.check` checks everything that is shipped. Reference: the method is that of Drori and
Teboulle 2014 (arXiv 1206.3209); certificates derived here. Tests: tests/theory/test_certificates.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from theory.certificates.ldl import pivots
from theory.certificates.schema import FOLDER, Certificate, Lower, Upper, read
from theory.certificates.wanted import missing
from theory.certificates.worst_case import Matrix, WorstCase
from theory.errors import InputError


@dataclass(frozen=True)
class Checked:
    """One certificate after its check. reason: why it is refused, None if it is proved."""

    certificate: Certificate
    reason: str | None

    @property
    def proved(self) -> bool:
        return self.reason is None

    @property
    def name(self) -> str:
        problem = self.certificate.problem
        return f"delayed-gd tau={problem.tau} N={problem.N} h={problem.h}"


def remainder(problem: WorstCase, upper: Upper) -> Matrix:
    """S of the identity: what the multipliers leave over of the squares."""
    S = problem.quadratic(upper.lam)
    for k in range(problem.N):
        S[k][k] += upper.mu[k] / 2 - upper.w[k]
    return S


def _not_fractions(values: Iterable[object]) -> str | None:
    wrong = next((value for value in values if type(value) is not Fraction), None)
    return None if wrong is None else f"{wrong!r} is not a Fraction"


def _unfit(parts: Mapping[str, Sequence[Fraction]], n: int) -> str | None:
    """Why a part is not n fractions; None if all are."""
    for name, values in parts.items():
        if len(values) != n:
            return f"{name} has {len(values)} numbers instead of {n}"
        if reason := _not_fractions(values):
            return f"{name}: {reason}"
    return None


def against_upper(problem: WorstCase, upper: Upper) -> str | None:
    """Why the multipliers do not prove the upper number; None if they do."""
    n = problem.N
    if reason := _unfit({"w": upper.w, "mu": upper.mu}, n) or _not_fractions((upper.value, *upper.lam.values())):
        return f"upper: {reason}"
    if any(i == j or not {i, j} <= set(range(n)) for i, j in upper.lam):
        return f"upper: a pair of lam is not one of two different indices below {n}"
    for name, values in (("w", upper.w), ("mu", upper.mu), ("lam", tuple(upper.lam.values()))):
        if any(value < 0 for value in values):
            return f"upper: a multiplier {name} is negative"
    if sum(upper.w) != 1:
        return "upper: the weights w do not sum to 1"
    for i in range(n):
        out = sum((value for (a, _), value in upper.lam.items() if a == i), Fraction(0))
        into = sum((value for (_, b), value in upper.lam.items() if b == i), Fraction(0))
        if out - into + upper.mu[i] != (upper.value if i == 0 else 0):
            return f"upper: the coefficients of f_{i} do not agree"
    if sum(upper.mu) != upper.value:
        return "upper: the coefficients of f_* do not agree"
    if pivots(remainder(problem, upper)) is None:
        return "upper: the remainder is not positive semidefinite"
    return None


def against_lower(problem: WorstCase, lower: Lower) -> str | None:
    """Why the instance does not reach the lower number; None if it does."""
    n, gram = problem.N, lower.gram
    rows = {f"row {i} of gram": row for i, row in enumerate(gram)}
    if len(gram) != n:
        return f"lower: gram has {len(gram)} rows instead of {n}"
    if reason := _unfit({"f": lower.f, **rows}, n) or _not_fractions((lower.value,)):
        return f"lower: {reason}"
    if lower.f[0] > 1:
        return "lower: f(x_0) - f_* is larger than 1"
    for k in range(n):
        if gram[k][k] < lower.value:
            return f"lower: ||g_{k}||^2 is smaller than the value"
        if lower.f[k] < gram[k][k] / 2:
            return f"lower: f_{k} - f_* is smaller than ||g_{k}||^2/2"
    if pivots(gram) is None:
        return "lower: the Gram matrix is not positive semidefinite"
    for (i, j), value in problem.interpolation(lower.f, gram).items():
        if value < 0:
            return f"lower: the interpolation inequality ({i}, {j}) is violated"
    return None


def check(certificate: Certificate) -> Checked:
    """The verdict on one certificate."""
    problem = certificate.problem
    reason = against_upper(problem, certificate.upper) or against_lower(problem, certificate.lower)
    return Checked(certificate, reason)


def certificates(folder: Path | None = None) -> Iterator[Certificate]:
    """All certificates of a folder (of the package if not given), by file name. Not yet checked."""
    place = FOLDER if folder is None else folder
    paths = sorted(place.glob("*.json"))
    if not paths:
        raise InputError(f"certificates: no *.json in {place}")
    for path in paths:
        yield from read(path)


def check_all(folder: Path | None = None) -> list[Checked]:
    """Every certificate of a folder, checked; without one those that are shipped, which have to be complete.

    Raises InputError if a file is none or a problem has no certificate.
    """
    results = [check(certificate) for certificate in certificates(folder)]
    lacking = missing(result.certificate.problem for result in results) if folder is None else []
    if lacking:
        raise InputError(f"certificates: none of {lacking[0]}; {len(lacking)} missing in all")
    return results


def certified_value(tau: int, N: int, h: Fraction) -> tuple[Fraction, Fraction]:
    """(lower, upper) of V(tau, N, h), from the shipped certificate, after checking it.

    A delay beyond N - 2 is the delay N - 2. Raises InputError if no certificate is shipped for these values.
    """
    wanted = WorstCase(tau, N, h).same
    known: set[str] = set()
    for certificate in certificates():
        problem = certificate.problem
        if problem == wanted or (N == 1 and problem.N == 1):  # with one gradient there is no step
            if (reason := check(certificate).reason) is not None:
                raise InputError(f"certificate of tau={tau}, N={N}, h={h}: refused: {reason}")
            return certificate.lower.value, certificate.upper.value
        if problem.tau == wanted.tau:
            known.add(str(problem.h))
    steps = ", ".join(sorted(known, key=Fraction)) or "none"
    raise InputError(f"h, N: no certificate for tau={tau}, N={N}, h={h}; steps with tau={wanted.tau}: {steps}")


def main() -> int:
    """Checks all, prints one line each, and is 0 only if all are proved and none is missing."""
    results = check_all(FOLDER)
    for result in results:
        certificate = result.certificate
        verdict = result.reason or "proved"
        print(f"{result.name}: {float(certificate.lower.value):.7f} .. {float(certificate.upper.value):.7f} {verdict}")
    proved = sum(result.proved for result in results)
    print(f"{proved} of {len(results)} certificates proved")
    lacking = missing(result.certificate.problem for result in results)
    for name in lacking:
        print(f"missing: {name}")
    return 0 if proved == len(results) and not lacking else 1


if __name__ == "__main__":
    raise SystemExit(main())
