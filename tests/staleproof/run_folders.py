"""A folder as `staleproof train --out` leaves it, made by the oracle in this process: no workers, no trace."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from pipeline import record
from pipeline.data.corpus import load_corpus
from pipeline.delays import delay_summary
from pipeline.divergence import of_summary
from pipeline.json_io import write_json
from pipeline.options import add_training_options, config_of
from pipeline.training import held_out_loss, train_oracle

SMALL = "--layers 1 --width 8 --heads 2 --context 8 --sequences 2 --steps 6 --optimizer lmo --device cpu"
TEXT = bytes((i * i + 3 * i) % 251 for i in range(900))


def run_by_oracle(folder: Path, *words: str) -> Path:
    """The folder of a small run with these options besides."""
    folder.mkdir()
    (folder / "text").write_bytes(TEXT)
    parser = argparse.ArgumentParser()
    add_training_options(parser)
    args = parser.parse_args([*SMALL.split(), "--corpus", str(folder / "text"), "--out", str(folder), *words])
    args.stages = args.stages or 2
    config, corpus = config_of(args), load_corpus(args.corpus)
    done = train_oracle(config, corpus.text)
    settings = record.settings_of(args)
    summary = {name: getattr(config, name) for name in ("schedule", "stages", "steps", "optimizer", "correction")} | {
        "seed": config.seed,
        "lr": 0.01 if config.lr is None else config.lr,
        "corpus": corpus.describe(),
        "settings": settings,
        "losses": done.losses,
        "skipped_steps": done.skipped,
        "held_out_loss": held_out_loss(config, corpus.text, done.solution, record.HELD_OUT),
        "optimizer_step_delay": [max(stage) for stage in delay_summary(config.settled)["by_microbatch"]],
    }
    write_json(folder / "run.json", summary)
    end: dict[str, Any] = {"state": "complete" if of_summary(summary) is None else "diverged"}
    write_json(folder / "status.json", end | {"schema": 1, "error": None, "settings": settings})
    torch.save(done.solution, folder / "weights.pt")
    return folder


def edit(folder: Path, name: str, change: Any) -> None:
    """Change a JSON file of the folder in place."""
    value = json.loads((folder / name).read_text())
    change(value)
    (folder / name).write_text(json.dumps(value))
