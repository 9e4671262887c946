"""`staleproof schedule NAME`: one schedule on the clock: timeline, bubble, memory, validity."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pipeline.options import add_sync_start, integer
from staleproof.arguments import add_json, add_schedule, check_figure, check_size, note_problems, schedule_of
from staleproof.costs import add_costs, add_sizes, costs_of, describe_costs, kept_of, readable_bytes, sizes_of
from staleproof.errors import EXIT_CLAIM_FAILED, EXIT_HOLDS, InputError
from staleproof.output import count, emit, emit_json

MAX_STAGES = 128
SENDING = {
    "buffered": "a send never blocks",
    "paired": "each send posted with the next receive",
    "rendezvous": "one blocking send or receive after another",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_schedule(parser, MAX_STAGES)
    add_sync_start(parser)
    parser.add_argument(
        "--steps", type=integer(1), metavar="K", help="optimizer steps of the timeline (default: start-up and three)"
    )
    parser.add_argument("--figure", metavar="FILE", help="draw the timeline (.png, .pdf or .svg), its CSV beside it")
    add_json(parser)
    add_costs(parser)
    add_sizes(parser)
    parser.add_argument(
        "--put-off",
        action="store_true",
        help="memory where steps wait for a number of the whole model (clipping, tied weights, skipped steps)",
    )


def run(args: argparse.Namespace) -> int:
    """Simulate, check, print and draw; exit code 1 where the schedule is not valid."""
    from pipeline.clock import simulate
    from pipeline.events import as_rows
    from pipeline.validity import check

    schedule = schedule_of(args, MAX_STAGES)
    if args.figure is not None:
        check_figure(args.figure)
    if args.weight is not None and not schedule.splits_backward:
        raise InputError(f"weight: not allowed, {schedule.name} does not split its backward")
    if args.reduce and schedule.pipelines == 1:
        raise InputError(f"reduce: not allowed, {schedule.name} has one copy of each stage")
    steps = args.steps or args.sync_start + 3 + -(-schedule.stages // schedule.microbatches)
    if args.steps:
        check_size(schedule.model_stages, schedule.microbatches, steps=steps)
    costs, sizes, kept = costs_of(args), sizes_of(args), kept_of(args)
    if args.put_off:
        schedule.refuse_without_slack("put_off", True)
    costs.on_stages(schedule)  # refuses costs of the wrong length
    found = check(schedule)
    validity = {"valid": found.valid, "problems": found.problems, "deadlocks": found.deadlocks}
    if not found.valid:
        head = {"name": schedule.name, "stages": schedule.stages, "microbatches": schedule.microbatches}
        emit_json({**head, "validity": validity}) if args.json else emit("NOT VALID")
        note_problems("schedule", found)
        return EXIT_CLAIM_FAILED
    result = summary(schedule, costs, sizes, kept, args.put_off)
    if args.tokens is not None:
        result["tokens_per_time"] = args.tokens * result["microbatches_per_time"]
    result["durations"] = describe_costs(args)
    result["validity"] = validity
    result["events"] = as_rows(simulate(schedule, steps, costs))
    if args.figure is not None:
        result["files"] = _draw(result, Path(args.figure))
    emit_json(result) if args.json else emit(_text(result))
    return EXIT_HOLDS


def summary(
    schedule: Any, costs: Any, sizes: Any, kept: Any = None, put_off: bool = False
) -> dict[str, Any]:
    """Everything that is read from the schedule but its events."""
    from pipeline.delays import delay_summary
    from pipeline.events import plain_number
    from pipeline.memory import memory, with_correction
    from pipeline.timing import timing

    time, delays = timing(schedule, costs), delay_summary(schedule)
    if kept is not None:
        sizes = with_correction(sizes, schedule, delays["optimizer_step_delay"], kept)
    return {
        "name": schedule.name,
        "title": schedule.title,
        "reference": schedule.reference,
        "stages": schedule.stages,
        "microbatches": schedule.microbatches,
        "synchronous_steps": schedule.synchronous_steps,
        "devices": schedule.devices,
        "model_stages": schedule.model_stages,
        "pipelines": schedule.pipelines,
        "bubble": float(time.bubble),
        "utilisation": float(time.utilisation),
        "period": plain_number(time.period),
        "period_is_exact": time.exact,
        "fill_and_drain": plain_number(time.fill_and_drain),
        "microbatches_per_time": float(time.microbatches_per_time()),
        "optimizer_step_delay": delays["optimizer_step_delay"],
        "max_version_gap": max(delays["version_gap"]),
        "correction": None if kept is None else kept.settings,
        "put_off": put_off,
        "memory": [
            {
                "device": device,
                "versions": {str(stage): number for stage, number in peak.versions.items()},
                "in_flight": {str(stage): number for stage, number in peak.in_flight.items()},
                "in_flight_total": peak.in_flight_total,
                "weight_bytes": peak.weights,
                "gradient_bytes": peak.gradients,
                "optimizer_bytes": peak.optimizer,
                "activation_bytes": peak.activations,
                "correction_bytes": peak.correction,
                "gradient_sets": {str(stage): number for stage, number in peak.gradient_sets.items()},
                "bytes": peak.total,
            }
            for device, peak in enumerate(memory(schedule, sizes, costs.recompute, put_off))
        ],
    }


def _draw(result: dict[str, Any], path: Path) -> list[str]:
    from figures import style
    from figures.timeline import draw_one

    with style.context():
        drawing = draw_one({**result, "source": "clock", "unit": "unit of F and B"}, "timeline")
        assert drawing is not None
        return [str(written) for written in style.save_as(drawing, path)]


def _text(result: dict[str, Any]) -> str:
    lines = [
        f"{result['title']} ({result['reference']}), {count(result['stages'], 'stage')}, "
        f"{count(result['microbatches'], 'microbatch')} per step, {result['durations']}",
        f"bubble (share of the steady state without a forward or backward) {100 * result['bubble']:.2f} %, period "
        f"{result['period']:g} per step{'' if result['period_is_exact'] else ' on average'}, fill and drain "
        f"{result['fill_and_drain']:g} once",
        f"optimizer-step delay by stage: {' '.join(map(str, result['optimizer_step_delay']))}; "
        f"versions between a forward and its backward: at most {result['max_version_gap']}",
    ]
    if result["synchronous_steps"]:
        start = count(result["synchronous_steps"], "step")
        lines.append(f"synchronous start: {start} of delay 0; this is what follows")
    if "tokens_per_time" in result:
        lines.append(f"{result['tokens_per_time']:g} tokens per unit of time")
    names = ["weight", "gradient", "optimizer", "activation", *(["correction"] if result["correction"] else [])]
    head = "weights, gradients, optimizer, activations" + (", correction" if result["correction"] else "")
    lines.append(f"device  versions of its stages  in flight  at the peak: {head}")
    for entry in result["memory"]:
        parts = " + ".join(readable_bytes(entry[f"{name}_bytes"]) for name in names)
        versions = " ".join(map(str, entry["versions"].values()))
        lines.append(
            f"{entry['device']:>6}  {versions:<22}  {entry['in_flight_total']:>9}  {parts} = "
            f"{readable_bytes(entry['bytes'])}"
        )
    for sending, place in result["validity"]["deadlocks"].items():
        how = f"{sending} sends ({SENDING[sending]})"
        lines.append(f"{how}: {'no deadlock' if place is None else 'DEADLOCK, ' + place}")
    lines.append("valid: dependencies, versions, and every gradient counted once")
    if "files" in result:
        lines.append(f"drawn: {', '.join(result['files'])}")
    return "\n".join(lines)
