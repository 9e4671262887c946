"""`staleproof delays NAME --stages S`: delays of a schedule, by closed form and by enumeration of its events.

Two counts, never mixed: the optimizer-step delay of each stage, and (for PipeDream) the block-update delay.
Both are computed twice, from the closed form in theory/ and from the schedule in pipeline/; where they differ the
command prints the enumeration, names the difference and ends with exit 1.
"""

from __future__ import annotations

import argparse
from typing import Any

from staleproof.arguments import add_json, add_schedule, refuse_invalid, schedule_of
from staleproof.errors import EXIT_CLAIM_FAILED, EXIT_HOLDS, InputError
from staleproof.output import count, emit, emit_json, note

MAX_STAGES = 128  # the enumeration takes time and memory like S^3


DERIVATION = """PipeDream, a step after every microbatch, F = B = 1 slot, steady 1F1B. Stages a (updating) and r (whose
block is read) count from 1. A microbatch is read at stage r and updates stage a 2S + 1 - r - a slots later; in a slot
either the odd or the even stages update, S/2 on average. The entries are those of theory/delays/block_update.py.
With S, a, r = 2p, 2i, 2k or one off, every floor in them is a polynomial, and for every even and every odd S at once:
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_schedule(parser, MAX_STAGES)
    parser.add_argument(
        "--convention",
        metavar="NAME",
        help="order of reads and updates in one slot, for PipeDream's block-update delays: stage-order (default), "
        "physical, slot, minimal",
    )
    parser.add_argument("--derivation", action="store_true", help="print how PipeDream's S^2 delay is derived")
    parser.add_argument("--list", action="store_true", help="print the names of the schedules")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Compute twice, compare, print."""
    from pipeline.schedules import SCHEDULES

    if args.list:
        titles = {name: SCHEDULES[name].title for name in sorted(SCHEDULES)}
        width = max(map(len, titles))
        text = "\n".join(f"{name:<{width}}  {title}" for name, title in titles.items())
        emit_json({"schedules": sorted(SCHEDULES), "titles": titles}) if args.json else emit(text)
        return EXIT_HOLDS
    if args.derivation:
        if args.name not in (None, "pipedream"):
            raise InputError(f"derivation: {args.name!r} has none; give it alone or with pipedream")
        return _derivation(args.json)
    schedule = schedule_of(args, MAX_STAGES)
    has_blocks = schedule.name == "pipedream" and schedule.microbatches == 1
    if args.convention is not None and not has_blocks:
        raise InputError(
            f"convention: {args.convention!r} is not allowed with {schedule.name} and {schedule.microbatches} "
            "microbatches per step; block-update delays are those of pipedream with 1"
        )
    if refuse_invalid("delays", schedule):
        return EXIT_CLAIM_FAILED
    result, differences = both_ways(schedule, (args.convention or "stage order").replace("-", " "))
    if args.json:
        emit_json(result)
    else:
        emit(_text(result))
    for line in differences:
        note(f"staleproof delays: claim failed: {line}")
    return EXIT_CLAIM_FAILED if differences else EXIT_HOLDS


def both_ways(schedule: Any, convention: str = "stage order") -> tuple[dict[str, Any], list[str]]:
    """The delays as enumerated, and a line for each count whose closed form says otherwise."""
    from pipeline.delays import delays_of
    from staleproof.agreement import block_differences, closed_form_of, delay_differences, describe, options_of

    counted = delays_of(
        schedule.name, schedule.stages, schedule.microbatches, convention=convention, **options_of(schedule)
    )
    form = closed_form_of(schedule)
    counted["closed_form"] = form is not None
    counted["formulas"] = None if form is None else {name: str(formula) for name, formula in form.formulas.items()}
    differences = [str(difference) for difference in delay_differences(schedule, counted)]
    if counted["closed_form"] and counted["block_update_delay"] is not None:
        block = counted["block_update_delay"]
        differences += map(str, block_differences(describe(schedule), schedule.stages, block))
    counted["agree"] = not differences if counted["closed_form"] else None
    counted["mean_delay"] = [float(mean) for mean in counted["mean_delay"]]
    return counted, differences


def _derivation(as_json: bool) -> int:
    from theory.delays.block_update_derivation import derive

    steps = derive()
    failed = [step for step in steps if not step.holds]
    if as_json:
        keys = ("convention", "parity", "name", "left", "relation", "right")
        emit_json({"steps": [{key: str(getattr(s, key)) for key in keys} | {"holds": s.holds} for s in steps]})
    else:
        emit("\n".join([DERIVATION, *map(str, steps)]))
    for step in failed:
        note(f"staleproof delays: claim failed: {step}")
    return EXIT_CLAIM_FAILED if failed else EXIT_HOLDS


def _text(result: dict[str, Any]) -> str:
    lines = [
        f"{result['name']}, {count(result['stages'], 'stage')}, "
        f"{count(result['microbatches'], 'microbatch')} per step",
        f"optimizer-step delay by stage: {' '.join(map(str, result['optimizer_step_delay']))}",
    ]
    if result["mean_delay"] != result["optimizer_step_delay"]:
        lines.append(f"mean over the microbatches: {' '.join(f'{mean:g}' for mean in result['mean_delay'])}")
    if any(result["version_gap"]):
        lines.append(
            f"versions between forward and backward: {' '.join(map(str, result['version_gap']))}, "
            f"on so many microbatches of a step: {' '.join(map(str, result['gap_microbatches']))}"
        )
    block = result["block_update_delay"]
    if block is not None:
        lines.append(
            f"block-update delay ({block['convention']}): max {block['max']}, mean {block['mean']:g}, "
            f"min {block['min']}, start-up max {block['startup_max']}, minimal max {block['minimal_max']}"
        )
        lines.append("block-update delay by active stage (row) and block read (column):")
        width = len(str(block["max"]))
        lines += ["  ".join(f"{int(entry):>{width}}" for entry in row) for row in block["matrix"]]
    words = {
        True: "closed form and enumeration agree",
        False: "closed form and enumeration DIFFER; printed is the enumeration",
        None: "by enumeration alone: theory/delays has no closed form",
    }
    lines.append(words[result["agree"]])
    return "\n".join(lines)
