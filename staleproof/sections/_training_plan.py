"""The training runs of a preset: which arms, which seeds, which model."""

from __future__ import annotations

from dataclasses import replace

from pipeline.models.gpt import GPTConfig
from pipeline.training import TrainConfig
from staleproof.presets import Preset

STAGES = 2
OPTIMIZERS = ("adamw", "muon")
#: (schedule, correction) of the three arms of each optimizer, the synchronous reference first.
ARMS = (("1f1b", "none"), ("pipedream-2bw", "none"), ("pipedream-2bw", "error-feedback"))
#: (optimizer, schedule, correction) of the runs that are compared with the oracle in float64.
ORACLE_CHECKS = (
    ("adamw", "1f1b", "none"),
    *((o, "pipedream-2bw", c) for o in ("adamw", "muon", "lmo") for c in ("none", "error-feedback")),
)
#: Windows that the theorem's run samples from: few, so that full gradients are exact finite sums.
POOL = 64
HELD_OUT = 128
DRIFT_SEEDS = 3
THEOREM_SEEDS = 3
BUDGET_STEPS = 24


def model_config(preset: Preset) -> GPTConfig:
    """The GPT of a preset."""
    sizes = preset.model
    return GPTConfig(layers=sizes["layers"], width=sizes["width"], heads=sizes["heads"], context=preset.context)


def arm(preset: Preset, optimizer: str, schedule: str, correction: str, seed: int) -> TrainConfig:
    """One run: arms of the same seed share initial weights and data order."""
    return TrainConfig(
        schedule=schedule,
        stages=STAGES,
        microbatches=preset.training_microbatches,
        sequences=preset.microbatch_sequences,
        steps=preset.training_steps,
        optimizer=optimizer,
        correction=correction,
        seed=preset.seed + seed,
        model=model_config(preset),
        snapshot_every=max(1, preset.training_steps // 5),
    )


def oracle_check(preset: Preset, optimizer: str, schedule: str, correction: str) -> TrainConfig:
    """A short float64 run of which every parameter is kept at every step."""
    config = arm(preset, optimizer, schedule, correction, 0)
    return replace(config, dtype="float64", steps=preset.oracle_steps, snapshot_every=1)


def theorem_run(preset: Preset, seed: int) -> TrainConfig:
    """A run of the LMO optimizer, whose norm covers the whole model, on a finite pool of sequences."""
    config = arm(preset, "lmo", "pipedream-2bw", "none", seed)
    return replace(config, steps=max(preset.training_steps // 2, 2), pool=POOL, snapshot_every=0)


def budget_run(preset: Preset) -> TrainConfig:
    """The first steps of the theorem's run, taken apart with full gradients at every step."""
    config = theorem_run(preset, 0)
    return replace(config, steps=min(config.steps, BUDGET_STEPS))


def theorem_every(preset: Preset) -> int:
    """Sampling interval of the theorem's run, in steps."""
    return max(1, preset.training_steps // 20)


def drift_every(preset: Preset) -> int:
    """Sampling interval of the gradients in the drift runs, in steps."""
    return max(1, preset.training_steps // 10)


def arm_name(config: TrainConfig) -> str:
    """File name of a run."""
    return f"{config.optimizer}-{config.schedule}-{config.correction}-seed{config.seed}"
