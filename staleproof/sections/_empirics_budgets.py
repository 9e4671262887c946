"""Budgets of runs with exact constants: every inequality at every step, and that Lemma B and a wrong delay show."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from empirics.budget import OWN
from empirics.least_squares_budget import FAR, budget_of_setting, grid, round_problem
from empirics.lmo_path import Setting
from empirics.pathwise import ROUND_OFF
from empirics.problems.matrix_least_squares import random_problem
from staleproof.claims import Claim, badness
from staleproof.presets import Preset

EVIDENCE = "empirics.json"
SIGMA = 0.3
ATTAINED = 1e-6  # of a left side of some thousand float64 operations, against a right side that it equals
STEPS = 16  # of each run of the grid


def run(preset: Preset, progress: Callable[[float, str], None]) -> tuple[dict[str, Any], list[Claim]]:
    """The entry "budgets" of empirics.json, and its claims."""
    theorems, own = [], random_problem(12, 16, preset.seed)
    for number, theorem in enumerate(OWN):
        progress(0.3 * number / len(OWN), theorem)
        for sigma in (0.0, SIGMA):
            setting = setting_of(theorem, preset.certified_steps, sigma)
            theorems.append(row(budget_of_setting(theorem, own, setting, seed=preset.seed), setting))
    cells, settings = [], grid(STEPS, most=preset.budget_settings)
    problems = (("random", random_problem(3, 4, preset.seed), None), ("round", round_problem(), FAR))
    for number, setting in enumerate(settings):
        progress(0.3 + 0.7 * number / len(settings), setting.name)
        for name, problem, x0 in problems:
            found = budget_of_setting("delayed-lmo", problem, setting, x0, seed=preset.seed + number)
            cells.append({"problem": name, **cell(found, setting)})
    planted = [planted_row(tau) for tau in (1, 2, 4)]
    data = {"theorems": theorems, "grid": cells, "planted": planted}
    return data, [*_theorem_claims(theorems), *_grid_claims(cells), *_planted_claims(planted)]


def setting_of(theorem: str, steps: int, sigma: float) -> Setting:
    """A run that the theorem is about: without correction at delay 2, with it at the theorem's own delay."""
    noise = "noisy" if sigma else "noise-free"
    if not theorem.startswith("error-feedback"):
        return Setting(f"delay 2, {noise}", 2, 0.1, 0.2, steps, sigma, nesterov="nesterov" in theorem)
    tau = 3 if theorem == "error-feedback-any-delay" else 1
    return Setting(f"delay {tau}, corrected, {noise}", tau, 0.1, 0.2, steps, sigma, "error-feedback")


def row(found: dict[str, Any], setting: Setting) -> dict[str, Any]:
    """A budget for the result file."""
    kept = ("theorem", "title", "status", "reasons", "inequalities", "counts", "waterfall", "editions", "violations")
    settings = {name: getattr(setting, name) for name in ("name", "tau", "eta", "alpha", "sigma", "correction")}
    return settings | {"steps": setting.K} | {name: found[name] for name in kept if name in found}


def largest(found: dict[str, Any]) -> tuple[float, str]:
    """The largest share of a right side used, and by what; infinite where the budget is not complete."""
    if found["status"] != "complete":
        return math.inf, "; ".join(found["reasons"])
    used = [i for i in found["inequalities"] if i["kind"] == "certified"]
    worst = max(used, key=lambda i: badness(i["max"]))
    return worst["max"], f"{worst['place']}, step {worst['worst_step']}"


def cell(found: dict[str, Any], setting: Setting) -> dict[str, Any]:
    """One run of the grid: what was used at most, and of Lemma B."""
    value, place = largest(found)
    complete = found["status"] == "complete"
    delay = next((i["max"] for i in found["inequalities"] if i["name"] == "delay"), 0.0) if complete else math.inf
    broken = found["violations"] if complete else math.inf
    return {
        "name": setting.name,
        "tau": setting.tau,
        "largest": value,
        "place": place,
        "delay_lemma": delay,
        "violations": broken,
    }


