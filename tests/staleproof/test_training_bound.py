"""Theorem 1 on a recorded run: constants, terms and the slack of its lemmas, against a transcription."""

from __future__ import annotations

import math

import pytest

from empirics.gpt_runs import TheoremRun
from staleproof.sections._training_bound import bound_on_runs

ETA, ALPHA, E0, RHO = 0.1, 0.5, 4.0, 2.0


def row(k: int, f_now: float, f_next: float, grad: float, error: float, bias: float, smoothness: float) -> dict:
    return {
        "k": float(k),
        "f_now": f_now,
        "f_next": f_next,
        "grad_norm": grad,
        "error_norm": error,
        "delay_bias": bias,
        "step_norm": ETA,
        "smoothness": smoothness,
        "sigma": 0.25,
    }


ROWS = [row(0, 3.0, 2.9, 4.0, 2.0, 0.0, 5.0), row(2, 2.5, 2.45, 3.0, 1.0, 0.3, 8.0)]


def run(seed: int) -> TheoremRun:
    """Of the second seed the last gradient is larger by a billionth: equal samples have no interval."""
    rows = [ROWS[0], {**ROWS[1], "grad_norm": ROWS[1]["grad_norm"] * (1 + 1e-9 * seed)}]
    return TheoremRun(seed, rows, ETA, ALPHA, E0, RHO, 3.0, {}, [3.0, 2.9, 2.5, 2.4])


def test_terms_and_slack_by_hand():
    claims: list = []
    entry = bound_on_runs([run(0), run(1)], 1, claims)
    L, tau, K, sigma = 8.0, 1, 4, 0.25
    noise = RHO * sigma * math.sqrt(ALPHA / (2 - ALPHA))
    expected = {
        "initial": 3.0 / (ETA * K),
        "step": L * ETA / 2,
        "momentum_lag": 2 * L * ETA * (1 - ALPHA) / ALPHA,
        "delay": 2 * L * ETA * tau,
        "noise": 2 * noise,
        "start": 2 * E0 * (1 - ALPHA) / (ALPHA * K),
    }
    assert {term["name"]: term["value"] for term in entry["terms"]} == pytest.approx(expected)
    assert entry["value"] == pytest.approx(sum(expected.values()))
    assert entry["measured"]["value"] == pytest.approx(3.5)
    slack = {inequality["name"]: inequality for inequality in entry["inequalities"]}
    # Lemma A with the progress on the left: what is paid for momentum error and curvature.
    curvature = L * ETA**2 / 2
    descent = [
        (2.9 - 3.0 + ETA * 4.0) / (2 * ETA * 2.0 + curvature),
        (2.45 - 2.5 + ETA * 3.0) / (2 * ETA * 1.0 + curvature),
    ]
    assert slack["descent"]["utilisation"][:2] == pytest.approx(descent)
    # Lemma B says 0 <= 0 at k = 0: only the later sample counts.
    assert slack["delay"]["utilisation"] == pytest.approx([0.3 / (L * ETA)] * 2)
    lag = (1 - ALPHA) + (1 - ALPHA) ** 2
    late = ALPHA * (1 + (1 - ALPHA))  # alpha sum_{i=1..2} (1-alpha)^{2-i} min(i, 1)
    at_2 = (1 - ALPHA) ** 3 * E0 + L * ETA * (lag + late) + noise
    assert slack["momentum-error"]["utilisation"][1] == pytest.approx(1.0 / at_2)
    assert all(claim.kind == "report" for claim in claims)
