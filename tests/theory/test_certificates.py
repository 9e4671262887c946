"""Certificates of Euclidean worst cases: proved by fractions, and refused as soon as anything in them is changed."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from theory.certificates import check as check_module
from theory.certificates.check import Checked, certified_value, check, check_all
from theory.certificates.schema import FOLDER, parse, read
from theory.certificates.worst_case import WorstCase
from theory.errors import InputError

HALF = Fraction(1, 2)
FILE = FOLDER / "delayed-gd-tau1-h1-2.json"


@pytest.fixture(scope="module")
def checked() -> list[Checked]:
    return check_all()


def test_all_are_proved(checked: list[Checked]) -> None:
    assert len(checked) > 100 and all(result.proved for result in checked)


def test_both_sides_and_both_solvers_meet(checked: list[Checked]) -> None:
    for result in checked:
        certificate = result.certificate
        low, high = certificate.lower.value, certificate.upper.value
        assert low < high <= low * (1 + Fraction(3, 10**6)), result.name  # 1e-6 of slack on each side
        own, pep = certificate.sdp
        assert abs(own - pep) <= Fraction(1, 10**6), result.name
        assert low <= own <= high and low <= pep <= high, result.name


def test_every_delay_and_length_is_there(checked: list[Checked]) -> None:
    known = {result.certificate.problem for result in checked}
    edges = {0: Fraction(1), 1: Fraction(8, 13), 2: Fraction(16, 41), 3: Fraction(11, 39), 4: Fraction(15, 68)}
    for tau in range(5):
        assert edges[tau] + (tau * edges[tau]) ** 2 <= 1 < edges[tau] + Fraction(1, 40) + (tau * edges[tau]) ** 2
        for N in range(1, 13):
            assert WorstCase(tau, N, HALF).same in known
            assert N == 1 or WorstCase(tau, N, edges[tau]).same in known


@pytest.mark.parametrize(("N", "value"), [(1, "2.0000"), (2, "1.0667"), (3, "0.7583"), (4, "0.5940"), (5, "0.4878")])
def test_known_values(N: int, value: str) -> None:
    low, high = certified_value(1, N, HALF)
    assert f"{float(low):.4f}" == f"{float(high):.4f}" == value


def test_without_delay_equals_the_closed_form(checked: list[Checked]) -> None:
    """tau = 0, h <= 1: V = 4/(2 + (N - 1) h (4 - h)) (Abbaszadehpeivasti, de Klerk, Zamani 2022)."""
    count = 0
    for result in checked:
        problem = result.certificate.problem
        if problem.tau == 0 and problem.h <= 1:
            value = 4 / (2 + (problem.N - 1) * problem.h * (4 - problem.h))
            assert result.certificate.lower.value <= value <= result.certificate.upper.value, result.name
            count += 1
    assert count >= 30


def test_a_longer_delay_before_it_can_act_changes_nothing() -> None:
    assert certified_value(4, 3, HALF) == certified_value(1, 3, HALF) != certified_value(0, 3, HALF)
    assert certified_value(3, 1, Fraction(7, 9)) == certified_value(0, 1, HALF)
    with pytest.raises(InputError, match="h, N: no certificate .*steps with tau=1: 15/68, 1/4"):
        certified_value(1, 3, Fraction(1, 7))


# --- the checker against the definitions -------------------------------------------------------------------------


def interpolation(x: list[list[Fraction]], g: list[list[Fraction]], f: list[Fraction], i: int, j: int) -> Fraction:
    """I_ij, transcribed from the definition with vectors."""

    def dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
        return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))

    dx = [p - q for p, q in zip(x[i], x[j], strict=True)]
    dg = [p - q for p, q in zip(g[i], g[j], strict=True)]
    total = [p + q for p, q in zip(g[i], g[j], strict=True)]
    return f[i] - f[j] - dot(total, dx) / 2 - dot(dg, dg) / 4 + dot(dx, dx) / 4


def trajectory(problem: WorstCase, seed: int) -> tuple[list[list[Fraction]], list[list[Fraction]], list[Fraction]]:
    """Points of the method for random gradients, and random values: not those of any function."""
    rng = random.Random(seed)
    g = [[Fraction(rng.randint(-9, 9), 7) for _ in range(3)] for _ in range(problem.N)]
    f = [Fraction(rng.randint(-9, 9), 5) for _ in range(problem.N)]
    x = [[Fraction(0)] * 3]
    for k in range(problem.N - 1):
        stale = g[max(k - problem.tau, 0)]
        x.append([a - problem.h * b for a, b in zip(x[k], stale, strict=True)])
    return x, g, f


@pytest.mark.parametrize(("tau", "N"), [(0, 4), (1, 5), (2, 6), (3, 7)])
def test_the_identity_holds_on_random_numbers(checked: list[Checked], tau: int, N: int) -> None:
    """upper (f_0 - f_*) - sum w ||g||^2 = sum lam I + sum mu J + <z, S z>, for numbers of no function."""
    problem = WorstCase(tau, N, HALF)
    upper = next(r.certificate.upper for r in checked if r.certificate.problem == problem)
    S = check_module.remainder(problem, upper)
    for seed in range(3):
        x, g, f = trajectory(problem, seed)
        gram = [[sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0)) for b in g] for a in g]
        low = Fraction(-3, 11)
        left = upper.value * (f[0] - low) - sum(w * gram[k][k] for k, w in enumerate(upper.w))
        right = sum(v * interpolation(x, g, f, i, j) for (i, j), v in upper.lam.items())
        right += sum(m * (f[k] - low - gram[k][k] / 2) for k, m in enumerate(upper.mu))
        right += sum(S[k][l] * gram[k][l] for k in range(N) for l in range(N))
        assert left == right
        values = problem.interpolation(f, gram)
        assert values == {(i, j): interpolation(x, g, f, i, j) for i, j in itertools.permutations(range(N), 2)}


def test_the_facts_hold_for_smooth_functions_and_fail_beyond() -> None:
    """Random diagonal quadratics with curvatures in [-1, 1] satisfy every I_ij; with curvature 5/4 one fails."""
    rng = random.Random(1)
    for trial in range(40):
        curvature = [Fraction(rng.randint(-8, 8), 8) for _ in range(3)]
        if trial % 2:
            curvature[0] = Fraction(5, 4) * rng.choice((-1, 1))
        x = [[Fraction(rng.randint(-9, 9)) for _ in range(3)] for _ in range(6)]
        if trial % 2:
            x[1] = [x[0][0] + 1, *x[0][1:]]  # along the curvature that is too large
        g = [[c * a for c, a in zip(curvature, point, strict=True)] for point in x]
        f = [sum((c * a * a / 2 for c, a in zip(curvature, point, strict=True)), Fraction(0)) for point in x]
        values = [interpolation(x, g, f, i, j) for i, j in itertools.permutations(range(6), 2)]
        assert (min(values) < 0) == bool(trial % 2)


@pytest.mark.parametrize(("tau", "N"), [(0, 2), (1, 3), (2, 4)])
def test_the_instance_is_a_function(checked: list[Checked], tau: int, N: int) -> None:
    """The worst function itself, by its formula: the method run on its numerical gradient meets the lower number."""
    certificate = next(r.certificate for r in checked if r.certificate.problem == WorstCase(tau, N, HALF))
    lower = certificate.lower
    g = np.linalg.cholesky(np.array(lower.gram, dtype=float))
    x = np.array(certificate.problem.points(), dtype=float) @ g
    u, p = x - g, np.array(lower.f, dtype=float) - (g**2).sum(axis=1) / 2

    def f(y: np.ndarray) -> float:
        def inner(a: np.ndarray) -> float:
            center = a @ u
            spread = a @ (u**2).sum(axis=1) - center @ center
            return float((y - center) @ (y - center) / 2 + spread / 4 + a @ p)

        simplex = {"type": "eq", "fun": lambda a: a.sum() - 1}
        start = np.full(N, 1 / N)
        done = minimize(inner, start, bounds=[(0, 1)] * N, constraints=simplex, method="SLSQP", options={"ftol": 1e-14})
        return float(done.fun)

    def gradient(y: np.ndarray) -> np.ndarray:
        step = 1e-4
        return np.array([(f(y + step * e) - f(y - step * e)) / (2 * step) for e in np.eye(N)])

    points, gradients = [np.zeros(N)], []
    for k in range(N):
        gradients.append(gradient(points[k]))
        points.append(points[k] - 0.5 * gradients[max(k - tau, 0)])
    # 1e-3: the gradient is a difference quotient of a minimum found to about 1e-8
    assert min(float(v @ v) for v in gradients) == pytest.approx(float(lower.value), rel=1e-3)
    assert f(points[0]) == pytest.approx(1, abs=1e-6) and p.min() >= 0


# --- changed certificates are refused ----------------------------------------------------------------------------


def altered(change: Callable[[dict[str, Any]], None], N: int = 5) -> str | None:
    """Why the file's certificate of that N is refused after a change."""
    data = json.loads(FILE.read_text(encoding="utf-8"))
    data["certificates"] = [item for item in data["certificates"] if item["N"] == N]
    change(data["certificates"][0])
    (certificate,) = parse(json.dumps(data))
    return check(certificate).reason


