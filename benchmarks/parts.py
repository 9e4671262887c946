"""results.md has a part for each benchmark; writing one leaves the others as they are."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results.md"


def machine(threads: str = "one thread") -> str:
    """The machine in words."""
    import torch

    return (
        f"{os.cpu_count()} CPU cores ({platform.machine()}), Python {platform.python_version()}, "
        f"torch {torch.__version__}, {threads}"
    )


def replace_part(text: str, name: str, part: str) -> str:
    """``text`` with the part of that name replaced, or with it at the end where there is none."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2].strip("\n")
    pieces = [before.rstrip(), f"{begin}\n\n{part.strip()}\n\n{end}", after]
    return "\n\n".join(piece for piece in pieces if piece).lstrip("\n") + "\n"


def limits_table(title: str, command: str, rows: list[tuple[str, float, float | None]]) -> str:
    """A part of (what, seconds, limit in seconds or None)."""
    lines = [
        f"| {what} | {seconds:.3f} | {'' if limit is None else f'at most {limit:g}'} | "
        f"{'' if limit is None else 'met' if seconds <= limit else 'MISSED'} |"
        for what, seconds, limit in rows
    ]
    table = "\n".join(["| what | seconds | limit |  |", "| --- | --- | --- | --- |", *lines])
    machine = f"{os.cpu_count()} CPU cores ({platform.machine()}), Python {platform.python_version()}"
    return f"# {title}\n\n{datetime.datetime.now(datetime.UTC).date()}, `{command}`. {machine}.\n\n{table}\n"


def write_part(name: str, part: str) -> None:
    """Put a benchmark's part into results.md."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    RESULTS.write_text(replace_part(text, name, part), encoding="utf-8")
