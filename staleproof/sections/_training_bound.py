"""Theorem 1 on a real run of the LMO optimizer: constants measured, terms, measured left side, slack of each step.

Report only: L is the largest smoothness seen along the path, a lower bound for the theorem's L, and f_* is replaced
by its lower bound 0 (a cross-entropy is not negative). What is exact: eta, alpha, tau, rho, E0, the full gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from empirics.gpt_runs import TheoremRun
from empirics.pathwise import sides
from empirics.statistics import student_interval
from staleproof.claims import Claim

EVIDENCE = "training.json"


def bound_on_runs(runs: list[TheoremRun], tau: int, claims: list[Claim]) -> dict[str, Any]:
    """The entry "bound" of training.json; ``tau``: optimizer-step delay counted from the trace of the real run."""
    from theory.lmo import PATHWISE
    from theory.registry import get_bound
    from theory.symbols import QUANTITIES

    theorem = get_bound("delayed-lmo")
    rows = [row for run in runs for row in run.rows]
    K = len(runs[0].losses)
    smoothness = np.array([row["smoothness"] for row in rows])
    sigmas = np.array([row["sigma"] for row in rows if "sigma" in row])
    constants: dict[str, tuple[float, float, float, str]] = {
        "eta": _exact(runs[0].eta, "setting of the optimizer"),
        "alpha": _exact(runs[0].alpha, "setting of the optimizer"),
        "tau": _exact(tau, "counted from the trace of the two processes"),
        "K": _exact(K, "steps of the run"),
        "rho": _exact(max(run.rho for run in runs), "exact for the model's norm"),
        "E0": _exact(max(run.E0 for run in runs), "exact: m_0 = 0, full gradient at the start"),
        "Delta0": _exact(max(run.f_start for run in runs), "upper bound: f_* >= 0"),
        "L": (
            float(smoothness.max()),
            float(smoothness.min()),
            float(smoothness.max()),
            "largest seen along the path, a lower bound for L; range over sampled steps",
        ),
        "sigma": (
            float(sigmas.max()),
            float(sigmas.min()),
            float(sigmas.max()),
            "largest at sampled points, each by enumeration of the pool; range over them",
        ),
    }
    values = {name: constant[0] for name, constant in constants.items()}
    terms = theorem.evaluate_terms(**values)
    total = float(theorem.evaluate(**values))
    measured = student_interval([float(np.mean([row["grad_norm"] for row in run.rows])) for run in runs])
    inequalities = []
    for key in ("descent", "delay", "momentum-error"):
        inequality = PATHWISE[key]
        needed: dict[str, Any] = {name: values[name] for name in inequality.symbols if name in values}
        needed |= {name: np.array([row[name] for row in rows]) for name in inequality.symbols if name in rows[0]}
        # The realised noise of the momentum is not recorded: its bound in expectation stands in for it.
        needed["noise_norm"] = values["rho"] * values["sigma"] * np.sqrt(values["alpha"] / (2 - values["alpha"]))
        needed |= {"eta": values["eta"], "f_scale": constants["Delta0"][0], "grad_scale": constants["E0"][0]}
        left, right = sides(inequality, needed)
        # At k = 0 nothing is stale yet: Lemma B says 0 <= 0 there.
        share = left[right > 0] / right[right > 0]
        steps = [int(row["k"]) for row, at_most in zip(rows, right, strict=True) if at_most > 0]
        inequalities.append(
            {
                "name": key,
                "title": inequality.title,
                "latex": inequality.statement,
                "utilisation": [float(u) for u in share],
                "min": float(share.min()),
                "median": float(np.median(share)),
                "max": float(share.max()),
                "worst_step": steps[int(share.argmax())],
            }
        )
        claims.append(
            Claim.report(
                f"training.slack.{key}",
                f"{inequality.title} on the recorded runs: median of left/right at sampled steps",
                float(np.median(share)),
                place=f"largest {share.max():.3g} at step {inequalities[-1]['worst_step']}",
                evidence=EVIDENCE,
            )
        )
    claims.append(
        Claim.report(
            "training.bound",
            f"Theorem 1 on the run: bound {total:.4g}, average at sampled steps {measured.value:.4g} in the same norm; "
            "measured / bound",
            measured.value / total,
            evidence=EVIDENCE,
        )
    )
    return {
        "theorem": theorem.name,
        "title": theorem.title,
        "latex": theorem.latex(),
        "metric_latex": theorem.metric,
        "terms": [
            {"name": name, "latex": latex, "value": float(terms[name])} for name, latex in theorem.term_latex().items()
        ],
        "value": total,
        "measured": measured.as_dict(),
        "constants": [
            {
                "symbol": name,
                "latex": QUANTITIES[name].latex,
                "value": value,
                "low": low,
                "high": high,
                "how": how,
                "where": f"lmo, 2BW, {len(runs)} seeds of {K} steps",
            }
            for name, (value, low, high, how) in constants.items()
        ],
        "inequalities": inequalities,
        "note": (
            "Report only. The bound uses the largest smoothness seen along the path everywhere; most of its size is "
            "that constant times the momentum's mean age. In Lemma C the noise of the momentum is its bound in "
            "expectation. The recorded run is the oracle's; its first seed is equal bit for bit to the run of the "
            "two processes."
        ),
    }


def _exact(value: float, how: str) -> tuple[float, float, float, str]:
    return float(value), float(value), float(value), how
