"""Schedules: closed form, enumeration of the events, and the trace of real runs, against each other.

The trace is that of two worker processes training the byte-level GPT; its versions are the tags carried by the
storages that autograd used, never recomputed from the schedule's rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from staleproof.claims import Claim
from staleproof.costs import default_sizes, describe_defaults
from staleproof.presets import Preset

TITLE = "Delays: closed form, enumeration, trace"
EVIDENCE = "delays.json"
LISTED_S = (2, 4, 8)
TRACED_STAGES = 2
MEASURED_MICROBATCHES = 24
DRAWN_STAGES = 4
DRAWN_STEPS = 3
COMPARED_STAGES, COMPARED_MICROBATCHES = 8, 32
SAME_VERSION = "forward and backward of a microbatch used the same weight version (tags of the storages)"
STORED = "each stage held as many weight versions as the schedule counts"


def run(
    preset: Preset, progress: Callable[[float, str], None], folder: Path
) -> tuple[dict[str, Any], list[Claim]]:
    """Compare the three witnesses; returns the contents of delays.json and the claims."""
    from pipeline.clock import Costs, simulate
    from pipeline.compare import compare
    from pipeline.data.corpus import load_corpus
    from pipeline.engine.pool import WorkerPool
    from pipeline.events import as_rows
    from pipeline.messages import blocked
    from pipeline.schedules import SCHEDULES, make_schedule

    claims: list[Claim] = []
    rows: list[dict[str, Any]] = []
    timelines: list[dict[str, Any]] = []
    for index, name in enumerate(SCHEDULES):
        progress(0.3 * index / len(SCHEDULES), f"closed form and enumeration of {name}")
        rows += _closed_form(name, claims, preset.deepest_schedule)
        if "policy" in SCHEDULES[name].__dataclass_fields__:
            for policy in ("stall", "uniform"):
                _closed_form(name, claims, preset.deepest_schedule, policy)
    claims += [_block_update(preset.deepest_schedule), _derivation()]
    progress(0.35, "starting two worker processes")
    text = load_corpus(preset.corpus).text
    traced = [name for name in SCHEDULES if make_schedule(name, DRAWN_STAGES).runs_on_engine]
    with WorkerPool(TRACED_STAGES) as pool:
        for index, name in enumerate(traced):
            progress(0.4 + 0.55 * index / len(traced), f"tracing {name} on {TRACED_STAGES} processes")
            row, drawn = _trace(name, preset, text, pool, claims)
            rows.append(row)
            if drawn is not None:
                timelines.append(drawn)
    for name in list(SCHEDULES)[: preset.clock_timelines]:
        schedule = make_schedule(name, DRAWN_STAGES)
        steps = max(DRAWN_STEPS, 3 * DRAWN_STAGES // schedule.microbatches)
        if blocked(schedule, [list(schedule.actions(d, steps)) for d in range(schedule.devices)], "buffered"):
            continue  # its claim says so
        timelines.append(
            {
                "name": name,
                "stages": DRAWN_STAGES,
                "devices": schedule.devices,
                "microbatches": schedule.microbatches,
                "source": "clock",
                "unit": "slot",
                "events": as_rows(simulate(schedule, steps, Costs(forward=1, backward=2))),
            }
        )
    systems = {
        "stages": COMPARED_STAGES,
        "microbatches": COMPARED_MICROBATCHES,
        "durations": "F = 1, B = 2",
        "bytes": describe_defaults(),  # as `staleproof compare` has them
        "systems": compare(COMPARED_STAGES, COMPARED_MICROBATCHES, Costs(forward=1, backward=2), default_sizes()),
    }
    return {"schedules": rows, "timelines": timelines, "systems": systems}, claims


def _sized(name: str, S: int, m: int, policy: str = "refuse") -> Any | None:
    """The schedule at S and m (PipeDream: a step after every microbatch), or None if it does not allow them."""
    from pipeline.errors import InputError
    from pipeline.schedules import SCHEDULES, make_schedule

    options: dict[str, Any] = {} if policy == "refuse" else {"policy": policy}
    try:
        return make_schedule(name, S, SCHEDULES[name].default_microbatches or m, **options)
    except InputError:
        return None


def _closed_form(name: str, claims: list[Claim], deepest: int, policy: str = "refuse") -> list[dict[str, Any]]:
    """Everything closed about one schedule against the enumeration, for S = 1..deepest; the rows to list."""
    from pipeline.delays import delay_summary
    from pipeline.errors import InputError
    from pipeline.validity import check
    from staleproof import agreement

    rows: list[dict[str, Any]] = []
    differences: dict[str, list[str]] = {"closed-form": [], "memory": [], "clock": [], "valid": []}
    short = policy != "refuse"  # the policies are for fewer than S - 1 microbatches
    numbers = [({1, 2, S - 2} if short else {max(S - 1, 1), S, 2 * S}) for S in range(1, deepest + 1)]
    pairs = [(S, m) for S, ms in enumerate(numbers, 1) for m in sorted(ms) if m >= 1 and not (short and m >= S - 1)]
    schedules = [s for s in dict.fromkeys(_sized(name, S, m, policy) for S, m in pairs) if s is not None]
    form = agreement.closed_form_of(schedules[-1])
    timed = 0
    for schedule in schedules:
        where = agreement.describe(schedule)
        differences["valid"] += [f"{where}: {problem}" for problem in check(schedule).faults]
        try:
            counted = delay_summary(schedule)
            if form is not None:
                differences["closed-form"] += map(str, agreement.delay_differences(schedule, counted))
                differences["memory"] += map(str, agreement.memory_differences(schedule))
                differences["clock"] += map(str, agreement.time_differences(schedule, 1, 2))
                timed += agreement.has_closed_times(schedule, 1, 2)
        except InputError as error:  # no clock can run it, or a gradient goes nowhere
            for found in differences.values():
                found.append(f"{where}: {error}")
            continue
        if schedule.stages in LISTED_S and not short:
            stated = None
            if form is not None:
                values = agreement.values_of(schedule)
                stated = [int(form.evaluate("delay", **values, stage=s)) for s in range(schedule.model_stages)]
            witnesses = {"closed_form": stated, "enumeration": counted["optimizer_step_delay"], "trace": None}
            rows.append(_row(name, schedule, witnesses))
    depths = sorted({schedule.stages for schedule in schedules})
    where = f"at {len(schedules)} pairs of S and m, S = {', '.join(map(str, depths))}"
    statements = {
        "closed-form": f"optimizer-step delay (largest, mean, backward, gap), closed form = enumeration {where}",
        "memory": f"weight versions and microbatches in flight, closed form = enumeration {where}",
        "clock": f"period, fill and drain, bubble at F = 1, B = 2, closed form = clock at {timed} pairs of S and m",
        "valid": f"dependencies, gradients counted once, versions that exist, no deadlock with buffered sends {where}",
    }
    label = f"{name}-{policy}" if short else name
    for claim, found in differences.items():
        if claim == "clock" and form is not None and timed == 0:
            found.append("nothing was compared")
        if form is not None or claim == "valid":
            claims.append(_equality(f"delays.{claim}.{label}", f"{label}: {statements[claim]}", found))
    if form is None:
        statement = f"{label}: theory/delays has no closed form; two witnesses only"
        claims.append(Claim.report(f"delays.closed-form.{label}", statement, None, evidence=EVIDENCE))
    return rows


def _equality(name: str, statement: str, differences: Iterable[str]) -> Claim:
    """A claim that there are no differences; the first is the place."""
    found = list(differences)
    return Claim.equality(name, statement, len(found), place=found[0] if found else "", evidence=EVIDENCE)


def _row(name: str, schedule: Any, witnesses: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "stages": schedule.stages,
        "microbatches": schedule.microbatches,
        "optimizer_step_delay": witnesses,
    }


def _distance(a: list[int], b: list[int]) -> int:
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) if len(a) == len(b) else 1_000_000


def _block_update(deepest: int) -> Claim:
    """PipeDream's block-update delays: every entry and every summary, under every convention."""
    from pipeline.block_delays import CONVENTIONS, block_update_delay
    from pipeline.clock import simulate
    from pipeline.schedules import make_schedule
    from staleproof.agreement import block_differences

    found: list[str] = []
    for S in range(1, deepest + 1):
        events = simulate(make_schedule("pipedream", S), 6 * S)
        for convention in CONVENTIONS:
            found += map(str, block_differences(f"S = {S}", S, block_update_delay(events, S, convention)))
    return _equality(
        "delays.block-update.pipedream",
        f"pipedream: block-update delays (matrix, max, mean, min, start-up; {', '.join(CONVENTIONS)}), closed form = "
        f"enumeration for S = 1..{deepest}",
        found,
    )


