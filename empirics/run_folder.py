"""What the folder of a run that has ended says, read once for every command: its settings and its summary.

A folder whose files do not go together is refused: the settings stand in status.json, written when the run began, and
in run.json, written when it ended, and what the summary repeats of them must be the same too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empirics.errors import InputError
from pipeline.divergence import Divergence, of_summary
from pipeline.json_io import read_json

#: A run that came to its end.
ENDED = ("complete", "diverged")
IN_SUMMARY = (
    "settings", "corpus", "losses", "held_out_loss", "skipped_steps", "lr", "steps", "seed", "optimizer",
    "optimizer_step_delay",
)  # fmt: skip
#: What the summary repeats of the settings as it is.
REPEATED = ("schedule", "stages", "microbatches", "steps", "optimizer", "correction", "clip", "seed", "dtype")


@dataclass(frozen=True)
class RunFolder:
    """settings: as given to the run; summary: run.json, its losses as numbers; lost: how it diverged, if it did."""

    settings: dict[str, Any]
    summary: dict[str, Any]
    lost: Divergence | None


def read_run(folder: str | Path) -> RunFolder:
    """Raises InputError for what is no folder of a run, for a run that has not ended, and for files that differ."""
    if not str(folder) or not Path(folder).is_dir():
        raise InputError(f"run: {str(folder)!r} is no folder; allowed is one of staleproof train --out DIR")
    path = Path(folder)
    status = _read(path / "status.json")
    _require(status, "status.json", ("state", "settings"))
    state, settings = status["state"], status["settings"]
    if state not in ENDED:
        raise InputError(f"run: {str(folder)!r} has the state {state!r}; allowed is a run that came to its end")
    found = _read(path / "run.json")
    _require(found, "run.json", IN_SUMMARY)
    try:
        # JSON has no NaN: such a loss is a string in the file.
        losses = [float(loss) for loss in found["losses"]]
        summary = found | {"losses": losses, "held_out_loss": float(found["held_out_loss"])}
        summary["corpus"]["sha256"], settings["steps"]
        lost = of_summary(summary)
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(f"run: {str(folder)!r} has no run.json of staleproof train: {error!r}") from None
    _agree(settings, summary)
    return RunFolder(settings, summary, lost)


def _agree(settings: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    other = summary["settings"]
    names = sorted({*settings, *other})
    pairs = [(name, settings.get(name), other.get(name)) for name in names]
    pairs += [(name, settings[name], summary[name]) for name in REPEATED if name in settings and name in summary]
    odd = next(((name, mine, its) for name, mine, its in pairs if mine != its), None)
    if odd is not None:
        name, mine, its = odd
        raise InputError(f"run: {name} is {mine!r} in status.json and {its!r} in run.json; allowed is one run's folder")
    if len(summary["losses"]) != settings["steps"]:
        counted = f"{len(summary['losses'])} losses in run.json for {settings['steps']} steps"
        raise InputError(f"run: {counted}; allowed is one loss for each step")


def _require(found: Mapping[str, Any], name: str, keys: Sequence[str]) -> None:
    missing = next((key for key in keys if key not in found), None)
    if missing is not None:
        raise InputError(f"run: {name} has no {missing!r}; allowed is a folder of staleproof train --out")
    odd = next((key for key in ("settings",) if key in keys and not isinstance(found[key], dict)), None)
    if odd is not None:
        raise InputError(f"run: {odd} in {name} is no JSON object; allowed is a folder of staleproof train --out")


def _read(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except FileNotFoundError:
        where = f"no {path.name} in {str(path.parent)!r}"
        raise InputError(f"run: {where}; allowed is a folder of staleproof train --out") from None
    except OSError as error:
        raise InputError(f"run: {str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"run: {str(path)!r} is cut off or no JSON; allowed is a file of staleproof train") from None
    if not isinstance(found, dict):
        raise InputError(f"run: {str(path)!r} is no JSON object")
    return found
