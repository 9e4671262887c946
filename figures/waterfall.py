"""Figure: the waterfall of error budgets, from what was measured to the bound, level by level."""

from __future__ import annotations

import math

from matplotlib.axes import Axes

from figures import style
from figures.results import Results, Row, child, number, rows, text
from figures.style import BLACK, BLUE, GREY, LIGHT, Drawing
from figures.text import plain_number

NAME = "waterfall"
TITLE = "Where the bound loses: measured average to worst case"
CAPTION = (
    "Levels of one theorem's error budget on one run (ticks), each at least the one before where the step between them "
    "is pathwise. A bar goes from the level before to this one: it is what that step of the proof gives away, and the "
    "number behind it is their ratio. Dark: still measured on the run; light: a bound with constants."
)
HEADER = ("source", "run", "theorem", "kind", "level", "value", "over_the_level_before", "how")
_MOST = 12  # panels of one figure
_WIDE = 8  # levels that span more than this factor are drawn on a log axis
_MEASURED = 3  # levels that hold on the path itself


def budgets_of(results: Results, section: str) -> list[Row]:
    """The complete budgets in the file of a section: noise-free ones on least squares, the training run's."""
    if section == "training":
        found = [child(results.section(section), "budget")]
    else:
        found = [
            b
            for b in rows(child(results.section(section), "budgets"), "theorems")
            if number(b.get("sigma")) == 0
        ]
    return [b for b in found if rows(b, "waterfall")]


def levels(budget: Row) -> list[tuple[str, float, float, str]]:
    """Level, value, the factor over the last known level (NaN at the first and for unknown ones), and how."""
    out, before = [], math.nan
    for level in rows(budget, "waterfall"):
        value = number(level.get("value"))
        out.append((text(level, "level"), value, value / before if before > 0 else math.nan, text(level, "how")))
        before = value if math.isfinite(value) else before
    return out


def kind_of(budget: Row) -> str:
    """How far the budget is certified: by its edition in measured terms."""
    return text(child(child(budget, "editions"), "measured"), "kind", "report only")


def _draw_panel(axes: Axes, budget: Row, wrap: int) -> int:
    """Steps from level to level, first level on top; returns how many levels have no value."""
    found = levels(budget)
    known = [value for _, value, _, _ in found if math.isfinite(value) and value > 0]
    if not known:
        style.say_nothing_to_draw(axes, "no finite values to draw")
        return len(found)
    wide = max(known) > _WIDE * min(known)
    axes.set_xscale("log" if wide else "linear")
    low, high = (min(known) / 1.6, max(known) * (max(known) / min(known)) ** 0.5) if wide else (0.0, max(known) * 1.5)
    before = low if wide else 0.0
    for row, (_, value, factor, how) in enumerate(found):
        if not math.isfinite(value) or value <= 0:
            why = " not applicable: f is a part of the data" if how.startswith("unbiased") else " not known"
            axes.text(low + (high - low) * 0.002, row, why, va="center", fontsize=6, color=GREY)
            continue
        colour = BLUE if row < _MEASURED else style.tint(BLUE, 0.62)
        if row:  # what this step gives away: from the level before to this one
            axes.barh(row, value - before, left=before, height=0.66, color=colour, linewidth=0)
        axes.plot([value], [row], marker="|", markersize=7, markeredgewidth=1.6, color=colour if not row else BLACK)
        note = plain_number(value, 3) + (f"  ×{plain_number(factor, 3)}" if math.isfinite(factor) else "")
        axes.annotate(
            note, (max(value, before), row), xytext=(5, 0), textcoords="offset points", va="center", fontsize=6
        )
        before = value
    axes.set_xlim(low, high)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_yticks(range(len(found)), [style.label(name, 34) for name, _, _, _ in found], fontsize=6)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=LIGHT, linewidth=0.5)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=6)
    axes.set_title(style.wrapped(text(budget, "title", text(budget, "theorem")), wrap), fontsize=6.6)
    return len(found) - len(known)


def draw_budgets(budgets: list[Row], source: str, name: str) -> list[Drawing]:
    """One figure of budgets with a waterfall; an empty list if there is none."""
    budgets = [b for b in budgets if rows(b, "waterfall")]
    shown = budgets[:_MOST]
    if not shown:
        return []
    columns = min(2, len(shown))
    lines = math.ceil(len(shown) / columns)
    figure = style.new_figure(style.WIDTH, 1.42 * lines + 0.1)
    grid = figure.subplots(lines, columns, squeeze=False)
    lost = 0
    for i, axes in enumerate(grid.flat):
        if i >= len(shown):
            axes.set_axis_off()
            continue
        lost += _draw_panel(axes, shown[i], 76 // columns)
    table = [
        (source, text(b, "run", text(b, "name")), text(b, "theorem"), kind_of(b), *level)
        for b in budgets
        for level in levels(b)
    ]
    notes = style.counted(lost, "level has no value.", "levels have no value.")
    notes += style.counted(len(budgets) - len(shown), "budget is in the table only.", "budgets are in the table only.")
    return [Drawing(name, TITLE, CAPTION, figure, HEADER, table, notes)]


def draw_empirics(results: Results) -> list[Drawing]:
    """The budgets of least squares without noise; an empty list if there are none."""
    return draw_budgets(budgets_of(results, "empirics"), "least squares", NAME)


def draw_training(results: Results) -> list[Drawing]:
    """The budget of the training run; an empty list if there is none."""
    return draw_budgets(budgets_of(results, "training"), "training run", f"{NAME}_training")
