"""Figure: the price of the delay and what error feedback wins back, per optimizer, over paired seeds."""

from __future__ import annotations

import math

from matplotlib.lines import Line2D

from figures import style
from figures.results import Results, Row, child, number, rows, text
from figures.style import BLUE, GREY, RED, Drawing
from figures.text import plain_interval

NAME = "gap"
TITLE = "Loss gap of the delayed run, without and with error feedback"
CAPTION = (
    "Left: final loss minus the final loss of the synchronous run with the same initial weights and the same data "
    "order; small points joined by a line are one seed, large markers the mean over seeds with its interval. "
    "Right: the share of the gap that error feedback recovers, with the interval of the ratio; it is undefined where "
    "the gap's own interval covers zero. The two gaps part because the correction takes the gradient close to the "
    "point where it is used; what remains is the part of the delay that the last update does not predict."
)
HEADER = ("optimizer", "quantity", "seed", "value", "low", "high", "level", "method", "n", "defined", "note")
_QUANTITIES = (
    ("gap", "delayed", RED, "o", -0.2),
    ("gap_corrected", "delayed + error feedback", BLUE, "s", 0.2),
)


def _line(optimizer: str, quantity: str, interval: Row) -> tuple[object, ...]:
    return (
        optimizer,
        quantity,
        None,
        number(interval.get("value")),
        number(interval.get("low")),
        number(interval.get("high")),
        interval.get("level"),
        text(interval, "method"),
        interval.get("n"),
        interval.get("defined"),
        text(interval, "note"),
    )


def draw(results: Results) -> list[Drawing]:
    """The figure; an empty list if no gap is in the files."""
    training = results.section("training")
    gaps = rows(training, "gaps")
    if not gaps:
        return []
    unit = text(training, "loss_unit", "nats per byte")
    figure = style.new_figure(style.WIDTH, max(2.5, 0.62 * len(gaps) + 1.35))
    left, right = figure.subplots(1, 2, width_ratios=[1.75, 1.0], sharey=True)
    lines: list[tuple[object, ...]] = []
    lost = 0
    for row, gap in enumerate(gaps):
        optimizer = text(gap, "optimizer", "?")
        for pair in rows(gap, "pairs"):
            values = [number(pair.get("gap")), number(pair.get("gap_corrected"))]
            lines += [
                (optimizer, key, pair.get("seed"), value, None, None, None, "one seed", 1, None, "")
                for (key, *_), value in zip(_QUANTITIES, values, strict=True)
            ]
            places = [row + 0.35 * shift for *_, shift in _QUANTITIES]
            if all(math.isfinite(v) for v in values):
                left.plot(values, places, color=style.LIGHT, linewidth=0.8, zorder=1)
            for value, place, (_, _, colour, marker, _) in zip(values, places, _QUANTITIES, strict=True):
                if math.isfinite(value):
                    left.plot(
                        [value],
                        [place],
                        marker=marker,
                        markersize=3,
                        color=style.tint(colour, 0.45),
                        zorder=2,
                    )
                else:
                    lost += 1
        for key, _, colour, marker, shift in _QUANTITIES:
            interval = child(gap, key)
            value, low, high = (number(interval.get(end)) for end in ("value", "low", "high"))
            lines.append(_line(optimizer, key, interval))
            if math.isfinite(low) and math.isfinite(high):
                left.plot(
                    [low, high],
                    [row + shift] * 2,
                    color=colour,
                    linewidth=2.2,
                    solid_capstyle="butt",
                    zorder=3,
                )
            if math.isfinite(value):
                left.plot(
                    [value],
                    [row + shift],
                    marker=marker,
                    markersize=7,
                    color=colour,
                    zorder=4,
                    markeredgecolor="white",
                )
                left.annotate(
                    plain_interval(value, low, high),
                    (value, row + shift),
                    ha="center",
                    fontsize=6.5,
                    xytext=(0, 7 if shift < 0 else -7),
                    textcoords="offset points",
                    color=colour,
                    va="bottom" if shift < 0 else "top",
                )
            else:
                left.annotate(
                    "no value",
                    (0.02, row + shift),
                    xycoords=("axes fraction", "data"),
                    color=colour,
                    fontsize=7,
                    va="center",
                )
        share = child(gap, "share_recovered")
        lines.append(_line(optimizer, "share_recovered", share))
        value, low, high = (number(share.get(end)) for end in ("value", "low", "high"))
        if share.get("defined") is False or not math.isfinite(value):
            right.text(
                0.5,
                row,
                "undefined",
                ha="center",
                va="center",
                color=GREY,
                style="italic",
                fontsize=7.5,
                transform=right.get_yaxis_transform(),
            )
        else:
            if math.isfinite(low) and math.isfinite(high):
                right.plot([100 * low, 100 * high], [row, row], color=GREY, linewidth=2.2, solid_capstyle="butt")
            right.plot([100 * value], [row], marker="D", color=style.BLACK, markersize=5.5, markeredgecolor="white")
            right.annotate(
                plain_interval(100 * value, 100 * low, 100 * high) + " %",
                (100 * value, row),
                xytext=(0, 7),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=6.5,
            )
    left.set_yticks(range(len(gaps)), [style.label(text(gap, "optimizer", "?"), 24) for gap in gaps])
    left.set_ylim(len(gaps) - 0.45, -0.55)
    left.axvline(0, color=GREY, linewidth=0.9)
    left.set_xlabel(style.label(f"final loss − synchronous final loss ({unit})", 70))
    left.set_title("Gap")
    left.margins(x=0.16)
    right.set_title("Share recovered")
    right.set_xlabel("share of the gap recovered (%)")
    for place in (0, 100):
        right.axvline(place, color=GREY, linewidth=0.9, linestyle=(0, (1, 2)))
    right.margins(x=0.25)
    for axes in (left, right):
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    handles = [
        Line2D(
            [],
            [],
            marker=marker,
            color=colour,
            linewidth=2.2,
            markersize=6,
            markeredgecolor="white",
            label=name,
        )
        for _, name, colour, marker, _ in _QUANTITIES
    ]
    handles.append(Line2D([], [], marker="o", color=style.LIGHT, markerfacecolor=GREY, markersize=3, label="one seed"))
    figure.legend(handles=handles, loc="outside upper left", ncols=3)
    notes = style.counted(
        lost,
        "value of a seed is missing (diverged or not run) and not drawn.",
        "values of seeds are missing (diverged or not run) and not drawn.",
    )
    return [Drawing(NAME, TITLE, CAPTION, figure, HEADER, lines, notes)]
