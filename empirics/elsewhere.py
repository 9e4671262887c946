"""What is measured but not by `staleproof estimate`, since it is about the steps of a run: where each is to be had.

A recorded column has one number a step; the recorder is an observer of the oracle (`empirics.least_squares_run` shows
it). After `staleproof budget` the constants of a run stand in its output, with --json too.
"""

from __future__ import annotations

_RECORDER = "empirics.lmo_recorder.LMORecorder, rows.column({name!r})"
_BUDGET = "staleproof budget RUN --theorem {theorem}"

#: name -> command or Python call that gives it.
ELSEWHERE: dict[str, str] = {
    name: _RECORDER.format(name=name)
    for name in ("f_now", "f_next", "grad_norm", "error_norm", "delay_bias", "noise_norm", "delta")
} | {
    "mean_grad_norm": _BUDGET.format(theorem="delayed-lmo"),
    "f_first": "empirics.estimators.trajectory.Trajectory",
    "f_last": "empirics.estimators.trajectory.Trajectory",
    "delta_mean_weighted": "empirics.estimators.update_drift.UpdateDrift",
    "spectral_measure": "empirics.estimators.spectral_measure.spectral_measure",
    "Delta1": "empirics.estimators.initial_gap.initial_gap",
}
