"""Figures: the exact theory on quadratics against the real optimizer, and how plainly a wrong delay would show.

`draw` gives the loss curves (twelve settings a page) and one summary of all settings in standard errors.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from figures import style
from figures.results import Results, Row, child, number, numbers, rows, text
from figures.style import BLACK, BLUE, GREY, RED, Drawing
from figures.text import plain_number

NAME = "quadratic_curves"
TITLE = "Expected loss on quadratics: predicted and measured"
CAPTION = (
    "Line: the expected loss from the exact recursion of mean and covariance. Points: the average over independent "
    "runs of the real optimizer code, with two standard errors. Dashes: the same theory with the delay off by one. "
    "Line and points part only by sampling error; the dashed curve shows what a wrong delay would look like."
)
POWER_NAME = "quadratic_power"
POWER_TITLE = "Right delay and wrong delay, in standard errors"
POWER_CAPTION = (
    "For each setting, the largest distance between measured and predicted loss over all steps, in standard errors: "
    "with the right delay (circles) and with the delay off by one (triangles). The circles stay within sampling "
    "error; triangles right of the dashed line, at 20, mean that the comparison would have seen a wrong delay."
)
HEADER = (
    "setting",
    "tau",
    "beta",
    "eta",
    "correction",
    "form",
    "step",
    "predicted",
    "measured",
    "standard_error",
    "off_by_one_tau",
    "off_by_one_predicted",
)
POWER_HEADER = ("setting", "tau", "correction", "largest_deviation", "off_by_one_tau", "off_by_one_deviation")
PER_PAGE = 12
_POINTS = 13


def setting_label(setting: Row) -> str:
    """τ, β, η and the correction of a setting in one short line."""
    letters = {"τ": "tau", "β": "beta", "η": "eta"}
    parts = [f"{letter}={plain_number(number(setting.get(key)), 3)}" for letter, key in letters.items()]
    correction = text(setting, "correction", "none")
    if correction != "none":
        parts.append("EF" if correction == "error-feedback" else correction)
    return ", ".join(parts)


def _curves(setting: Row) -> dict[str, np.ndarray]:
    """steps, predicted, measured, standard_error, off: equally long vectors, padded with NaN."""
    named = {key: numbers(setting.get(key)) for key in ("steps", "predicted", "measured", "standard_error")}
    named["off"] = numbers(child(setting, "off_by_one").get("predicted"))
    size = max((v.size for v in named.values()), default=0)
    if not named["steps"].size:
        named["steps"] = np.arange(size, dtype=np.float64)
    return {key: np.pad(v, (0, size - v.size), constant_values=np.nan) for key, v in named.items()}


def _draw_setting(axes: Axes, setting: Row) -> tuple[int, int]:
    curves = _curves(setting)
    steps = curves["steps"]
    title = f"{style.wrapped(text(setting, 'name'), 34)}\n{style.label(setting_label(setting))}"
    axes.set_title(title, fontweight="normal", fontsize=7.2, linespacing=1.15)
    predicted, lost = style.positive(curves["predicted"])
    off, off_lost = style.positive(curves["off"])
    measured, _ = style.positive(curves["measured"])
    if not (np.isfinite(predicted).any() or np.isfinite(measured).any()):
        style.say_nothing_to_draw(axes, "no positive finite values")
        return lost, 0
    axes.set_yscale("log")
    if not child(setting, "off_by_one"):
        off_lost = 0
    axes.plot(steps, off, color=RED, linestyle=(0, (4, 2)), linewidth=1.1)
    axes.plot(steps, predicted, color=BLUE, linewidth=1.5)
    pick = np.unique(np.linspace(0, steps.size - 1, min(_POINTS, steps.size)).round().astype(int))
    dropped, cut = style.log_errorbar(
        axes,
        steps[pick],
        curves["measured"][pick],
        2 * curves["standard_error"][pick],
        linestyle="none",
        marker="o",
        markersize=3.2,
        color=BLACK,
        elinewidth=0.9,
        markerfacecolor="white",
        markeredgewidth=0.8,
        zorder=4,
    )
    values = [float(v) for v in np.concatenate([predicted, measured, off]) if np.isfinite(v)]
    if min(values) == max(values):
        axes.set_ylim(values[0] / 3, values[0] * 3)
    return lost + off_lost + dropped, cut


def _page(settings: list[Row], name: str, part: str) -> Drawing:
    columns = min(3, len(settings))
    lines_of_panels = math.ceil(len(settings) / columns)
    figure = style.new_figure(style.WIDTH, 1.72 * lines_of_panels + 0.62)
    grid = figure.subplots(lines_of_panels, columns, squeeze=False)
    lost = cut = 0
    for i, axes in enumerate(grid.flat):
        if i >= len(settings):
            axes.set_axis_off()
            continue
        more_lost, more_cut = _draw_setting(axes, settings[i])
        lost, cut = lost + more_lost, cut + more_cut
        if i + columns >= len(settings):
            axes.set_xlabel("step")
        if i % columns == 0:
            axes.set_ylabel("expected loss\n(units of f)")
    handles = [
        Line2D([], [], color=BLUE, label="predicted"),
        Line2D(
            [],
            [],
            color=BLACK,
            marker="o",
            markerfacecolor="white",
            linestyle="none",
            label="measured ± 2 SE",
        ),
        Line2D([], [], color=RED, linestyle=(0, (4, 2)), label="predicted with the delay off by one"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=3)
    lines = []
    for setting in settings:
        curves, off = _curves(setting), child(setting, "off_by_one")
        lines += [
            (
                text(setting, "name"),
                setting.get("tau"),
                setting.get("beta"),
                setting.get("eta"),
                text(setting, "correction"),
                text(setting, "form"),
                step,
                *values[:3],
                off.get("tau"),
                values[3],
            )
            for step, *values in zip(
                curves["steps"],
                curves["predicted"],
                curves["measured"],
                curves["standard_error"],
                curves["off"],
                strict=True,
            )
        ]
    notes = style.counted(
        lost,
        "point at or below zero, or not finite, is not drawn on the log axis.",
        "points at or below zero, or not finite, are not drawn on the log axis.",
    )
    notes += style.counted(
        cut, "error bar reaches zero and is cut (triangle).", "error bars reach zero and are cut (triangles)."
    )
    return Drawing(name, TITLE + part, CAPTION, figure, HEADER, lines, notes)


def largest_deviation(setting: Row) -> float:
    """Largest |measured - predicted| over the steps of a setting, in standard errors; NaN if there is none."""
    curves = _curves(setting)
    good = np.isfinite(curves["standard_error"]) & (curves["standard_error"] > 0)
    distance = np.abs(curves["measured"] - curves["predicted"])[good] / curves["standard_error"][good]
    return style.finite_max(distance.tolist())


def _power(settings: list[Row]) -> Drawing:
    figure = style.new_figure(style.WIDTH, 0.215 * len(settings) + 1.05)
    axes = figure.subplots()
    lines = []
    lost = 0
    for row, setting in enumerate(settings):
        off = child(setting, "off_by_one")
        right, wrong = largest_deviation(setting), number(off.get("max_standard_errors"))
        lines.append(
            (
                text(setting, "name"),
                setting.get("tau"),
                text(setting, "correction"),
                right,
                off.get("tau"),
                wrong,
            )
        )
        drawn = [v for v in (right, wrong) if math.isfinite(v) and v > 0]
        lost += 2 - len(drawn)
        if len(drawn) == 2:
            axes.plot(drawn, [row, row], color=style.LIGHT, linewidth=1.2, zorder=1)
        if right in drawn:
            axes.plot([right], [row], marker="o", color=BLUE, linestyle="none")
        if wrong in drawn:
            axes.plot([wrong], [row], marker="^", color=RED, linestyle="none")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain_number(float(x), 3)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.axvline(20, color=GREY, linestyle=(0, (4, 2)), linewidth=1)
    names = [text(setting, "name") or setting_label(setting) for setting in settings]
    axes.set_yticks(range(len(settings)), [style.label(name, 44) for name in names])
    axes.set_ylim(len(settings) - 0.5, -0.5)
    axes.set_xlabel("largest |measured − predicted| over all steps (standard errors)")
    axes.grid(axis="y", visible=False)
    handles = [
        Line2D([], [], color=BLUE, marker="o", linestyle="none", label="right delay"),
        Line2D([], [], color=RED, marker="^", linestyle="none", label="delay off by one"),
        Line2D([], [], color=GREY, linestyle=(0, (4, 2)), label="20 standard errors"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=3)
    notes = style.counted(
        lost,
        "value is missing, zero or not finite and not drawn.",
        "values are missing, zero or not finite and not drawn.",
    )
    return Drawing(POWER_NAME, POWER_TITLE, POWER_CAPTION, figure, POWER_HEADER, lines, notes)


def draw(results: Results) -> list[Drawing]:
    """The pages of curves and the summary; an empty list if there are no settings."""
    settings = rows(results.section("quadratic"), "settings")
    if not settings:
        return []
    count = math.ceil(len(settings) / PER_PAGE)
    pages = [settings[i * PER_PAGE : (i + 1) * PER_PAGE] for i in range(count)]
    drawings = [
        _page(page, NAME if count == 1 else f"{NAME}_{i + 1}", "" if count == 1 else f" ({i + 1} of {count})")
        for i, page in enumerate(pages)
    ]
    return [*drawings, _power(settings)]