def _derivation() -> Claim:
    from theory.delays.block_update_derivation import derive

    return _equality(
        "delays.derivation.pipedream",
        "pipedream: largest, smallest and mean block-update delay and S^2 - S/2 + O(1) follow from the entries, and "
        "the largest of the start-up from its last warm-up microbatch, by computer algebra for every even and odd S",
        [str(step) for step in derive() if not step.holds],
    )


def _measured_block_update(events: list[Any]) -> Claim:
    """PipeDream's block-update delays by the wall clock: reads and updates of real processes, in the order of time."""
    from pipeline.block_delays import block_delays
    from theory.delays import block_update_delay

    S = TRACED_STAGES
    # A stage reads when its forward starts and has updated when its step ends.
    ended = {(e.stage, e.step): e.end for e in events if e.kind == "step"}
    reads = [e for e in events if e.kind == "forward"]
    passes = [(e, ended[e.stage, e.step]) for e in events if e.kind == "backward"]
    updates = [replace(e, start=end, end=end) for e, end in passes]
    steady = block_delays([*reads, *updates], S)[2 * S : -S]
    stated = {name: block_update_delay(S, name) for name in ("stage order", "physical")}
    words = ", ".join(f"{name} mean {b['mean']:g} max {b['max']}" for name, b in stated.items())
    return Claim.report(
        "delays.block-update-trace.pipedream",
        f"pipedream: mean block-update delay of {len(steady)} microbatches on {S} real processes by the wall clock; "
        f"closed forms at F = B: {words}",
        float(steady.mean()),
        place=f"max {int(steady.max())}",
        evidence=EVIDENCE,
    )


