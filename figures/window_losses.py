"""Figure: predicted losses of windows of steps against measured ones, in standard errors."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from figures import style
from figures.results import Results, child, number, rows, text, whole
from figures.style import BLUE, GREY, ORANGE, Drawing

NAME = "window_losses"
TITLE = "Predicted and measured losses of noisy quadratics"
CAPTION = (
    "Every setting of delay, momentum, step size and correction gives two points, the average loss of its first steps "
    "(circles) and of its last ones (squares). Left: measured against predicted. Right: their differences in predicted "
    "standard errors, sorted, against what a normal law would give (dashed). They part by sampling only; the first "
    "window's loss is not exactly normal."
)
HEADER = ("setting", "tau", "beta", "correction", "eta", "first", "last", "predicted", "measured", "error", "deviation")


def draw(results: Results) -> list[Drawing]:
    """The figure; an empty list if no pair is in the files."""
    windows = child(results.section("empirics"), "windows")
    found, lost = [], 0
    for pair in rows(windows, "rows"):
        predicted, measured, error = (number(pair.get(key)) for key in ("predicted", "measured", "error"))
        z = (measured - predicted) / error if error > 0 else math.nan
        if not (math.isfinite(z) and predicted > 0 and measured > 0):
            lost += 1
            continue
        found.append((pair, predicted, measured, error, z))
    if not found:
        return []
    early = min(whole(pair, "first") for pair, *_ in found)
    figure = style.new_figure(style.WIDTH, 2.7)
    left, right = figure.subplots(1, 2)
    for first, colour, marker in ((True, BLUE, "o"), (False, ORANGE, "s")):
        mine = [(p, m) for pair, p, m, _, _ in found if (whole(pair, "first") == early) is first]
        if mine:
            x, y = np.array(mine).T
            words = "first steps" if first else "last steps"
            left.plot(x, y, marker, markersize=3, color=colour, alpha=0.6, markeredgewidth=0, label=words)
    ends = [min(p for _, p, _, _, _ in found), max(p for _, p, _, _, _ in found)]
    left.plot(ends, ends, color=GREY, linewidth=0.8, linestyle=(0, (4, 2)))
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_xlabel("predicted loss")
    left.set_ylabel("measured loss")
    left.legend(loc="upper left")
    deviations = np.sort([row[-1] for row in found])
    quantiles = np.array([NormalDist().inv_cdf((i + 0.5) / deviations.size) for i in range(deviations.size)])
    right.plot(quantiles, deviations, "o", markersize=2.6, color=BLUE, markeredgewidth=0)
    right.plot(quantiles[[0, -1]], quantiles[[0, -1]], color=GREY, linewidth=0.8, linestyle=(0, (4, 2)))
    right.set_xlabel("normal quantile")
    right.set_ylabel("(measured - predicted) / standard error")
    lines = [
        (
            text(pair, "name"),
            pair.get("tau"),
            number(pair.get("beta")),
            text(pair, "correction"),
            number(pair.get("eta")),
            pair.get("first"),
            pair.get("last"),
            predicted,
            measured,
            error,
            deviation,
        )
        for pair, predicted, measured, error, deviation in found
    ]
    notes = style.counted(lost, "pair is not finite and not drawn.", "pairs are not finite and not drawn.")
    return [Drawing(NAME, TITLE, CAPTION, figure, HEADER, lines, notes)]
