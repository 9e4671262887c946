"""Exact theory on a noisy quadratic against Monte Carlo of the real optimizer code."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from empirics.monte_carlo import (
    FALSE_ALARM,
    Measured,
    Setting,
    growth,
    impulse_of,
    measure,
    method_of,
    noise_free_error,
    off_by_one,
    stationary_variances,
)
from empirics.problems.noisy_quadratic import NoisyQuadratic
from staleproof.claims import Claim, badness
from staleproof.presets import Preset
from theory.errors import InputError as TheoryInputError
from theory.quadratic import closed_form

TITLE = "Exact theory on a noisy quadratic"
EVIDENCE = "quadratic.json"

PROBLEM = NoisyQuadratic(curvatures=(0.2, 0.6, 1.0), noise_std=0.3, x0=3.0)
SETTINGS = (
    Setting("no delay, no momentum", 0, 0.0, 0.0, 0.3, PROBLEM),
    Setting("delay 1, EMA momentum 0.9", 1, 0.9, 0.9, 0.5, PROBLEM),
    Setting("delay 1, heavy ball 0.9", 1, 0.9, 0.0, 0.03, PROBLEM),
    Setting("delay 2, EMA momentum 0.5", 2, 0.5, 0.5, 0.2, PROBLEM),
    Setting("delay 4, no momentum", 4, 0.0, 0.0, 0.1, PROBLEM),
    Setting("delay 1 corrected, no momentum", 1, 0.0, 0.0, 0.3, PROBLEM, "error-feedback"),
    Setting("delay 1 corrected, EMA momentum 0.9", 1, 0.9, 0.9, 0.5, PROBLEM, "error-feedback"),
    Setting("delay 2 extrapolated, EMA momentum 0.8", 2, 0.8, 0.8, 0.2, PROBLEM, "error-feedback"),
    Setting("delay 3 telescoped, EMA momentum 0.8", 3, 0.8, 0.8, 0.2, PROBLEM, "error-feedback", "telescoped"),
)
SEEN_AT = 20.0  # standard errors
ROUND_OFF = 1e-12  # relative: a few hundred float64 operations a step, 60 steps
GROWTH_ROUND_OFF = 1e-9  # relative: a fit to two modes after the others have died out; 1e-14 is seen
IMPULSE_ROUND_OFF = 1e-9  # relative: sums of hundreds of float64 numbers and what is left out; 1e-13 is seen
SHARES = (0.1, 0.3, 0.5)  # of the stability limit, for the impulse
MARGIN = 0.02  # how far below and above the stability limit the real code is run

Progress = Callable[[float, str], None]


def run(preset: Preset, progress: Progress, folder: Path) -> tuple[dict[str, Any], list[Claim]]:
    """Results and claims of this section; see `staleproof.sections`."""
    replicas, steps = preset.quadratic_replicas, preset.quadratic_steps
    settings, measured = [], []
    for number, setting in enumerate(SETTINGS):
        progress(0.8 * number / len(SETTINGS), setting.name)
        measured.append(measure(setting, replicas, steps, preset.seed * 1000 + number))
        settings.append(_setting_row(measured[-1]))
    progress(0.8, "stability limits")
    stability = _stability(min(2000, 40 * steps), progress)
    progress(0.95, "impulse responses")
    impulses = _impulses()
    joint, claims = _joint_test(measured)
    claims += [_off_by_one_claim(settings), _noise_free_claim(steps), _impulse_claim(impulses)]
    claims += _stability_claims(stability)
    progress(1.0, "done")
    return {"settings": settings, "joint": joint, "stability": stability, "impulse": impulses}, claims


def _setting_row(m: Measured) -> dict[str, Any]:
    s = m.setting
    alternatives = []
    for label, method in off_by_one(s).items():
        seen, expected = m.standard_errors_from(method)
        alternatives.append(
            {
                "label": label,
                "tau": int(method.tau),
                "predicted": m.expected_loss(method)[0].tolist(),
                "max_standard_errors": seen,
                "expected_standard_errors": expected,
            }
        )
    closest = min(alternatives, key=lambda row: row["max_standard_errors"])
    p = m.p_values()
    return {
        "name": s.name,
        "tau": s.tau,
        "beta": s.beta,
        "dampening": s.dampening,
        "eta": s.eta,
        "correction": s.correction,
        "form": s.form,
        "curvatures": list(s.problem.curvatures),
        "noise_std": s.problem.noise_std,
        "x0": s.problem.x0,
        "replicas": m.replicas,
        "steps": list(range(len(m.loss))),
        "predicted": m.expected_loss()[0].tolist(),
        "measured": m.loss.tolist(),
        "standard_error": m.loss_error.tolist(),
        "smallest_p": float(p.min()),
        "off_by_one": closest,
        "off_by_one_all": alternatives,
    }


def _joint_test(measured: list[Measured]) -> tuple[dict[str, Any], list[Claim]]:
    tests = sum(m.p_values().size for m in measured)
    threshold = FALSE_ALARM / tests
    smallest = min(measured, key=lambda m: float(m.p_values().min()))
    p = float(smallest.p_values().min())
    wrong = {
        f"{m.setting.name}, taken for {label}": float(m.against(method).p_values().min())
        for m in measured
        for label, method in off_by_one(m.setting).items()
    }
    weakest = max(wrong, key=lambda key: wrong[key])
    joint = {
        "pairs": tests,
        "false_alarm": FALSE_ALARM,
        "smallest_p": p,
        "threshold": threshold,
        "weakest_rejection": {"name": weakest, "smallest_p": wrong[weakest]},
    }
    claims = [
        Claim.statistical(
            "quadratic.joint-test",
            f"mean and variance of every mode at every step are the predicted ones: smallest of {tests} exact "
            f"p-values against {FALSE_ALARM:g}/{tests} (false alarm <= {FALSE_ALARM:g} over all)",
            p,
            threshold,
            holds=p >= threshold,
            gates=True,
            place=smallest.setting.name,
            evidence=EVIDENCE,
        ),
        Claim.statistical(
            "quadratic.joint-test-power",
            "the same test rejects every method whose tau is off by one: largest of their smallest p-values",
            wrong[weakest],
            threshold,
            holds=wrong[weakest] < threshold,
            gates=True,
            place=weakest,
            evidence=EVIDENCE,
        ),
    ]
    return joint, claims


def _off_by_one_claim(settings: list[dict[str, Any]]) -> Claim:
    least = min(settings, key=lambda row: row["off_by_one"]["max_standard_errors"])
    row = least["off_by_one"]
    return Claim.statistical(
        "quadratic.off-by-one",
        f"the loss curve tells tau from tau - 1 and tau + 1 in every setting: more than {SEEN_AT:g} standard "
        f"errors ({row['expected_standard_errors']:.1f} expected for the closest)",
        row["max_standard_errors"],
        SEEN_AT,
        holds=row["max_standard_errors"] > SEEN_AT,
        gates=True,
        place=f"{least['name']} against {row['label']}",
        evidence=EVIDENCE,
    )


def _noise_free_claim(steps: int) -> Claim:
    errors = {setting.name: noise_free_error(setting, steps) for setting in SETTINGS}
    worst = max(errors, key=lambda name: badness(errors[name]))
    return Claim.equality(
        "quadratic.noise-free",
        "without noise the real optimizer follows the recursion of the theory (largest relative difference)",
        errors[worst],
        0.0,
        ROUND_OFF,
        place=worst,
        evidence=EVIDENCE,
    )


def _stability(steps: int, progress: Progress) -> list[dict[str, Any]]:
    rows = []
    for number, setting in enumerate(SETTINGS):
        progress(0.8 + 0.15 * number / len(SETTINGS), f"stability limit, {setting.name}")
        method = method_of(setting)
        try:
            limit = method.stability_limit()
        except TheoryInputError:  # the theory contradicts itself: the claims below fail
            rows.append(_no_limit(setting))
            continue
        below, above = limit * (1 - MARGIN), limit * (1 + MARGIN)
        rates = growth(method, [below, above], steps)
        rows.append(
            {
                "name": setting.name,
                "limit": limit,
                "closed_form": closed_form(method),
                "below": {"h": below, "growth": float(rates[0]), "predicted": method.spectral_radius(below)},
                "above": {"h": above, "growth": float(rates[1]), "predicted": method.spectral_radius(above)},
            }
        )
    return rows


def _no_limit(setting: Setting) -> dict[str, Any]:
    side = {"h": math.nan, "growth": math.inf, "predicted": math.nan}
    row = {"name": setting.name, "limit": math.nan, "closed_form": None, "below": side}
    return row | {"above": {**side, "growth": 0.0}}


def _stability_claims(rows: list[dict[str, Any]]) -> list[Claim]:
    def wrong_sides(row: dict[str, Any]) -> int:
        return int(not row["below"]["growth"] < 1) + int(not row["above"]["growth"] > 1)

    def rate_error(row: dict[str, Any]) -> float:
        return max(badness(abs(side["growth"] / side["predicted"] - 1)) for side in (row["below"], row["above"]))

    most, worst = max(rows, key=wrong_sides), max(rows, key=rate_error)
    known = [row for row in rows if row["closed_form"] is not None]
    off = max(known, key=lambda row: badness(abs(row["limit"] / row["closed_form"] - 1)))
    return [
        Claim.equality(
            "quadratic.stability",
            f"the real optimizer decays {MARGIN:.0%} below the stability limit and grows {MARGIN:.0%} above it: "
            f"sides, of {2 * len(rows)}, where it does not",
            sum(wrong_sides(row) for row in rows),
            0.0,
            place=most["name"] if wrong_sides(most) else "",
            evidence=EVIDENCE,
        ),
        Claim.equality(
            "quadratic.growth",
            "its growth per step there is the spectral radius of the theory (largest relative difference)",
            rate_error(worst),
            0.0,
            GROWTH_ROUND_OFF,
            place=worst["name"],
            evidence=EVIDENCE,
        ),
        Claim.equality(
            "quadratic.stability-closed-form",
            "the limit found from the characteristic polynomial over the closed form, where there is one",
            off["limit"] / off["closed_form"],
            1.0,
            1e-9,
            place=off["name"],
            evidence=EVIDENCE,
        ),
    ]


def _impulses() -> list[dict[str, Any]]:
    """Stationary variance of the real code without sampling, at shares of the limit; see `empirics.impulse`."""
    rows = []
    for setting in SETTINGS:
        method = method_of(setting)
        try:
            h = np.array(SHARES) * method.stability_limit()
            predicted = stationary_variances(method, h)
        except TheoryInputError:  # the theory contradicts itself: the claim below fails
            rows.append({"name": setting.name, "h": [], "error": math.inf, "truncation": math.inf})
            continue
        seen = impulse_of(setting, h)
        alternatives = {
            label: seen.error(stationary_variances(wrong, h)) for label, wrong in off_by_one(setting).items()
        }
        rows.append(
            {
                "name": setting.name,
                "h": h.tolist(),
                "predicted": predicted.tolist(),
                "measured": seen.variance().tolist(),
                "error": seen.error(predicted),
                "truncation": float(seen.truncation().max()),
                "off_by_one": alternatives,
            }
        )
    return rows


def _impulse_claim(rows: list[dict[str, Any]]) -> Claim:
    worst = max(rows, key=lambda row: badness(max(row["error"], row["truncation"])))
    closest = min((least for row in rows for least in row.get("off_by_one", {}).values()), default=math.nan)
    return Claim.equality(
        "quadratic.impulse",
        "the stationary variance of the real optimizer, summed from its response to one unit of noise, is that of the "
        f"theory (largest relative difference; a tau off by one differs by {closest:.2g} or more)",
        badness(max(worst["error"], worst["truncation"])),
        0.0,
        IMPULSE_ROUND_OFF,
        place=worst["name"],
        evidence=EVIDENCE,
    )
