"""`staleproof compare`: every system in one table, at given depth, microbatches, durations and bytes."""

from __future__ import annotations

import argparse
from typing import Any

from pipeline.options import integer
from staleproof.arguments import MAX_PASSES_EACH, add_json, check_size
from staleproof.costs import (
    add_costs,
    add_sizes,
    costs_of,
    describe_costs,
    describe_sizes,
    kept_of,
    readable_bytes,
    sizes_of,
)
from staleproof.errors import EXIT_CLAIM_FAILED, EXIT_HOLDS, InputError
from staleproof.output import emit, emit_json, note

MAX_STAGES = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add = parser.add_argument
    add("--stages", type=integer(1, MAX_STAGES), required=True, metavar="S", help="pipeline stages, one device each")
    add("--microbatches", type=integer(1), required=True, metavar="m", help="microbatches per optimizer step")
    add("--csv", action="store_true", help="print CSV only, at full precision")
    add("--latex", action="store_true", help="print a LaTeX table only")
    add_json(parser)
    add_costs(parser)
    add_sizes(parser)


def run(args: argparse.Namespace) -> int:
    """Compare and print; exit code 1 where a system is not valid."""
    from pipeline.compare import compare

    chosen = [name for name in ("json", "csv", "latex") if getattr(args, name)]
    if len(chosen) > 1:
        raise InputError(f"{chosen[1]}: not together with --{chosen[0]}; give one of --json, --csv, --latex")
    check_size(args.stages, args.microbatches, limit=MAX_PASSES_EACH)
    rows = compare(args.stages, args.microbatches, costs_of(args), sizes_of(args), kept_of(args))
    if args.tokens is not None:
        for row in rows:
            if row["note"] is None:
                row["tokens_per_time"] = args.tokens * row["microbatches_per_time"]
    result = {
        "stages": args.stages,
        "microbatches": args.microbatches,
        "durations": describe_costs(args),
        "bytes": describe_sizes(args),
        "systems": rows,
    }
    if args.json:
        emit_json(result)
    elif chosen:
        from figures.table import table_csv, table_latex
        from figures.tables_systems import systems_csv, systems_table

        text = table_latex(systems_table(result)) if args.latex else table_csv(systems_csv(result)).decode()
        emit(text.rstrip("\n"))
    else:
        emit(_text(result, args.tokens is not None))
    broken = [row for row in rows if row["note"] is not None and row["note"].startswith("not valid")]
    for row in broken:
        note(f"staleproof compare: claim failed: {row['name']}: {row['note']}")
    return EXIT_CLAIM_FAILED if broken else EXIT_HOLDS


HEADER = ("system", "m", "bubble", "delay", "mean", "gap", "versions", "in flight", "memory", "throughput")
LEGEND = """m: microbatches per step (PipeDream steps after each). bubble: share of the steady state without a forward
or backward; ~: on average. delay, mean: age of gradients in optimizer steps at the worst stage. gap: versions between
a forward and its backward. in flight: microbatches on a device. memory: of the device that needs most. throughput:
against 1f1b."""


def _text(result: dict[str, Any], tokens: bool) -> str:
    rows = [row for row in result["systems"] if row["note"] is None]
    lines: list[tuple[str, ...]] = [HEADER]
    for row in rows:
        lines.append(
            (
                row["name"],
                str(row["microbatches"]),
                f"{'' if row['period_is_exact'] else '~'}{100 * row['bubble']:.1f} %",
                str(row["delay"]),
                f"{row['mean_delay']:.3g}",
                str(row["version_gap"]),
                str(row["versions"]),
                str(row["in_flight"]),
                readable_bytes(row["bytes"]),
                "-" if row["relative_throughput"] is None else f"{row['relative_throughput']:.3f}",
            )
        )
    if tokens:
        rates = ["tokens/time", *(f"{row['tokens_per_time']:.4g}" for row in rows)]
        lines = [(*line, rate) for line, rate in zip(lines, rates, strict=True)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = [
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]
    text += [f"{row['name']}: {row['note']}" for row in result["systems"] if row["note"] is not None]
    text += [f"{result['durations']}; bytes of the model: {result['bytes']}", LEGEND]
    return "\n".join(text)
