"""Figure: the loss of every arm, and its distance from the synchronous arm of the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from figures import style
from figures.results import Results, Row, numbers, rows, text
from figures.style import BLACK, BLUE, GREEN, PINK, RED, Drawing

NAME = "loss_curves"
TITLE = "Loss of every arm"
CAPTION = (
    "Top: loss per step (training loss where it was recorded); thin lines are seeds, thick lines their mean over the "
    "seeds that ran to the end. Bottom: evaluated loss minus that of the synchronous run with the same seed; both "
    "start from the same weights and see the same batches, so most of the noise cancels. The arms part because the "
    "delayed ones use a gradient taken at older weights."
)
HEADER = ("optimizer", "arm", "schedule", "correction", "seed", "state", "curve", "step", "loss")
_DASHES: tuple[Any, ...] = ("-", "-", (0, (5, 1.5)), (0, (2, 1.5)), (0, (6, 1, 1, 1)))
_COLOURS = (BLACK, RED, BLUE, GREEN, PINK)
_SYNCHRONOUS = ("1f1b", "gpipe", "sync", "synchronous")

Curve = tuple[np.ndarray, np.ndarray]  # steps, losses


def arm_name(arm: Row) -> str:
    """Schedule and correction in words."""
    correction = text(arm, "correction", "none")
    return text(arm, "schedule", "?") + ("" if correction == "none" else f" + {correction}")


def _is_reference(arm: Row) -> bool:
    return text(arm, "correction", "none") == "none" and text(arm, "schedule") in _SYNCHRONOUS


def evaluated(arm: Row) -> Curve:
    """The evaluated loss of an arm; steps count from 0 if the file does not list one per loss."""
    loss, steps = numbers(arm.get("loss")), numbers(arm.get("steps"))
    fits = steps.size == loss.size and bool(np.isfinite(steps).all())
    return (steps if fits else np.arange(loss.size, dtype=np.float64)), loss


def trained(arm: Row) -> Curve:
    """The training loss per step; the evaluated loss where no training loss was recorded."""
    loss = numbers(arm.get("train_loss"))
    return (np.arange(loss.size, dtype=np.float64), loss) if loss.size else evaluated(arm)


def _ends_early(arm: Row) -> bool:
    losses = np.concatenate([evaluated(arm)[1], trained(arm)[1]])
    return text(arm, "state") != "complete" or not losses.size or not bool(np.isfinite(losses).all())


def _mean(curves: list[Curve]) -> Curve | None:
    """Pointwise mean of the curves that have the steps of the first one."""
    same = [losses for steps, losses in curves if np.array_equal(steps, curves[0][0])]
    return (curves[0][0], np.mean(same, axis=0)) if same else None


def _draw_optimizer(top: Axes, bottom: Axes, arms: list[Row], names: list[str]) -> int:
    """Both panels of one optimizer; returns the number of arms that did not run to the end."""
    early = 0
    reference = {str(arm.get("seed")): evaluated(arm) for arm in arms if _is_reference(arm) and not _ends_early(arm)}
    for name in names:
        look = names.index(name) % len(_COLOURS)
        colour, dashes = _COLOURS[look], _DASHES[look]
        curves: list[Curve] = []
        differences: list[Curve] = []
        for arm in (arm for arm in arms if arm_name(arm) == name):
            steps, losses = trained(arm)
            if _ends_early(arm):
                early += 1
                good = np.flatnonzero(np.isfinite(losses))
                if good.size:
                    top.plot(steps[good], losses[good], color=colour, alpha=0.5, linewidth=0.7)
                    top.plot([steps[good[-1]]], [losses[good[-1]]], marker="x", color=colour, markersize=6, zorder=6)
                continue
            curves.append((steps, losses))
            top.plot(steps, losses, color=colour, alpha=0.22, linewidth=0.6)
            at, mine = evaluated(arm)
            base = reference.get(str(arm.get("seed")))
            if not _is_reference(arm) and base is not None and np.array_equal(base[0], at):
                differences.append((at, mine - base[1]))
                bottom.plot(at, mine - base[1], color=colour, alpha=0.35, linewidth=0.7)
        for axes, mean in ((top, _mean(curves)), (bottom, _mean(differences))):
            if mean is not None:
                marker = "o" if axes is bottom and mean[0].size <= 30 else ""
                axes.plot(*mean, color=colour, linestyle=dashes, linewidth=1.6, marker=marker, markersize=3)
    bottom.axhline(0, color=BLACK, linewidth=0.8)
    return early


def draw(results: Results) -> list[Drawing]:
    """The figure; an empty list if no arm has a loss curve."""
    training = results.section("training")
    arms = [arm for arm in rows(training, "arms") if trained(arm)[1].size]
    if not arms:
        return []
    unit = text(training, "loss_unit", "nats per byte")
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
        if len(bottom.lines) < 2:
            bottom.text(0.5, 0.6, "no pair of complete runs", transform=bottom.transAxes, ha="center", color=style.GREY)
    grid[0, 0].set_ylabel(style.label(f"loss ({unit})"))
    grid[1, 0].set_ylabel(style.label(f"difference ({unit})"))
    handles = [
        Line2D(
            [],
            [],
            color=_COLOURS[i % len(_COLOURS)],
            linestyle=_DASHES[i % len(_DASHES)],
            label=style.label(name) or "?",
        )
        for i, name in enumerate(names)
    ]
    if early:
        handles.append(Line2D([], [], color=BLACK, marker="x", linestyle="none", label="ended early"))
    figure.legend(handles=handles, loc="outside upper left", ncols=4)
    lines = [
        (*_keys(arm), curve, step, loss)
        for arm in arms
        for curve, (steps, losses) in (("evaluated", evaluated(arm)), ("training", trained(arm)))
        if curve == "evaluated" or numbers(arm.get("train_loss")).size
        for step, loss in zip(steps, losses, strict=True)
    ]
    missing = len(rows(training, "arms")) - len(arms)
    notes = style.counted(
        early, "arm ended early (cross) and is in no mean.", "arms ended early (crosses) and are in no mean."
    )
    notes += style.counted(missing, "arm has no curve.", "arms have no curve.")
    return [Drawing(NAME, TITLE, CAPTION, figure, HEADER, lines, notes)]


def _keys(arm: Row) -> tuple[Any, ...]:
    correction, state = text(arm, "correction"), text(arm, "state")
    return text(arm, "optimizer", "?"), arm_name(arm), text(arm, "schedule"), correction, arm.get("seed"), state
