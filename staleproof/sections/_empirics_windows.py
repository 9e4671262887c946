"""Predicted and measured loss on noisy quadratics over two windows of many settings: one test of all, and its power."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from empirics.loss_windows import EARLY, TAIL, JointTest, grid, measure_pairs
from staleproof.claims import Claim
from staleproof.presets import Preset

EVIDENCE = "empirics.json"


def run(preset: Preset, progress: Callable[[float, str], None]) -> tuple[dict[str, Any], list[Claim]]:
    """The entry "windows" of empirics.json, and its claims.

    The level is exact: each p-value is an upper bound of the true one. So it gates; that it can refute is shown by the
    predictions of a delay off by one, on the same measurements.
    """
    settings = grid(shares=(0.1, 0.3, 0.6)) if preset.window_replicas < 100 else grid()
    progress(0.0, f"{len(settings)} settings of the real optimizer")
    joint = JointTest(tuple(measure_pairs(settings, preset.window_replicas, EARLY + TAIL, preset.seed)))
    wrong = {shift: joint.against(shift) for shift in (-1, 1)}
    data = joint.as_dict() | {
        "off_by_one": {str(shift): {"pairs": len(t.pairs), "refuted": t.refuted} for shift, t in wrong.items()}
    }
    worst = joint.worst
    refuted = " and ".join(f"{t.refuted} of {len(t.pairs)} pairs for tau {shift:+d}" for shift, t in wrong.items())
    claims = [
        Claim.statistical(
            "empirics.windows",
            f"{len(joint.pairs)} predicted losses and their measured ones, Bonferroni at a false alarm of "
            f"{joint.level:g}: smallest p-value (an upper bound)",
            worst.p,
            joint.level / len(joint.pairs),
            holds=joint.passes,
            gates=True,
            place=f"{worst.setting.name}, tau {worst.setting.tau}, beta {worst.setting.beta:g}, "
            f"steps {worst.first} to {worst.last}",
            evidence=EVIDENCE,
        ),
        Claim.equality(
            "empirics.control.windows",
            f"the test can fail: a delay off by one is refuted on the same measurements, by {refuted} (1: both are)",
            float(not any(t.passes for t in wrong.values())),
            1.0,
            evidence=EVIDENCE,
        ),
    ]
    return data, claims