def planted_row(tau: int) -> dict[str, Any]:
    """Data of delay tau + 1 given to the budget of delay tau, noise-free, where Lemma B is attained."""
    setting = Setting(f"delay {tau + 1} told as {tau}", tau, 0.1, 0.3, 24)
    found = budget_of_setting("delayed-lmo", round_problem(), setting, FAR, planted=1)
    lemma = next(i for i in found["inequalities"] if i["name"] == "delay")
    return {"name": setting.name, "tau": tau, "largest": lemma["max"], "expected": (tau + 1) / tau}


def _theorem_claims(rows: list[dict[str, Any]]) -> list[Claim]:
    claims = []
    for theorem in OWN:
        mine = [r for r in rows if r["theorem"] == theorem]
        worst = max(mine, key=lambda r: badness(largest(r)[0]))
        value, place = largest(worst)
        used = [i for i in worst.get("inequalities", ()) if i["kind"] == "certified"]
        steps, sure = len(used), sum(not i["evidence"] for i in used)
        claims.append(
            Claim.certified(
                f"empirics.budget.{theorem}",
                f"{worst['title']}: left/right of {steps} pathwise inequalities of its proof ({sure} of them of any "
                f"vectors) at every step of {len(mine)} runs",
                value,
                ROUND_OFF,
                place=f"{place}, {worst['name']}",
                evidence=EVIDENCE,
            )
        )
    equal = [(r, i) for r in rows for i in r.get("inequalities", ()) if i["kind"] == "equality"]
    broken = [f"{i['place']}, {r['name']}" for r, i in equal if i["violations"]]
    claims.append(
        Claim.equality(
            "empirics.budget.equalities",
            f"{len(equal)} equalities of the proofs, definitions aside, on {len(rows)} runs: those that are broken",
            len(broken),
            place="; ".join(broken[:2]),
            evidence=EVIDENCE,
        )
    )
    quiet = [r for r in rows if r["sigma"] == 0 and r["status"] == "complete"]
    ratios = [(r["waterfall"][0]["value"] / r["editions"]["worst-case"]["value"], r["theorem"]) for r in quiet]
    value, place = max(ratios, key=lambda pair: badness(pair[0])) if ratios else (math.inf, "no run is complete")
    claims.append(
        Claim.certified(
            "empirics.budget.worst-case",
            f"{len(quiet)} theorems on noise-free runs: measured average over the bound with exact constants",
            value,
            ROUND_OFF,
            place=place,
            evidence=EVIDENCE,
        )
    )
    return claims


def _grid_claims(cells: list[dict[str, Any]]) -> list[Claim]:
    worst = max(cells, key=lambda c: badness(c["largest"]))
    tightest = max((c for c in cells if c["tau"]), key=lambda c: c["delay_lemma"], default=None)
    broken = sum(c["violations"] for c in cells)
    claims = [
        Claim.certified(
            "empirics.budget.grid",
            f"Theorem 1: left/right of every pathwise inequality at every step of {len(cells)} runs "
            f"(delays, step sizes, momenta and noise levels; {broken} violations)",
            worst["largest"],
            ROUND_OFF,
            place=f"{worst['place']}, {worst['name']}, {worst['problem']} problem",
            evidence=EVIDENCE,
        )
    ]
    if tightest is not None:
        claims.append(
            Claim.equality(
                "empirics.budget.delay-lemma",
                "Lemma B is attained on f(X) = |X|_F^2/2: its largest left/right over the grid",
                tightest["delay_lemma"],
                1.0,
                ATTAINED,
                place=tightest["name"],
                evidence=EVIDENCE,
            )
        )
    return claims


def _planted_claims(rows: list[dict[str, Any]]) -> list[Claim]:
    odd = max(rows, key=lambda r: badness(abs(r["largest"] / r["expected"] - 1)))
    return [
        Claim.equality(
            "empirics.control.delay",
            "the check can fail: data of delay tau + 1 break Lemma B of delay tau there by the factor (tau + 1)/tau "
            "(left/right over that factor)",
            np.float64(odd["largest"]) / odd["expected"],
            1.0,
            ATTAINED,
            place=odd["name"],
            evidence=EVIDENCE,
        )
    ]