def test_the_unchanged_certificate_passes() -> None:
    assert altered(lambda item: None) is None


def add(part: str, name: str, place: int, amount: int) -> Callable[[dict[str, Any]], None]:
    def change(item: dict[str, Any]) -> None:
        item[part][name][place] += amount

    return change


def lower_consistently(item: dict[str, Any]) -> None:
    """1 % less, and all multipliers with it: every linear condition still holds."""
    upper = item["upper"]
    upper["denominator"] *= 100
    upper["value"] *= 99
    upper["mu"] = [99 * number for number in upper["mu"]]
    upper["lam"] = [[i, j, 99 * number] for i, j, number in upper["lam"]]
    upper["w"] = [100 * number for number in upper["w"]]


def shift_weight(item: dict[str, Any]) -> None:
    """A tenth of all weight to the first gradient: every linear condition still holds."""
    upper = item["upper"]
    upper["w"] = [9 * number for number in upper["w"]]
    upper["denominator"] *= 10
    upper["w"][0] += upper["denominator"] // 10
    upper["value"] *= 10
    upper["mu"] = [10 * number for number in upper["mu"]]
    upper["lam"] = [[i, j, 10 * number] for i, j, number in upper["lam"]]


def drop_pair(item: dict[str, Any]) -> None:
    """The largest lam left out, mu repaired where it may be."""
    upper = item["upper"]
    i, j, value = max(upper["lam"], key=lambda entry: entry[2])
    upper["lam"] = [entry for entry in upper["lam"] if entry[:2] != [i, j]]
    upper["mu"][i] += value
    upper["mu"][j] -= value


