"""Figures: a bound, taken apart into its terms, against what was measured.

One figure each for the certified runs, the enumerated expectations and the training run; one panel per theorem.
Each bar is the sum of the bound's terms; the diamond is the measured average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from figures import style
from figures.results import Results, child, number, rows, text
from figures.style import BLACK, GREY, RED, Drawing
from figures.text import plain_interval, plain_number

NAME = "bound_terms"
TITLE = "Bound against measurement, term by term"
CAPTION = (
    "Stacked bars: the terms whose sum is the bound. Diamond: the measured left-hand side (filled where the "
    "statement is certified, hollow where it is statistical or report only; a line is its interval). "
    "The two part because each term is a worst case over all problems with these constants: steps that do not all "
    "point the same way, and noise that averages out, leave the measurement below the sum."
)
HEADER = (
    "source",
    "run",
    "theorem",
    "kind",
    "term",
    "term_value",
    "bound",
    "measured",
    "measured_low",
    "measured_high",
)
_SHARE_BEYOND = 20.0  # bounds in one panel that differ by more than this factor are drawn as shares of the bound


@dataclass(frozen=True)
class Bar:
    """One bound with its terms and its measurement."""

    source: str
    run: str
    theorem: str
    metric: str
    kind: str
    terms: tuple[tuple[str, float], ...]
    bound: float
    measured: tuple[float, float, float]


def _terms(holder: object) -> tuple[tuple[str, float], ...]:
    return tuple((text(term, "name", "?"), number(term.get("value"))) for term in rows(holder, "terms"))


def certified_bars(results: Results) -> list[Bar]:
    """The main theorem of each certified run; a run without a theorem gives none."""
    found = []
    for run in rows(results.section("certified"), "runs"):
        theorem = child(run, "theorem")
        if theorem:
            title, metric = text(theorem, "title", text(theorem, "name")), text(theorem, "metric_latex")
            measured = (number(theorem.get("measured")), math.nan, math.nan)
            bound, kind = number(theorem.get("bound")), text(theorem, "kind", "report")
            found.append(
                Bar("certified runs", text(run, "name"), title, metric, kind, _terms(theorem), bound, measured)
            )
    return found


def enumeration_bars(results: Results) -> list[Bar]:
    """The theorems with noise whose expectation was computed over all paths."""
    found = []
    title = "Expectation over all noise paths, each theorem in its own metric"
    for case in rows(results.section("certified"), "enumeration"):
        run = ", ".join(part for part in (text(case, "name"), text(case, "setting")) if part)
        measured = (number(case.get("measured")), math.nan, math.nan)
        kind, bound = text(case, "kind", "certified"), number(case.get("bound"))
        found.append(Bar("all noise paths", run, title, "", kind, _terms(case), bound, measured))
    return found


def training_bars(results: Results) -> list[Bar]:
    """The bound of the training run, with constants measured on it."""
    bound = child(results.section("training"), "bound")
    if not bound:
        return []
    interval = child(bound, "measured")
    low, value, high = (number(interval.get(key)) for key in ("low", "value", "high"))
    title, metric = text(bound, "title", text(bound, "theorem")), text(bound, "metric_latex")
    kind, total = text(bound, "kind", "report"), number(bound.get("value"))
    run = text(bound, "run", "training run")
    return [Bar("training run", run, title, metric, kind, _terms(bound), total, (value, low, high))]


def _draw_panel(axes: Axes, panel: list[Bar], names: list[str]) -> int:
    """One row per bar, first on top; returns the number of terms that could not be drawn."""
    sizes = [abs(bar.bound) for bar in panel if math.isfinite(bar.bound) and bar.bound != 0]
    as_share = bool(sizes) and max(sizes) > _SHARE_BEYOND * min(sizes)
    dropped, furthest = 0, 0.0
    for row, bar in enumerate(panel):
        scale = 1.0
        if as_share:
            scale = 1.0 / bar.bound if math.isfinite(bar.bound) and bar.bound > 0 else math.nan
        right = left = 0.0
        for name, value in bar.terms:
            width = value * scale
            if not math.isfinite(width):
                dropped += 1
                continue
            start = right if width >= 0 else left
            axes.barh(
                row,
                width,
                left=start,
                height=0.62,
                color=style.term_colour(name, names.index(name)),
                edgecolor="white",
                linewidth=0.5,
            )
            right, left = (right + width, left) if width >= 0 else (right, left + width)
        measured, low, high = (x * scale for x in bar.measured)
        exceeds = math.isfinite(measured) and math.isfinite(bar.bound) and bar.measured[0] > bar.bound
        colour = RED if exceeds else BLACK
        if math.isfinite(low) and math.isfinite(high):
            axes.plot([low, high], [row, row], color=colour, linewidth=1.6, solid_capstyle="butt")
        if math.isfinite(measured):
            face = colour if bar.kind == "certified" else "white"
            axes.plot(
                [measured],
                [row],
                marker="D",
                markersize=5,
                color=colour,
                markerfacecolor=face,
                markeredgecolor=colour if face == "white" else "white",
                markeredgewidth=0.9,
                zorder=5,
            )
        furthest = max(furthest, right, style.finite_max([measured, high], 0.0))
        low_text = plain_number(bar.measured[0], 3)
        if math.isfinite(bar.measured[1]):
            low_text = plain_interval(*bar.measured)
        note = f"{low_text} of {plain_number(bar.bound, 3)}" + ("  EXCEEDS" if exceeds else "")
        axes.annotate(
            note,
            (1.0, row),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            ha="left",
            va="center",
            textcoords="offset points",
            fontsize=7,
            color=RED if exceeds else BLACK,
        )
    axes.set_yticks(range(len(panel)), [style.label(bar.run, 42) for bar in panel])
    axes.set_ylim(len(panel) - 0.5, -0.5)
    axes.set_xlim(
        left=None if any(v < 0 for bar in panel for _, v in bar.terms) else 0.0,
        right=furthest * 1.04 if furthest > 0 else 1.0,
    )
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    metric = style.math_label(panel[0].metric, "average dual norm of the gradient")
    axes.set_xlabel(f"{metric}  (share of the bound)" if as_share else f"{metric}  (units of f per unit of x)")
    axes.set_title(style.wrapped(panel[0].theorem, 58), fontsize=8)
    if not any(math.isfinite(v) for bar in panel for _, v in (*bar.terms, ("measured", bar.measured[0]))):
        style.say_nothing_to_draw(axes, "no finite values to draw")
    return dropped


def draw_certified(results: Results) -> list[Drawing]:
    """The figures of the certified part: its runs, and the enumerated expectations; empty if there are none."""
    return _draw(certified_bars(results), NAME, TITLE) + _draw(
        enumeration_bars(results), f"{NAME}_enumeration", "Bound against exact expectation, term by term"
    )


def draw_training(results: Results) -> list[Drawing]:
    """The figure of the training run's bound; empty if there is none."""
    return _draw(training_bars(results), f"{NAME}_training", "Bound of the training run, term by term")


