"""Figures: the timeline of each schedule, one row per device, coloured by weight version."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from figures import style
from figures.results import Results, Row, number, rows, text, whole
from figures.style import BLACK, Drawing

CAPTION = (
    "One row per device. Each box is one microbatch (its number inside): pale for a forward pass, full colour for a "
    "backward pass; the colour is the weight version that the pass reads. Triangles mark optimizer steps. A pass and "
    "the step it feeds part by as many versions as were written between them: that count is the delay. The run starts "
    "with an empty pipeline and ends by draining it, which a bubble of the steady state leaves out."
)
SPLIT = " Hatched boxes are weight gradients, split off; the backward is then the gradient of the inputs alone."
SHARED = " A device holds several stages: s is the stage of a box; the CSV also says which copy of it."
HEADER = (
    "schedule",
    "stages",
    "microbatches",
    "source",
    "unit",
    "kind",
    "stage",
    "microbatch",
    "step",
    "version",
    "start",
    "end",
    "pipeline",
    "device",
)
SLOTS_PER_STRIP = 40
SLOTS_PER_STRIP_OF_SEVERAL = 30  # where a label also names the stage
STRIPS = 3
LARGEST_NUMBER = 24
_VERSIONS = (style.SKY, style.ORANGE, style.GREEN, style.PINK, style.YELLOW, style.RED, style.BLUE, "#999999")


@dataclass(frozen=True)
class Event:
    """One action of a device; `version` is the weight version read, or -1 if the file does not say."""

    kind: str
    device: int
    microbatch: int | None
    version: int
    start: float
    end: float
    label: str


def events_of(timeline: Row) -> tuple[list[Event], int]:
    """The drawable events, earliest first, and how many had no finite times or no stage."""
    found, lost = [], 0
    several = _devices_hold_several(timeline)
    for event in rows(timeline, "events"):
        start, end, device = (number(event.get(key)) for key in ("start", "end", "device"))
        if math.isnan(device):
            device = number(event.get("stage"))
        if not (math.isfinite(start) and math.isfinite(end) and math.isfinite(device) and end >= start and device >= 0):
            lost += 1
            continue
        microbatch = number(event.get("microbatch"))
        label = "" if not math.isfinite(microbatch) else str(int(microbatch))
        if several and label:
            label += f"\ns{whole(event, 'stage', 0)}"
        found.append(
            Event(
                text(event, "kind"),
                int(device),
                int(microbatch) if math.isfinite(microbatch) else None,
                whole(event, "version", -1),
                start,
                end,
                label,
            )
        )
    return sorted(found, key=lambda e: (e.start, e.device)), lost


def _devices_hold_several(timeline: Row) -> bool:
    """Whether some device works on more than one model stage."""
    held: dict[object, set[object]] = {}
    for event in rows(timeline, "events"):
        held.setdefault(event.get("device", event.get("stage")), set()).add(event.get("stage"))
    return any(len(stages) > 1 for stages in held.values())


def _version_colour(version: int) -> str:
    return style.LIGHT if version < 0 else _VERSIONS[version % len(_VERSIONS)]


def _draw_strip(axes: Axes, events: list[Event], devices: int, begin: float, span: float, width_points: float) -> None:
    boxes: dict[str, list[Rectangle]] = {"pass": [], "weight": []}
    faces: dict[str, list[Any]] = {"pass": [], "weight": []}
    steps: list[tuple[float, float]] = []
    first = min(event.start for event in events)
    for event in events:
        row = devices - 1 - event.device
        if event.kind == "step" and (begin < event.end or begin == event.end == first) and event.end <= begin + span:
            steps.append((event.end, row - 0.43))
        if event.end < begin or event.start >= begin + span:
            continue
        if event.kind in ("step", "reduce"):
            if event.end > event.start:
                boxes["pass"].append(Rectangle((event.start, row - 0.4), event.end - event.start, 0.8))
                faces["pass"].append(style.tint(BLACK, 0.35 if event.kind == "step" else 0.7))
            continue
        length = event.end - event.start
        colour = _version_colour(event.version)
        layer = "weight" if event.kind == "weight" else "pass"
        boxes[layer].append(Rectangle((event.start, row - 0.4), length, 0.8))
        faces[layer].append(style.tint(colour, {"forward": 0.62, "weight": 0.3}.get(event.kind, 0.0)))
        # A box that a strip cuts is labelled in what is left of it, if there is room.
        left, right = max(event.start, begin), min(event.end, begin + span)
        label = event.label
        longest = max(map(len, label.split("\n")))
        size = min(7.0 if "\n" not in label else 5.5, 0.9 * width_points * (right - left) / span / (0.62 * longest))
        if label and size >= 4.0:
            dark = event.kind != "forward" and colour in (style.BLUE, style.RED)
            axes.text(
                (left + right) / 2,
                row,
                label,
                linespacing=0.95,
                ha="center",
                va="center_baseline",
                fontsize=size,
                color="white" if dark else BLACK,
                clip_on=True,
            ).set_in_layout(False)
    for layer, hatch in (("pass", ""), ("weight", "////")):
        if boxes[layer]:
            patches = PatchCollection(boxes[layer], facecolors=faces[layer], edgecolors="white", linewidths=0.5)
            if hatch:
                patches.set_hatch(hatch)
            axes.add_collection(patches)
    if steps:  # the layout takes an empty line that is not clipped for a marker at the figure's corner
        axes.plot(
            *zip(*steps, strict=True),
            marker="^",
            markersize=4,
            color=BLACK,
            zorder=5,
            clip_on=False,
            markeredgewidth=0,
            linestyle="none",
        )
    axes.set_xlim(begin, begin + span)
    axes.set_ylim(-0.62, devices - 0.4)
    axes.set_yticks(range(devices), [str(devices - 1 - row) for row in range(devices)])
    axes.set_ylabel("device")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=span >= 8))
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)


def _versions_legend(events: list[Event]) -> list[Patch | Line2D]:
    seen = sorted({e.version for e in events if e.kind in ("forward", "backward")})
    known = [v for v in seen if v >= 0]
    handles: list[Patch | Line2D] = []
    if known and known[-1] < len(_VERSIONS):
        handles += [Patch(color=_version_colour(v), label=f"version {v}") for v in known]
    else:
        for i, colour in enumerate(_VERSIONS[: len(known)]):
            handles.append(Patch(color=colour, label=f"{i}, {i + len(_VERSIONS)}, …"))
    if seen and seen[0] < 0:
        handles.append(Patch(color=style.LIGHT, label="version not recorded"))
    handles += [
        Patch(color=style.tint("#555555", 0.62), label="forward (pale)"),
        Patch(color="#555555", label="backward"),
    ]
    if any(e.kind == "weight" for e in events):
        handles.append(
            Patch(facecolor=style.tint("#555555", 0.3), edgecolor="white", hatch="////", label="weight gradient")
        )
    handles += [
        Line2D([], [], marker="^", color=BLACK, linestyle="none", markersize=4, label="optimizer step"),
    ]
    return handles


def draw_one(timeline: Row, name: str) -> Drawing | None:
    """The figure of one timeline; None if it has no event that can be drawn."""
    events, lost = events_of(timeline)
    if not events:
        return None
    schedule, unit = text(timeline, "name", "?"), text(timeline, "unit", "slot")
    source = text(timeline, "source", "clock")
    stages = whole(timeline, "stages", 1)
    devices = max(whole(timeline, "devices", stages), 1 + max(e.device for e in events))
    begin, total = events[0].start, max(e.end for e in events)
    if unit == "s" and total - begin < 1.0:
        events = [replace(e, start=1000 * e.start, end=1000 * e.end) for e in events]
        begin, total, unit = 1000 * begin, 1000 * total, "ms"
    lengths = [e.end - e.start for e in events if e.kind not in ("step", "reduce") and e.end > e.start]
    slot = float(np.median(lengths)) if lengths else max(total - begin, 1.0) / SLOTS_PER_STRIP
    slots = max(1.0, (total - begin) / slot)
    several = _devices_hold_several(timeline)
    wide = SLOTS_PER_STRIP_OF_SEVERAL if several else SLOTS_PER_STRIP
    strips = min(STRIPS, math.ceil(slots / wide - 1e-9))
    span = slot * max(8.0, min(float(wide), math.ceil(slots / strips - 1e-9)))
    height = (0.3 if several else 0.21) * devices + 0.42
    figure = style.new_figure(style.WIDTH, strips * height + 1.0)
    grid = figure.subplots(strips, 1, squeeze=False)
    for strip, axes in enumerate(grid[:, 0]):
        _draw_strip(axes, events, devices, begin + strip * span, span, 72 * (style.WIDTH - 0.6))
    grid[-1, 0].set_xlabel(style.label(f"time ({'slots' if unit == 'slot' else unit})"))
    where = "run on real processes" if source == "trace" else text(timeline, "durations", "F = 1, B = 2")
    each_step = max(1, whole(timeline, "microbatches", 1))
    load = f"{each_step} microbatch{'es' if each_step != 1 else ''} a step"
    title = f"{schedule}, {stages} stage{'s' if stages != 1 else ''}, {load} ({where})"
    grid[0, 0].set_title(style.label(title, 110))
    handles = _versions_legend(events)
    figure.legend(
        handles=handles,
        loc="outside lower left",
        ncols=6 if len(handles) > 8 else len(handles),
        handlelength=1.0,
        columnspacing=1.2,
        handletextpad=0.5,
        fontsize=7,
    )
    lines = [
        (
            schedule,
            stages,
            timeline.get("microbatches"),
            source,
            text(timeline, "unit", "slot"),
            text(e, "kind"),
            e.get("stage"),
            e.get("microbatch"),
            e.get("step"),
            e.get("version"),
            number(e.get("start")),
            number(e.get("end")),
            e.get("pipeline"),
            e.get("device"),
        )
        for e in rows(timeline, "events")
    ]
    notes: tuple[str, ...] = ()
    if slots > strips * wide + 1e-9:
        notes += (f"Only the first {strips * wide} slots are drawn; the CSV has all events.",)
    if max((e.version for e in events), default=0) >= len(_VERSIONS):
        notes += (f"Colours repeat every {len(_VERSIONS)} versions.",)
    notes += style.counted(lost, "event without times is not drawn.", "events without times are not drawn.")
    caption = CAPTION + (SPLIT if any(e.kind == "weight" for e in events) else "")
    if several:
        caption += SHARED
    return Drawing(name, f"Timeline of {title}", caption, figure, HEADER, lines, notes)


def draw(results: Results, largest_number: int = LARGEST_NUMBER) -> list[Drawing]:
    """One figure per timeline, at most `largest_number`; an empty list if there are none."""
    drawings: list[Drawing] = []
    names: set[str] = set()
    for timeline in rows(results.section("delays"), "timelines")[:largest_number]:
        plain = re.sub(r"[^a-z0-9]+", "-", text(timeline, "name", "schedule").lower()).strip("-") or "schedule"
        stem = f"timeline_{plain}_s{whole(timeline, 'stages', 1)}_m{whole(timeline, 'microbatches', 1)}"
        stem += "_trace" if text(timeline, "source") == "trace" else ""
        name, copy = stem, 2
        while name in names:
            name, copy = f"{stem}_{copy}", copy + 1
        drawing = draw_one(timeline, name)
        if drawing is not None:
            names.add(name)
            drawings.append(drawing)
    return drawings