def flip(item: dict[str, Any]) -> None:
    item["upper"]["lam"][0][2] *= -1


def raise_lower(item: dict[str, Any]) -> None:
    item["lower"]["value"] = item["lower"]["value"] * 101 // 100


def scale_instance(item: dict[str, Any]) -> None:
    """All gradients 1 % longer in square, so that the raised value is reached: then f_k is too small for them."""
    raise_lower(item)
    item["lower"]["gram"] = [[-(-value * 101 // 100) for value in row] for row in item["lower"]["gram"]]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (add("upper", "w", 0, 1), "do not sum to 1"),
        (add("upper", "mu", 1, 1), "coefficients of f_1"),
        (add("upper", "mu", 0, -1), "coefficients of f_0"),
        (lambda item: item["upper"]["lam"][0].__setitem__(2, item["upper"]["lam"][0][2] + 1), "coefficients of f_"),
        (lambda item: item["upper"].__setitem__("value", item["upper"]["value"] * 99 // 100), "coefficients of f_0"),
        (flip, "multiplier lam is negative"),
        (lower_consistently, "remainder is not positive semidefinite"),
        (shift_weight, "remainder is not positive semidefinite"),
        (drop_pair, "multiplier mu is negative"),
        (raise_lower, r"\|\|g_\d\|\|\^2 is smaller than the value"),
        (scale_instance, "f_. - f_. is smaller|interpolation inequality"),
        (add("lower", "f", 0, 10**9), "larger than 1"),
        (add("lower", "f", 2, 10**9), "interpolation inequality"),
        (lambda item: item["lower"]["gram"][1].__setitem__(0, -(10**12)), "Gram matrix"),
    ],
)
def test_a_changed_certificate_is_refused(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    refused = altered(change)
    assert refused is not None
    assert re.search(reason, refused), refused


@pytest.mark.parametrize(("tau", "h"), [(2, HALF), (1, Fraction(501, 1000)), (1, Fraction(499, 1000))])
def test_a_certificate_proves_its_own_problem_only(tau: int, h: Fraction) -> None:
    certificate = next(c for c in read(FILE) if c.problem.N == 5)
    assert check(certificate).proved
    other = dataclasses.replace(certificate, problem=WorstCase(tau, 5, h))
    assert not check(other).proved


def test_lengths_and_types_are_checked_without_a_file() -> None:
    """Certificates built in memory: too long, too short, floats, indices from the end, ragged matrices."""
    good = next(c for c in read(FILE) if c.problem.N == 5)
    upper, lower, zero = good.upper, good.lower, Fraction(0)
    nothing = dataclasses.replace(upper, value=zero, w=(*[zero] * 5, Fraction(1)), mu=(zero,) * 5, lam={})
    changes: list[tuple[dict[str, Any], str]] = [
        ({"upper": nothing}, "upper: w has 6 numbers instead of 5"),
        ({"upper": dataclasses.replace(upper, w=upper.w[:-1])}, "upper: w has 4 numbers"),
        ({"upper": dataclasses.replace(upper, mu=(*upper.mu, zero))}, "upper: mu has 6 numbers"),
        ({"upper": dataclasses.replace(upper, lam={**upper.lam, (-1, 0): zero})}, "upper: a pair of lam"),
        ({"upper": dataclasses.replace(upper, lam={**upper.lam, (5, 0): zero})}, "upper: a pair of lam"),
        ({"upper": dataclasses.replace(upper, value=float(upper.value))}, "is not a Fraction"),
        ({"upper": dataclasses.replace(upper, w=tuple(map(float, upper.w)))}, "upper: w: .* is not a Fraction"),
        ({"lower": dataclasses.replace(lower, f=(*lower.f, zero))}, "lower: f has 6 numbers"),
        ({"lower": dataclasses.replace(lower, f=lower.f[:-1])}, "lower: f has 4 numbers"),
        ({"lower": dataclasses.replace(lower, gram=lower.gram[:-1])}, "lower: gram has 4 rows"),
        ({"lower": dataclasses.replace(lower, gram=[*lower.gram[:-1], []])}, "lower: row 4 of gram has 0 numbers"),
    ]
    assert check(good).proved
    for change, reason in changes:
        refused = check(dataclasses.replace(good, **change)).reason
        assert refused is not None and re.search(reason, refused), refused


def test_a_set_with_a_problem_missing_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path in FOLDER.glob("*.json"):
        if path != FILE:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(check_module, "FOLDER", tmp_path)
    with pytest.raises(InputError, match="certificates: none of tau=1 N=3 h=1/2; 10 missing in all"):
        check_all()
    assert check_module.main() == 1


def test_check_all_reports_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(FILE.read_text(encoding="utf-8"))
    lower_consistently(data["certificates"][0])
    (tmp_path / "one.json").write_text(json.dumps(data), encoding="utf-8")
    results = check_all(tmp_path)
    assert [result.proved for result in results] == [False] + [True] * (len(results) - 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check_module, "FOLDER", tmp_path)
        assert check_module.main() == 1
        with pytest.raises(InputError, match="refused: upper"):
            certified_value(1, 3, HALF)
    assert f"{len(results) - 1} of {len(results)} certificates proved" in capsys.readouterr().out
    with pytest.raises(InputError, match="certificates: no"):
        check_all(tmp_path / "nothing")


# --- the solvers, where they are installed -----------------------------------------------------------------------


@pytest.mark.filterwarnings("default")  # of the solvers' own modules
def test_a_new_certificate_is_made_and_proved(tmp_path: Path) -> None:
    """tau = 1, N = 3, h = 1/3: no such file is shipped; own program and PEPit agree, the rounding passes, and so
    does what is read back."""
    pytest.importorskip("cvxpy")
    pytest.importorskip("PEPit")
    from theory.certificates import make

    certificate = make.make(WorstCase(1, 3, Fraction(1, 3)))
    own, pep = certificate.sdp
    assert abs(own - pep) < Fraction(1, 10**6) and certificate.lower.value <= own <= certificate.upper.value
    assert check(certificate).proved
    assert parse(make.document([certificate])) == [certificate]
    # Rounded to three digits only, the same point proves nothing.
    coarse = make.round_upper(certificate.problem, make.solve(certificate.problem), 1000)
    assert check_module.against_upper(certificate.problem, coarse) is not None


def test_the_solvers_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from theory.certificates import pep, sdp

    problem = WorstCase(0, 2, HALF)
    for module in ("cvxpy", "PEPit"):
        monkeypatch.setitem(sys.modules, module, None)
    for work in (sdp.solve, pep.pep_value):
        with pytest.raises(InputError, match="^certificates: .*pip install"):
            work(problem)


def test_the_shipped_files_are_those_that_make_lists(checked: list[Checked]) -> None:
    from theory.certificates import make

    assert [result.certificate.problem for result in checked] == sorted(
        make.problems(), key=lambda p: (f"delayed-gd-tau{p.tau}-h{p.h.numerator}-{p.h.denominator}.json", p.N)
    )
