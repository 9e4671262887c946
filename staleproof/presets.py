"""Presets of `staleproof verify`: every size and every seed of a run, in one frozen value.

`quick` is the default: a few minutes on two idle cores. `smoke` makes everything small, for tests: its
training numbers mean nothing beyond "the path works".
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from pipeline.options import MAX_SEED
from staleproof.errors import InputError

MODEL_KEYS = ("layers", "width", "heads")


@dataclass(frozen=True)
class Preset:
    """Sizes of one verification.

    quadratic_replicas     independent runs of the real optimizer code per setting
    quadratic_steps        optimizer steps of each
    certified_steps        optimizer steps of each matrix least-squares run
    budget_settings        settings of the grid of error budgets that are run, at most
    window_replicas        replicas of each setting whose loss is predicted over windows of steps
    deepest_schedule       largest S at which closed forms and enumerations of schedules are compared
    clock_timelines        timelines of schedules on the clock that are drawn, at most
    trace_batches          optimizer steps of the traced two-process run
    oracle_steps           steps over which engine and oracle are compared bit for bit
    training_steps         optimizer steps of each arm
    proofs                 names of the proofs to check with what they rest on; None: all, and the certificates
    training_seeds         paired seeds (same initial weights and data order in every arm)
    training_microbatches  microbatches per optimizer step
    microbatch_sequences   sequences per microbatch
    context                tokens per sequence (bytes)
    model                  layers, width, heads of the byte-level GPT
    """

    name: str
    seed: int = 0
    corpus: str | None = None
    quadratic_replicas: int = 20_000
    quadratic_steps: int = 60
    certified_steps: int = 200
    budget_settings: int = 144
    window_replicas: int = 400
    deepest_schedule: int = 8
    clock_timelines: int = 24
    trace_batches: int = 6
    proofs: tuple[str, ...] | None = None
    oracle_steps: int = 20
    training_steps: int = 200
    training_seeds: int = 5
    training_microbatches: int = 2
    microbatch_sequences: int = 4
    context: int = 64
    model: dict[str, int] = field(default_factory=lambda: {"layers": 2, "width": 64, "heads": 4})

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed <= MAX_SEED:
            raise InputError(f"seed: {self.seed!r} is not allowed; give an integer from 0 to {MAX_SEED}")
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name in ("name", "seed", "corpus", "model", "proofs"):
                continue
            least = 2 if entry.name in ("training_seeds", "quadratic_replicas", "window_replicas") else 1
            _at_least(entry.name, value, least)
        if sorted(self.model) != sorted(MODEL_KEYS):
            allowed = ", ".join(MODEL_KEYS)
            raise InputError(f"model: {sorted(self.model)!r} is not allowed; give exactly {allowed}")
        for key in MODEL_KEYS:
            _at_least(f"model {key}", self.model[key], 1)
        if self.model["width"] % self.model["heads"]:
            raise InputError(
                f"model width: {self.model['width']} is not allowed; "
                f"give a multiple of heads = {self.model['heads']}"
            )

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one optimizer step."""
        return self.training_microbatches * self.microbatch_sequences * self.context


def _at_least(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}: {value!r} is not allowed; give an integer >= {least}")


PRESETS: dict[str, Preset] = {
    "quick": Preset("quick"),
    "smoke": Preset(
        "smoke",
        quadratic_replicas=4_000,
        quadratic_steps=30,
        certified_steps=20,
        budget_settings=4,
        window_replicas=50,
        deepest_schedule=4,
        clock_timelines=1,
        proofs=("descent", "delay"),
        trace_batches=3,
        oracle_steps=3,
        training_steps=6,
        training_seeds=2,
        microbatch_sequences=2,
        context=16,
        model={"layers": 2, "width": 16, "heads": 2},
    ),
}


def get_preset(name: str) -> Preset:
    """The preset of that name; an unknown name raises `InputError` listing the known ones."""
    if name not in PRESETS:
        raise InputError(f"preset: {name!r} is not one of {', '.join(sorted(PRESETS))}")
    return PRESETS[name]
