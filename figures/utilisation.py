"""Figures: how much of each certified inequality a run uses, summed up per run and step by step."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from figures import style
from figures.results import Results, Row, number, numbers, rows, text
from figures.style import BLACK, BLUE, RED, Drawing

NAME = "utilisation"
TITLE = "How tight each inequality is along the runs"
CAPTION = (
    "Utilisation is the left side of an inequality divided by its right side, both from the same step of a real run; "
    "it must not pass 1 (dashed). Bars run from the smallest to the largest step, the circle is the median. Left and "
    "right part because an inequality covers the worst step any problem could make; a value near 1 says that the "
    "inequality cannot be sharpened much, a small one that this run is far from its worst case."
)
STEPS_NAME = "utilisation_steps"
STEPS_TITLE = "Utilisation step by step"
STEPS_CAPTION = (
    "The same utilisations at every step, one line per run, coloured and dashed by delay. Left and right come closest "
    "where the iterate is thrown across the minimum and part where the step is small against the gradient."
)
HEADER = ("inequality", "title", "run", "tau", "correction", "min", "median", "max", "worst_step")
STEPS_HEADER = ("inequality", "run", "tau", "correction", "step", "utilisation")
_DASHES: tuple[object, ...] = ("-", (0, (5, 1.5)), (0, (2, 1.2)), (0, (6, 1, 1, 1)))

Entry = tuple[Row, Row]  # (run, inequality)


def entries(results: Results) -> dict[str, list[Entry]]:
    """Inequality name -> the runs that evaluate it, in the order of the file."""
    found: dict[str, list[Entry]] = {}
    for run in rows(results.section("certified"), "runs"):
        for inequality in rows(run, "inequalities"):
            found.setdefault(text(inequality, "name", "?"), []).append((run, inequality))
    return found


def _title(found: dict[str, list[Entry]], name: str) -> str:
    """The inequality's title; its name too where two inequalities share one title."""
    title = text(found[name][0][1], "title", name)
    twins = sum(text(pairs[0][1], "title", other) == title for other, pairs in found.items())
    return style.wrapped(title if twins == 1 else f"{title} ({name})", 19, 4)


