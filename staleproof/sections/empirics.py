"""What is measured, where the truth is known: estimators, budgets of theorems, PipeDream's inequalities, losses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from staleproof.claims import Claim
from staleproof.presets import Preset
from staleproof.sections import _empirics_blocks, _empirics_budgets, _empirics_constants, _empirics_windows

TITLE = "Constants, error budgets and predicted losses where the truth is known"
Progress = Callable[[float, str], None]


def run(preset: Preset, progress: Progress, folder: Path) -> tuple[dict[str, Any], list[Claim]]:
    """Results and claims of this section; see `staleproof.sections`."""

    def part(start: float, end: float) -> Progress:
        return lambda share, text: progress(start + (end - start) * share, text)

    progress(0.0, "estimators")
    constants, known = _empirics_constants.run(preset)
    budgets, taken_apart = _empirics_budgets.run(preset, part(0.05, 0.7))
    blocks, inequalities = _empirics_blocks.run(preset, part(0.7, 0.8))
    windows, predicted = _empirics_windows.run(preset, part(0.8, 1.0))
    progress(1.0, "done")
    found = {"constants": constants, "budgets": budgets, "blocks": blocks, "windows": windows}
    return found, [*known, *taken_apart, *inequalities, *predicted]
