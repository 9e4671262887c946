"""Delays: the closed form, the enumeration of the schedule and the trace of a real run, three witnesses.

The trace is that of two worker processes training the byte-level GPT; its versions are the tags carried by the
storages that autograd used, never recomputed from the schedule's rule.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from staleproof.claims import Claim
from staleproof.presets import Preset

TITLE = "Delays: closed form, enumeration, trace"
EVIDENCE = "delays.json"
LARGEST_S = 8
TRACED_STAGES = 2
DRAWN_STAGES = 4
DRAWN_STEPS = 3
SAME_VERSION = "forward and backward of a microbatch used the same weight version (tags of the storages)"
STORED = "each stage held as many weight versions as the schedule counts"


def run(
    preset: Preset, progress: Callable[[float, str], None], folder: Path
) -> tuple[dict[str, Any], list[Claim]]:
    """Compare the three witnesses; returns the contents of delays.json and the claims."""
    from pipeline.clock import simulate
    from pipeline.data.corpus import load_corpus
    from pipeline.delays import optimizer_step_delay
    from pipeline.engine.pool import WorkerPool
    from pipeline.events import as_rows
    from pipeline.schedules import SCHEDULES, make_schedule
    from theory.delays import has_closed_form
    from theory.delays import optimizer_step_delay as closed_form

    claims: list[Claim] = []
    rows: list[dict[str, Any]] = []
    timelines: list[dict[str, Any]] = []
    for name in SCHEDULES:
        if not has_closed_form(name):
            statement = f"{name}: theory/delays has no closed form; two witnesses only"
            claims.append(Claim.report(f"delays.closed-form.{name}", statement, None, evidence=EVIDENCE))
            continue
        worst, place = 0, ""
        for S in range(1, LARGEST_S + 1):
            for m in (1,) if name == "pipedream" else sorted({max(S - 1, 1), S}):
                schedule = make_schedule(name, S, m)
                events = simulate(schedule, 6 * S // m + 4)
                stated, counted = closed_form(name, S, m), optimizer_step_delay(events)
                witnesses = {"closed_form": stated, "enumeration": counted, "trace": None}
                rows.append({"name": name, "stages": S, "microbatches": m, "optimizer_step_delay": witnesses})
                gap = _distance(stated, counted)
                if gap > worst:
                    worst, place = gap, f"S = {S}, m = {m}: closed form {stated}, enumeration {counted}"
        statement = f"{name}: optimizer-step delay, closed form = enumeration for S = 1..{LARGEST_S}"
        claims.append(
            Claim.equality(f"delays.closed-form.{name}", statement, worst, place=place, evidence=EVIDENCE)
        )
    claims.append(_block_update())
    progress(0.1, "starting two worker processes")
    text = load_corpus(preset.corpus).text
    with WorkerPool(TRACED_STAGES) as pool:
        for index, name in enumerate(SCHEDULES):
            progress(0.2 + 0.25 * index, f"tracing {name} on {TRACED_STAGES} processes")
            row, drawn = _trace(name, preset, text, pool, claims)
            rows.append(row)
            if drawn is not None:
                timelines.append(drawn)
    for name in SCHEDULES:
        schedule = make_schedule(name, DRAWN_STAGES)
        steps = max(DRAWN_STEPS, 3 * DRAWN_STAGES // schedule.microbatches)
        timelines.append(
            {
                "name": name,
                "stages": DRAWN_STAGES,
                "microbatches": schedule.microbatches,
                "source": "clock",
                "unit": "slot",
                "events": as_rows(simulate(schedule, steps, forward=1, backward=2)),
            }
        )
    return {"schedules": rows, "timelines": timelines}, claims


def _distance(a: list[int], b: list[int]) -> int:
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) if len(a) == len(b) else 1_000_000


def _block_update() -> Claim:
    """PipeDream's block-update delays: every entry and every summary, S = 1..8."""
    from pipeline.delays import delays_of
    from theory.delays import block_update_delay as closed_form

    worst, place = 0.0, ""
    for S in range(1, LARGEST_S + 1):
        counted = delays_of("pipedream", S)["block_update_delay"]
        stated = closed_form(S)
        for key in ("max", "mean", "min", "startup_max", "minimal_max"):
            gap = abs(float(stated[key]) - counted[key])
            if not gap <= worst:
                worst, place = gap, f"S = {S}, {key}: {stated[key]} against {counted[key]}"
        for a in range(S):
            gap = _distance([int(entry) for entry in stated["matrix"][a]], counted["matrix"][a])
            if gap > worst:
                worst, place = gap, f"S = {S}, active stage {a}"
    return Claim.equality(
        "delays.block-update.pipedream",
        f"pipedream: block-update delays (matrix, max, mean, min, start-up), closed form = enumeration for "
        f"S = 1..{LARGEST_S}",
        worst,
        place=place,
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
    from pipeline.training import TrainConfig, train
    from staleproof.sections._training_plan import model_config
    from theory.delays import has_closed_form
    from theory.delays import optimizer_step_delay as closed_form

    config = TrainConfig(
        schedule=name,
        stages=TRACED_STAGES,
        sequences=preset.microbatch_sequences,
        steps=max(preset.trace_batches, 4),
        seed=preset.seed,
        model=model_config(preset),
    )
    m = config.plan.microbatches
    enumerated = simulate(config.plan, config.steps)
    stated = closed_form(name, TRACED_STAGES, m) if has_closed_form(name) else None
    row: dict[str, Any] = {"name": name, "stages": TRACED_STAGES, "microbatches": m}
    row["optimizer_step_delay"] = {
        "closed_form": stated,
        "enumeration": optimizer_step_delay(enumerated),
        "trace": None,
    }
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
    steady = optimizer_step_delay(result.events)
    row["optimizer_step_delay"]["trace"] = steady
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
    drawn = {**row, "source": "trace", "unit": "s", "events": as_rows(result.events)}
    drawn.pop("optimizer_step_delay")
    return row, drawn

