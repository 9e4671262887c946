"""`staleproof optimizers [NAME]`: the registry of optimizers as a table, or one entry in full."""

from __future__ import annotations

import argparse
from textwrap import fill
from typing import Any

from staleproof.arguments import add_json
from staleproof.errors import EXIT_HOLDS
from staleproof.output import emit, emit_json

HEADER = ("name", "class", "rate", "state", "reference")
LEGEND = """rate: default learning rate. state: buffers of a parameter's size that stay between steps, for a square
hidden matrix / for a vector. staleproof optimizers NAME prints groups, settings and what is known to be inexact."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="optimizer (default: all of them)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print one entry, or the table and what is absent."""
    from pipeline.optim.registry import ABSENT, REGISTRY, recipe_of

    if args.name is not None:
        entry = recipe_of(args.name).describe()
        emit_json(entry) if args.json else emit(_entry(entry))
        return EXIT_HOLDS
    entries = [recipe.describe() for recipe in REGISTRY.values()]
    emit_json({"optimizers": entries, "absent": ABSENT}) if args.json else emit(_table(entries, ABSENT))
    return EXIT_HOLDS


def _table(entries: list[dict[str, Any]], absent: dict[str, str]) -> str:
    lines = [HEADER]
    for e in entries:
        hidden, rest = e["buffers"]
        lines.append((e["name"], e["origin"], f"{e['lr']:g}", f"{hidden}/{rest}", e["reference"].split(": ", 1)[0]))
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    text += [fill(f"absent: {name}, {why}", 118, break_on_hyphens=False) for name, why in absent.items()]
    return "\n".join([*text, LEGEND])


def _entry(entry: dict[str, Any]) -> str:
    settings = ", ".join(f"{key} {value}" for key, value in entry["settings"].items())
    hidden, rest = entry["buffers"]
    rows = [
        ("class", entry["origin"] + (f" (extra: {entry['extra']})" if entry["extra"] else "")),
        ("reference", entry["reference"]),
        ("rate", f"{entry['lr']:g}; {entry['lr_from']}"),
        ("scale", entry["lr_scale"]),
        ("groups", entry["groups"]),
        ("settings", settings),
        ("state", f"{hidden} buffers for a square hidden matrix, {rest} for a vector"),
        *(("known", line) for line in entry["known"]),
    ]
    lines = [f"  {key:<11}{value}" for key, value in rows]
    wrapped = [fill(line, 118, subsequent_indent=" " * 13, break_on_hyphens=False) for line in lines]
    return "\n".join([entry["name"], *wrapped])
