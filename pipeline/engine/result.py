"""What one stage of a run brings home; light enough for a process that only gathers results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor

from pipeline.events import Event


@dataclass
class StageResult:
    """What one stage brings home.

    events: its trace, times in seconds; losses: mean training loss of each step at the version used (last stage).
    norms: norm of each batch gradient before clipping (with clipping only); skipped: every step k that was left out for
    Inf or NaN in its gradient, the same on all stages; busy: seconds of forwards and backwards.
    step_ends: when each optimizer step of this run ended, on the clock of the events.
    snapshots: step count k -> weights after k steps, by full parameter name (host tensors).
    peak_versions, peak_in_flight, peak_gradient_sets: most weight versions held, microbatches between forward and
    backward, batches whose gradients were held, at a time.
    solution: what has been trained, by name: another point than the last snapshot under weight prediction.
    input_digest, target_digest: sha256 of the inputs (first stage) and targets (last stage) consumed, in order.
    """

    stage: int
    events: list[Event] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    snapshots: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    solution: dict[str, Tensor] = field(default_factory=dict)
    busy: float = 0.0
    step_ends: list[float] = field(default_factory=list)
    input_digest: str = ""
    target_digest: str = ""
    peak_versions: int = 0
    peak_in_flight: int = 0
    peak_gradient_sets: int = 0

    def shift(self, seconds: float) -> None:
        """Move the times of the trace: to another origin."""
        self.events = [replace(e, start=e.start + seconds, end=e.end + seconds) for e in self.events]
