"""`staleproof delays NAME --stages S`: delays of a schedule, by closed form and by enumeration of its events.

Two counts, never mixed: the optimizer-step delay of each stage, and (for PipeDream) the block-update delay.
Both are computed twice, from the closed form in theory/ and from the schedule in pipeline/; the command
refuses to print (exit 1) if they differ.
"""

from __future__ import annotations

import argparse
from typing import Any

from staleproof.arguments import add_json, integer
from staleproof.errors import EXIT_CLAIM_FAILED, EXIT_HOLDS, InputError
from staleproof.output import emit, emit_json, note

MAX_STAGES = 256  # the enumeration takes time like S^3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="schedule; --list prints the names")
    parser.add_argument("--stages", type=integer(1, MAX_STAGES), metavar="S", help="pipeline stages")
    parser.add_argument(
        "--microbatches",
        type=integer(1),
        metavar="m",
        help="microbatches per optimizer step (default: 1 for pipedream, S for the others)",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the schedules")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Compute twice, compare, print."""
    from pipeline.schedules import SCHEDULES

    if args.list:
        names = sorted(SCHEDULES)
        emit_json({"schedules": names}) if args.json else emit("\n".join(names))
        return EXIT_HOLDS
    if args.name not in SCHEDULES:
        raise InputError(f"name: {args.name!r} is not one of {', '.join(SCHEDULES)}")
    if args.stages is None:
        raise InputError(f"stages: None is not allowed; give --stages with an integer from 1 to {MAX_STAGES}")
    result, differences = both_ways(args.name, args.stages, args.microbatches)
    if differences:
        for line in differences:
            note(f"staleproof delays: claim failed: {line}")
        return EXIT_CLAIM_FAILED
    if args.json:
        emit_json(result)
    else:
        emit(_text(result))
    return EXIT_HOLDS


def both_ways(name: str, stages: int, microbatches: int | None) -> tuple[dict[str, Any], list[str]]:
    """The delays as enumerated, and a line for each count whose closed form says otherwise."""
    from pipeline.delays import delays_of
    from theory.delays import block_update_delay, has_closed_form, optimizer_step_delay

    counted = delays_of(name, stages, microbatches)
    where = f"{name} with {stages} stages and {counted['microbatches']} microbatches"
    differences: list[str] = []
    counted["closed_form"] = has_closed_form(name)
    if not counted["closed_form"]:
        return counted, differences
    formula = optimizer_step_delay(name, stages, counted["microbatches"])
    if formula != counted["optimizer_step_delay"]:
        differences.append(
            f"optimizer_step_delay of {where}: closed form {formula}, "
            f"enumeration {counted['optimizer_step_delay']}"
        )
    if counted["block_update_delay"] is not None:
        stated = block_update_delay(stages)
        for key, value in counted["block_update_delay"].items():
            if key in stated and stated[key] != value:
                differences.append(
                    f"block_update_delay {key} of {where}: closed form {stated[key]}, enumeration {value}"
                )
    return counted, differences


def _text(result: dict[str, Any]) -> str:
    lines = [
        f"{result['name']}, {result['stages']} stages, {result['microbatches']} microbatches per step",
        f"optimizer-step delay by stage: {' '.join(map(str, result['optimizer_step_delay']))}",
    ]
    block = result["block_update_delay"]
    if block is not None:
        lines.append(
            f"block-update delay: max {block['max']}, mean {block['mean']:g}, min {block['min']}, "
            f"start-up max {block['startup_max']}, minimal max {block['minimal_max']}"
        )
        lines.append("block-update delay by active stage (row) and block read (column):")
        width = len(str(block["max"]))
        lines += ["  ".join(f"{int(entry):>{width}}" for entry in row) for row in block["matrix"]]
    agree = "closed form and enumeration agree"
    lines.append(agree if result["closed_form"] else "by enumeration alone: theory/delays has no closed form")
    return "\n".join(lines)
