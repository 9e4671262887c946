"""Figure: training loss of every arm, and its distance from the synchronous arm of the same seed."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from figures import style
from figures.results import Results, Row, number, numbers, rows, text
from figures.style import BLACK, BLUE, GREEN, PINK, RED, Drawing

NAME = "loss_curves"
TITLE = "Training loss of every arm"
CAPTION = (
    "Top: training loss per step; thin lines are seeds, thick lines their mean over the seeds that ran to the end. "
    "Bottom: loss minus that of the synchronous run with the same seed, smoothed by a running mean; both runs see "
    "the same batches, so most of the noise cancels. The arms part because the delayed ones use a gradient taken at "
    "older weights."
)
HEADER = ("optimizer", "arm", "schedule", "correction", "seed", "state", "step", "loss")
_DASHES: tuple[object, ...] = ("-", "-", (0, (5, 1.5)), (0, (2, 1.5)), (0, (6, 1, 1, 1)))
_COLOURS = (BLACK, RED, BLUE, GREEN, PINK)


def arm_name(arm: Row) -> str:
    """Schedule and correction in words."""
    correction = text(arm, "correction", "none")
    return text(arm, "schedule", "?") + ("" if correction == "none" else f" + {correction}")


def _is_reference(arm: Row) -> bool:
    return text(arm, "correction", "none") == "none" and text(arm, "schedule") in (
        "1f1b",
        "sync",
        "synchronous",
        "gpipe",
    )


def _ends_early(arm: Row, loss: np.ndarray) -> bool:
    return text(arm, "state") != "complete" or not loss.size or not bool(np.isfinite(loss).all())


def _running_mean(y: np.ndarray, width: int) -> np.ndarray:
    return np.convolve(y, np.full(width, 1.0 / width), mode="valid") if y.size >= width else np.empty(0)


def _mean(curves: list[np.ndarray]) -> np.ndarray:
    size = min((c.size for c in curves), default=0)
    return np.mean([c[:size] for c in curves], axis=0) if size else np.empty(0)


def _draw_optimizer(top: Axes, bottom: Axes, arms: list[Row], names: list[str]) -> int:
    """Both panels of one optimizer; returns the number of arms that did not run to the end."""
    early = 0
    reference = {arm.get("seed"): numbers(arm.get("loss")) for arm in arms if _is_reference(arm)}
    for name in names:
        look = names.index(name) % len(_COLOURS)
        colour, dashes = _COLOURS[look], _DASHES[look]
        complete: list[np.ndarray] = []
        differences: list[np.ndarray] = []
        for arm in arms:
            if arm_name(arm) != name:
                continue
            loss = numbers(arm.get("loss"))
            steps = numbers(arm.get("steps"))
            steps = steps if steps.size == loss.size else np.arange(loss.size, dtype=np.float64)
            if _ends_early(arm, loss):
                early += 1
                good = np.flatnonzero(np.isfinite(loss))
                if good.size:
                    top.plot(steps[good], loss[good], color=colour, alpha=0.5, linewidth=0.7)
                    top.plot([steps[good[-1]]], [loss[good[-1]]], marker="x", color=colour, markersize=6, zorder=6)
                continue
            complete.append(loss)
            top.plot(steps, loss, color=colour, alpha=0.25, linewidth=0.6)
            base = reference.get(arm.get("seed"))
            if not _is_reference(arm) and base is not None and base.size == loss.size and np.isfinite(base).all():
                width = max(1, loss.size // 10)
                smooth = _running_mean(loss - base, width)
                differences.append(smooth)
                bottom.plot(steps[width - 1 :], smooth, color=colour, alpha=0.3, linewidth=0.6)
        mean, difference = _mean(complete), _mean(differences)
        if mean.size:
            top.plot(np.arange(mean.size), mean, color=colour, linestyle=dashes, linewidth=1.5)
        if difference.size:
            bottom.plot(
                np.arange(difference.size) + mean.size - difference.size,
                difference,
                color=colour,
                linestyle=dashes,
                linewidth=1.5,
            )
    bottom.axhline(0, color=BLACK, linewidth=0.8)
    return early


def draw(results: Results) -> list[Drawing]:
    """The figure; an empty list if no arm has a loss curve."""
    training = results.section("training")
    arms = [arm for arm in rows(training, "arms") if numbers(arm.get("loss")).size]
    if not arms:
        return []
    unit = text(training, "loss_unit", "nats per token")
    optimizers = list(dict.fromkeys(text(arm, "optimizer", "?") for arm in arms))
    names = list(dict.fromkeys(arm_name(arm) for arm in sorted(arms, key=lambda arm: not _is_reference(arm))))
    figure = style.new_figure(max(style.WIDTH, 2.4 * len(optimizers)), 4.1)
    grid = figure.subplots(2, len(optimizers), squeeze=False, height_ratios=[1.15, 1.0], sharex="col")
    early = 0
    for column, optimizer in enumerate(optimizers):
        top, bottom = grid[0, column], grid[1, column]
        mine = [arm for arm in arms if text(arm, "optimizer", "?") == optimizer]
        early += _draw_optimizer(top, bottom, mine, names)
        top.set_title(style.label(optimizer, 30))
        bottom.set_xlabel("optimizer step")
        if not bottom.has_data() or len(bottom.lines) < 2:
            style.say_nothing_to_draw(bottom, "no pair of complete runs")
    grid[0, 0].set_ylabel(style.label(f"loss ({unit})"))
    grid[1, 0].set_ylabel(style.label(f"difference ({unit})"))
    handles = [
        Line2D(
            [],
            [],
            color=_COLOURS[i % len(_COLOURS)],
            linestyle=_DASHES[i % len(_DASHES)],  # type: ignore[arg-type]
            label=style.label(name) or "?",
        )
        for i, name in enumerate(names)
    ]
    if early:
        handles.append(Line2D([], [], color=BLACK, marker="x", linestyle="none", label="ended early"))
    figure.legend(handles=handles, loc="outside upper left", ncols=4)
    lines = [
        (
            text(arm, "optimizer", "?"),
            arm_name(arm),
            text(arm, "schedule"),
            text(arm, "correction"),
            arm.get("seed"),
            text(arm, "state"),
            step,
            loss,
        )
        for arm in arms
        for step, loss in zip(arm.get("steps") or range(10**9), numbers(arm.get("loss")), strict=False)
    ]
    missing = [arm for arm in rows(training, "arms") if not numbers(arm.get("loss")).size]
    notes = style.counted(
        early, "arm ended early (cross) and is in no mean.", "arms ended early (crosses) and are in no mean."
    )
    notes += style.counted(len(missing), "arm has no curve.", "arms have no curve.")
    if any(not math.isfinite(number(arm.get("final_loss"))) for arm in arms):
        notes += ("Losses that are not finite are not drawn.",)
    return [Drawing(NAME, TITLE, CAPTION, figure, HEADER, lines, notes)]