def _draw_summary(axes: Axes, pairs: list[Entry]) -> int:
    lost, largest = 0, 1.0
    for row, (_, inequality) in enumerate(pairs):
        low, middle, high = (number(inequality.get(key)) for key in ("min", "median", "max"))
        if not math.isfinite(high):
            lost += 1
            axes.text(
                0.02,
                row,
                "not finite" if not math.isnan(high) else "no value",
                va="center",
                fontsize=6.5,
                color=RED,
            )
            continue
        colour = RED if high > 1 + 1e-9 else BLUE
        axes.plot(
            [low if math.isfinite(low) else high, high],
            [row, row],
            color=colour,
            linewidth=2.4,
            solid_capstyle="butt",
            alpha=0.55,
        )
        axes.plot([high], [row], marker="|", markersize=7, color=colour, markeredgewidth=1.6)
        if math.isfinite(middle):
            axes.plot([middle], [row], marker="o", markersize=3.8, color=colour, markerfacecolor="white")
        largest = max(largest, high)
    axes.axvline(1, color=BLACK, linestyle=(0, (4, 2)), linewidth=1)
    axes.set_xlim(
        min(0.0, *(number(i.get("min")) for _, i in pairs if math.isfinite(number(i.get("min")))), 0.0),
        largest * 1.07,
    )
    axes.set_ylim(len(pairs) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    return lost


def _summary(found: dict[str, list[Entry]]) -> Drawing:
    """Panels in blocks: the inequalities of one block were evaluated on the same runs and share their rows."""
    blocks: dict[tuple[str, ...], list[str]] = {}
    for name, pairs in found.items():
        blocks.setdefault(tuple(text(run, "name") for run, _ in pairs), []).append(name)
    strips = [(runs, names[i : i + 4]) for runs, names in blocks.items() for i in range(0, len(names), 4)]
    heights = [0.185 * len(runs) + 1.0 for runs, _ in strips]
    columns = max(len(names) for _, names in strips)
    figure = style.new_figure(style.WIDTH, sum(heights) + 0.25)
    grid = figure.subplots(len(strips), columns, squeeze=False, height_ratios=heights)
    lost = 0
    for line, (runs, names) in enumerate(strips):
        for column in range(columns):
            axes = grid[line, column]
            if column >= len(names):
                axes.set_axis_off()
                continue
            lost += _draw_summary(axes, found[names[column]])
            axes.set_title(_title(found, names[column]), fontsize=6.8, linespacing=1.05)
            axes.set_yticks(
                range(len(runs)), [style.label(run, 42) for run in runs] if column == 0 else [""] * len(runs)
            )
            if line == len(strips) - 1 or column >= len(strips[line + 1][1]):
                axes.set_xlabel("left / right")
    lines = [
        (
            name,
            text(i, "title"),
            text(run, "name"),
            run.get("tau"),
            text(run, "correction"),
            number(i.get("min")),
            number(i.get("median")),
            number(i.get("max")),
            i.get("worst_step"),
        )
        for name, pairs in found.items()
        for run, i in pairs
    ]
    notes = style.counted(
        lost, "inequality of a run has no finite value.", "inequalities of runs have no finite value."
    )
    return Drawing(NAME, TITLE, CAPTION, figure, HEADER, lines, notes)


def _steps(found: dict[str, list[Entry]]) -> Drawing | None:
    curves = {name: [(run, numbers(i.get("utilisation"))) for run, i in pairs] for name, pairs in found.items()}
    curves = {name: kept for name, all_ in curves.items() if (kept := [(r, u) for r, u in all_ if u.size > 1])}
    if not curves:
        return None
    columns = min(4, len(curves))
    lines_of_panels = math.ceil(len(curves) / columns)
    figure = style.new_figure(style.WIDTH, 1.8 * lines_of_panels + 0.5)
    grid = figure.subplots(lines_of_panels, columns, squeeze=False, sharey=True)
    taus = sorted({text(run, "tau", "?") for kept in curves.values() for run, _ in kept})
    lost = 0
    for i, axes in enumerate(grid.flat):
        if i >= len(curves):
            axes.set_axis_off()
            continue
        name = list(curves)[i]
        for run, values in curves[name]:
            look = taus.index(text(run, "tau", "?"))
            lost += int((~np.isfinite(values)).sum())
            values = np.where(np.isfinite(values), values, np.nan)
            axes.plot(
                np.arange(values.size),
                values,
                color=style.CYCLE[look % len(style.CYCLE)],
                linewidth=0.8,
                linestyle=_DASHES[look % len(_DASHES)],
                alpha=0.85,
            )  # type: ignore[arg-type]
        axes.axhline(1, color=BLACK, linestyle=(0, (4, 2)), linewidth=1)
        axes.set_title(_title(found, name), fontsize=6.8, linespacing=1.05)
        if i + columns >= len(curves):
            axes.set_xlabel("step")
        if i % columns == 0:
            axes.set_ylabel("left / right")
    handles = [
        Line2D(
            [],
            [],
            color=style.CYCLE[i % len(style.CYCLE)],
            linestyle=_DASHES[i % len(_DASHES)],  # type: ignore[arg-type]
            label=style.label(f"τ = {tau}"),
        )
        for i, tau in enumerate(taus)
    ]
    handles.append(Line2D([], [], color=BLACK, linestyle=(0, (4, 2)), linewidth=1, label="limit"))
    figure.legend(handles=handles, loc="outside upper left", ncols=len(handles))
    lines = [
        (name, text(run, "name"), run.get("tau"), text(run, "correction"), step, value)
        for name, kept in curves.items()
        for run, values in kept
        for step, value in enumerate(values)
    ]
    notes = style.counted(
        lost, "step without a finite value is not drawn.", "steps without a finite value are not drawn."
    )
    return Drawing(STEPS_NAME, STEPS_TITLE, STEPS_CAPTION, figure, STEPS_HEADER, lines, notes)


def draw(results: Results) -> list[Drawing]:
    """Both figures; an empty list if no inequality is in the files."""
    found = entries(results)
    if not found:
        return []
    steps = _steps(found)
    return [_summary(found)] + ([steps] if steps is not None else [])
