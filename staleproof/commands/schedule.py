"""`staleproof schedule NAME`: one schedule on the clock: timeline, bubble, memory, validity."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from staleproof.arguments import add_json, add_schedule
from staleproof.costs import add_costs, add_sizes, costs_of, readable_bytes, sizes_of
from staleproof.errors import EXIT_CLAIM_FAILED, EXIT_HOLDS, InputError
from staleproof.output import emit, emit_json, note

ENDINGS = (".png", ".pdf", ".svg")
MAX_STAGES = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from staleproof.arguments import integer

    add_schedule(parser, MAX_STAGES)
    parser.add_argument(
        "--steps", type=integer(1), metavar="K", help="optimizer steps of the timeline (default: start-up and two more)"
    )
    parser.add_argument("--figure", metavar="FILE", help="draw the timeline (.png, .pdf or .svg), its CSV beside it")
    add_json(parser)
    add_costs(parser)
    add_sizes(parser)


def run(args: argparse.Namespace) -> int:
    """Simulate, check, print and draw; exit code 1 where the schedule is not valid."""
    from pipeline.clock import simulate
    from pipeline.events import as_rows
    from pipeline.validity import check
    from staleproof.arguments import schedule_of

    schedule = schedule_of(args, MAX_STAGES)
    if args.figure is not None and Path(args.figure).suffix.lower() not in ENDINGS:
        raise InputError(f"figure: {args.figure!r} is not allowed; give a name that ends in {', '.join(ENDINGS)}")
    costs, sizes = costs_of(args), sizes_of(args)
    steps = args.steps or 2 + -(-schedule.stages // schedule.microbatches)
    result = summary(schedule, costs, sizes, args.recompute)
    if args.tokens is not None:
        result["tokens_per_time"] = args.tokens * result["microbatches_per_time"]
    valid = check(schedule)
    result["validity"] = {"valid": valid.valid, "problems": valid.problems, "deadlocks": valid.deadlocks}
    result["events"] = as_rows(simulate(schedule, steps, costs))
    if args.figure is not None:
        result["files"] = _draw(result, Path(args.figure))
    if args.json:
        emit_json(result)
    else:
        emit(_text(result))
    for problem in valid.problems:
        note(f"staleproof schedule: claim failed: {problem}")
    return EXIT_HOLDS if valid.valid else EXIT_CLAIM_FAILED


def summary(schedule: Any, costs: Any, sizes: Any, recompute: bool) -> dict[str, Any]:
    """Everything that is read from the schedule but its events."""
    from pipeline.delays import delay_summary
    from pipeline.events import plain_number
    from pipeline.memory import memory
    from pipeline.timing import timing

    time, delays = timing(schedule, costs), delay_summary(schedule)
    return {
        "name": schedule.name,
        "title": schedule.title,
        "reference": schedule.reference,
        "stages": schedule.stages,
        "microbatches": schedule.microbatches,
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
        "memory": [
            {
                "device": device,
                "versions": {str(stage): count for stage, count in peak.versions.items()},
                "in_flight": {str(stage): count for stage, count in peak.in_flight.items()},
                "in_flight_total": peak.in_flight_total,
                "weight_bytes": peak.weights,
                "gradient_bytes": peak.gradients,
                "optimizer_bytes": peak.optimizer,
                "activation_bytes": peak.activations,
                "bytes": peak.total,
            }
            for device, peak in enumerate(memory(schedule, sizes, recompute))
        ],
    }


def _draw(result: dict[str, Any], path: Path) -> list[str]:
    from figures import style
    from figures.timeline import draw_one

    with style.context():
        drawing = draw_one({**result, "source": "clock", "unit": "slot"}, "timeline")
        assert drawing is not None
        return [str(written) for written in style.save_as(drawing, path)]


def _text(result: dict[str, Any]) -> str:
    plural = "" if result["stages"] == 1 else "s"
    lines = [
        f"{result['title']} ({result['reference']}), {result['stages']} stage{plural}, "
        f"{result['microbatches']} microbatches per step",
        f"bubble {100 * result['bubble']:.2f} %, period {result['period']:g} per step"
        f"{'' if result['period_is_exact'] else ' on average'}, fill and drain {result['fill_and_drain']:g} once",
        f"optimizer-step delay by stage: {' '.join(map(str, result['optimizer_step_delay']))}; "
        f"versions between a forward and its backward: at most {result['max_version_gap']}",
    ]
    if "tokens_per_time" in result:
        lines.append(f"{result['tokens_per_time']:g} tokens per unit of time")
    lines.append("device  versions of its stages  in flight  weights, gradients, optimizer, activations  memory")
    for entry in result["memory"]:
        parts = ", ".join(
            readable_bytes(entry[key])
            for key in ("weight_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes")
        )
        versions = " ".join(map(str, entry["versions"].values()))
        lines.append(
            f"{entry['device']:>6}  {versions:<22}  {entry['in_flight_total']:>9}  {parts:<42}  "
            f"{readable_bytes(entry['bytes'])}"
        )
    for sending, place in result["validity"]["deadlocks"].items():
        lines.append(f"{sending} sends: {'no deadlock' if place is None else 'DEADLOCK: ' + place}")
    lines.append("valid" if result["validity"]["valid"] else "NOT VALID")
    if "files" in result:
        lines.append(f"drawn: {', '.join(result['files'])}")
    return "\n".join(lines)