def _draw(found: list[Bar], stem: str, title: str) -> list[Drawing]:
    if not found:
        return []
    panels: dict[tuple[str, str], list[Bar]] = {}
    for bar in found:
        panels.setdefault((bar.source, bar.theorem), []).append(bar)
    names = list(dict.fromkeys(name for bar in found for name, _ in bar.terms))
    counts = [max(1.0, len(panel)) for panel in panels.values()]
    figure = style.new_figure(style.WIDTH, 0.25 * sum(counts) + 0.72 * len(counts) + 0.5)
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=counts)
    dropped = sum(_draw_panel(axes, panel, names) for axes, panel in zip(grid[:, 0], panels.values(), strict=True))
    handles: list[Patch | Line2D] = [
        Patch(color=style.term_colour(name, i), label=style.label(style.TERM_NAMES.get(name, name)) or "?")
        for i, name in enumerate(names)
    ]
    handles.append(Line2D([], [], marker="D", linestyle="none", color=BLACK, label="measured, certified"))
    handles.append(
        Line2D(
            [],
            [],
            marker="D",
            linestyle="none",
            color=BLACK,
            markerfacecolor="white",
            label="measured, statistical or report",
        )
    )
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=4,
        columnspacing=1.4,
        handlelength=1.2,
        labelcolor=BLACK,
    )
    for axes in grid[:, 0]:
        axes.spines["left"].set_color(GREY)
    lines = [
        (bar.source, bar.run, bar.theorem, bar.kind, name, value, bar.bound, *bar.measured)
        for bar in found
        for name, value in bar.terms
    ]
    notes = style.counted(dropped, "term is not finite and not drawn.", "terms are not finite and not drawn.")
    return [Drawing(stem, title, CAPTION, figure, HEADER, lines, notes)]