def _trace(
    name: str, preset: Preset, text: bytes, pool: Any, claims: list[Claim]
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Run ``name`` on the pool's processes and hold its trace against the other two witnesses."""
    from pipeline.clock import simulate
    from pipeline.delays import delays_per_microbatch, optimizer_step_delay, version_mismatch
    from pipeline.errors import VersionError
    from pipeline.events import as_rows
    from pipeline.schedules import SCHEDULES
    from pipeline.training import TrainConfig, train
    from staleproof.sections._training_plan import model_config
    from theory.delays import has_closed_form
    from theory.delays import optimizer_step_delay as closed_form

    config = TrainConfig(
        schedule=name,
        stages=TRACED_STAGES,
        microbatches=SCHEDULES[name].default_microbatches or TRACED_STAGES,
        sequences=preset.microbatch_sequences,
        steps=max(preset.trace_batches, 4, MEASURED_MICROBATCHES if name == "pipedream" else 0),
        seed=preset.seed,
        model=model_config(preset),
    )
    enumerated = simulate(config.plan, config.steps)
    stated = closed_form(name, TRACED_STAGES, config.plan.microbatches) if has_closed_form(name) else None
    witnesses: dict[str, Any] = {
        "closed_form": stated,
        "enumeration": optimizer_step_delay(enumerated),
        "trace": None,
    }
    row = _row(name, config.plan, witnesses)
    statement = (
        f"{name}: on {TRACED_STAGES} real processes every microbatch's delay, start-up included, is that of the "
        f"enumeration{'' if stated is None else ', and its steady state is the closed form'}"
    )
    claim_name = f"delays.trace.{name}"
    try:
        result = train(config, text, pool)
    except VersionError as error:
        claims.append(Claim.equality(claim_name, statement, float("nan"), place=str(error), evidence=EVIDENCE))
        for other, fact in ((f"delays.same-version.{name}", SAME_VERSION), (f"delays.versions-stored.{name}", STORED)):
            claims.append(Claim.missing(other, "equality", f"{name}: {fact}", f"the traced run failed: {error}"))
        pool.restart()  # a failed run ends its workers
        return row, None
    traced, counted = delays_per_microbatch(result.events), delays_per_microbatch(enumerated)
    witnesses["trace"] = steady = optimizer_step_delay(result.events)
    gap = max(_distance(traced[s], counted[s]) for s in counted)
    if stated is not None:
        gap += _distance(steady, stated)
    place = "" if gap == 0 else f"trace {traced}, enumeration {counted}, closed form {stated}"
    claims.append(Claim.equality(claim_name, statement, gap, place=place, evidence=EVIDENCE))
    claims.append(
        Claim.equality(
            f"delays.same-version.{name}",
            f"{name}: {SAME_VERSION}",
            version_mismatch(result.events),
            evidence=EVIDENCE,
        )
    )
    promised = [config.plan.versions_stored(s) for s in range(TRACED_STAGES)]
    claims.append(
        Claim.equality(
            f"delays.versions-stored.{name}",
            f"{name}: {STORED}, {promised}",
            _distance(result.peak_versions, promised),
            place=f"held {result.peak_versions}",
            evidence=EVIDENCE,
        )
    )
    if name == "pipedream":
        claims.append(_measured_block_update(result.events))
    drawn = {**row, "source": "trace", "unit": "s", "events": as_rows(result.events)}
    drawn.pop("optimizer_step_delay")
    return row, drawn
