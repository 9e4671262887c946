"""Each figure: what it draws, what it leaves out and says so, and the data beside it."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
import result_folders
from empirics_data import budget, empirics
from figure_data import delays, slots

from figures import (
    bound_terms,
    gap,
    loss_curves,
    quadratic_curves,
    style,
    timeline,
    utilisation,
    waterfall,
    window_losses,
)
from figures.errors import InputError
from figures.formula import formula_html
from figures.results import SECTIONS, Results, load, number


def results_with(**sections: object) -> Results:
    return Results(Path("."), result_folders.status(), {}, dict(sections))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _style():
    with style.context():
        yield


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize(
    "draw",
    [
        bound_terms.draw_certified,
        bound_terms.draw_training,
        quadratic_curves.draw,
        gap.draw,
        loss_curves.draw,
        timeline.draw,
        utilisation.draw,
        waterfall.draw_empirics,
        waterfall.draw_training,
        window_losses.draw,
    ],
)
@pytest.mark.parametrize("content", [{}, {"runs": None, "arms": [1], "settings": "x", "timelines": [{}], "budget": 1}])
def test_no_data_no_figure(draw, content: dict) -> None:
    assert draw(results_with(**dict.fromkeys(SECTIONS, content))) == []


def test_waterfall_steps_from_level_to_level() -> None:
    """The bars are the differences of the levels; what is not known is said, and its factor is over what is known."""
    section = {"budgets": {"theorems": [budget(), budget("noisy", sigma=0.3)]}}
    (drawing,) = waterfall.draw_empirics(results_with(empirics=section))
    (axes,) = drawing.figure.axes
    assert [(p.get_x(), p.get_width()) for p in axes.patches] == [(1.0, 0.5), (1.5, 1.0), (2.5, 1.0), (3.5, 0.5)]
    assert [line[6] for line in drawing.rows][1:] == pytest.approx([1.5, 2.5 / 1.5, 1.4, 4 / 3.5])
    assert {line[2:4] for line in drawing.rows} == {("delayed-lmo", "certified")}
    (training,) = waterfall.draw_training(results_with(training={"budget": budget(worst=None)}))
    assert "1 level has no value" in training.words
    assert [t.get_text().strip() for t in training.figure.axes[0].texts if "known" in t.get_text()] == ["not known"]
    part = budget(worst=None)
    part["waterfall"][-1]["how"] = "unbiased: f is a part of what the batches are drawn from"
    (drawn,) = waterfall.draw_training(results_with(training={"budget": part}))
    assert any("not applicable: f is a part" in t.get_text() for t in drawn.figure.axes[0].texts)
    wide = waterfall.draw_training(results_with(training={"budget": budget(worst=1e4)}))[0]
    assert wide.figure.axes[0].get_xscale() == "log" and axes.get_xscale() == "linear"


def test_window_losses_are_in_standard_errors(hostile_folder: Path) -> None:
    (drawing,) = window_losses.draw(results_with(empirics=empirics(8)))
    deviations = [line[-1] for line in drawing.rows]
    assert deviations == pytest.approx([(line[8] - line[7]) / line[9] for line in drawing.rows])
    assert drawing.figure.axes[1].lines[0].get_ydata() == pytest.approx(sorted(deviations))
    (lost,) = window_losses.draw(load(hostile_folder))
    assert "3 pairs are not finite" in lost.words


def test_csv_holds_every_drawn_number(sound_folder: Path) -> None:
    section = load(sound_folder).section("quadratic")
    lines = read_csv(sound_folder / "figures" / "quadratic_curves.csv")
    first = section["settings"][0]
    mine = [line for line in lines if line["setting"] == first["name"]]
    assert [float(line["predicted"]) for line in mine] == first["predicted"]
    assert [float(line["measured"]) for line in mine] == first["measured"]
    training = load(sound_folder).section("training")
    gaps = read_csv(sound_folder / "figures" / "gap.csv")
    shown = [float(line["value"]) for line in gaps if line["quantity"] == "gap" and line["method"] == "one seed"]
    assert shown == [pair["gap"] for g in training["gaps"] for pair in g["pairs"]]


def test_bars_add_up_to_the_bound_and_violations_are_named() -> None:
    theorem = {
        "title": "T",
        "kind": "certified",
        "bound": 3.0,
        "measured": 4.0,
        "terms": [{"name": "initial", "value": 1.0}, {"name": "delay", "value": 2.0}, {"name": "noise", "value": None}],
    }
    (drawing,) = bound_terms.draw_certified(results_with(certified={"runs": [{"name": "r", "theorem": theorem}]}))
    axes = drawing.figure.axes[0]
    assert [patch.get_width() for patch in axes.patches] == [1.0, 2.0]
    assert [patch.get_x() for patch in axes.patches] == [0.0, 1.0]
    assert any("EXCEEDS" in t.get_text() for t in axes.texts)
    assert "1 term is not finite" in drawing.words


def test_bounds_far_apart_are_drawn_as_shares() -> None:
    runs = [
        {
            "name": str(b),
            "theorem": {"title": "T", "bound": b, "measured": b / 2, "terms": [{"name": "step", "value": b}]},
        }
        for b in (1.0, 1000.0)
    ]
    (drawing,) = bound_terms.draw_certified(results_with(certified={"runs": runs}))
    assert [patch.get_width() for patch in drawing.figure.axes[0].patches] == [1.0, 1.0]
    assert "share of the bound" in drawing.figure.axes[0].get_xlabel()


def test_log_axis_drops_and_cuts_are_counted(hostile_folder: Path) -> None:
    drawings = {d.name: d for d in quadratic_curves.draw(load(hostile_folder))}
    words = drawings["quadratic_curves"].words
    assert "not drawn on the log axis" in words and "error bars reach zero and are cut" in words
    figure = drawings["quadratic_curves"].figure
    assert sum(any("no positive" in t.get_text() for t in axes.texts) for axes in figure.axes) == 3
    assert "not finite and not drawn" in drawings["quadratic_power"].words


def test_log_errorbar_cuts_only_what_reaches_zero() -> None:
    figure = style.new_figure(3, 2)
    axes = figure.subplots()
    axes.set_yscale("log")
    y = np.array([1.0, 0.0, -1.0, np.nan, 2.0, np.inf])
    assert style.log_errorbar(axes, np.arange(6.0), y, np.array([2.0, 1, 1, 1, 0.5, 1]), linestyle="none") == (4, 1)
    low, high = axes.get_ylim()
    assert 0 < low < 1 < 2 < high
    assert style.log_errorbar(axes, np.arange(2.0), np.zeros(2), np.ones(2)) == (2, 0)


def test_a_strip_without_a_step_leaves_room_for_the_others(tmp_path: Path) -> None:
    """A run that stood still for long: one pass fills the strips after the first, and no step ends there."""
    events = slots("pipedream-2bw", 2, 2, 3)
    late = max(events, key=lambda event: event["end"])
    late["end"] += 500
    drawing = timeline.draw_one({"name": "x", "stages": 2, "events": events}, "late")
    assert drawing is not None and len(drawing.figure.axes) == 3
    style.save(drawing, tmp_path)  # a layout that cannot be had is a warning, and warnings are errors here
    assert all(axes.get_position().height > 0.1 for axes in drawing.figure.axes)


def test_timeline_colours_by_version_and_numbers_microbatches() -> None:
    events = slots("pipedream-2bw", 8, 8, 3)
    section = {"timelines": [{"name": "pipedream-2bw", "stages": 8, "microbatches": 8, "events": events}]}
    (drawing,) = timeline.draw(results_with(delays=section))
    passes = [event for event in events if event["kind"] != "step"]
    texts = [t for axes in drawing.figure.axes for t in axes.texts]
    assert len(texts) == len(passes) and min(t.get_fontsize() for t in texts) >= 5.0
    colours = {tuple(c) for axes in drawing.figure.axes for c in axes.collections[0].get_facecolors()}
    assert len(colours) == 2 * len({event["version"] for event in passes})
    assert len(drawing.rows) == len(events) and drawing.name == "timeline_pipedream-2bw_s8_m8"
    assert max(axes.get_xlim()[1] - axes.get_xlim()[0] for axes in drawing.figure.axes) <= 40


def test_long_timeline_is_cut_and_says_so() -> None:
    events = slots("pipedream", 4, 1, 100)
    section = {"timelines": [{"name": "pipedream", "stages": 4, "microbatches": 1, "events": events}] * 2}
    first, second = timeline.draw(results_with(delays=section))
    assert "Only the first 120 slots are drawn" in first.words and "Colours repeat every 8 versions" in first.words
    assert second.name == first.name + "_2"


def test_undefined_share_is_a_word_not_a_point(hostile_folder: Path) -> None:
    (drawing,) = gap.draw(load(hostile_folder))
    right = drawing.figure.axes[1]
    assert sum(t.get_text() == "undefined" for t in right.texts) >= 1
    assert "missing (diverged or not run)" in drawing.words


def test_diverged_arm_is_in_no_mean(hostile_folder: Path) -> None:
    (drawing,) = loss_curves.draw(load(hostile_folder))
    assert "1 arm ended early" in drawing.words and "1 arm has no curve" in drawing.words


def test_loss_difference_is_paired_by_seed() -> None:
    arms = [
        {
            "optimizer": "o",
            "schedule": schedule,
            "correction": "none",
            "seed": seed,
            "state": "complete",
            "steps": [10, 20],
            "loss": [seed + shift, seed + 2 * shift],
        }
        for schedule, shift in (("1f1b", 0.0), ("pipedream-2bw", 0.25))
        for seed in (1, 2, 3)
    ]
    (drawing,) = loss_curves.draw(results_with(training={"arms": arms}))
    mean = drawing.figure.axes[1].lines[-2]
    assert list(mean.get_xdata()) == [10, 20] and list(mean.get_ydata()) == [0.25, 0.5]


def test_utilisation_above_one_is_red() -> None:
    def run(name: str, value: float) -> dict:
        return {"name": name, "inequalities": [{"name": "descent", "min": 0.1, "median": 0.2, "max": value}]}

    (drawing,) = utilisation.draw(results_with(certified={"runs": [run("a", 0.9), run("b", 1.001)]}))
    colours = [line.get_color() for line in drawing.figure.axes[0].lines if line.get_marker() == "|"]
    assert colours == [style.BLUE, style.RED]


def test_labels_are_never_mathematics_and_never_lack_a_glyph() -> None:
    assert style.label("$x$") == r"\$x\$" and "□" in style.label("日本😀") and len(style.label("x" * 99)) == 44
    assert style.math_label(r"\frac{1", "a$b") == r"a\$b" and style.math_label("x^2", "") == "$x^2$"


@pytest.mark.parametrize("formula", [r"\|e_k\|_* \le L \eta", r"a \ge b", r"\left(1-\alpha\right) \leq 1"])
def test_short_names_of_latex_can_be_drawn(formula: str) -> None:
    assert style.parses(formula)
    assert formula_html(formula).startswith("<svg") and "<path d='M" in formula_html(formula)


def test_drawing_refuses_nonsense() -> None:
    figure = style.new_figure(1, 1)
    with pytest.raises(InputError, match="file stem"):
        style.Drawing("../x", "", "", figure, ("a",), [])
    with pytest.raises(InputError, match="cells"):
        style.Drawing("x", "", "", figure, ("a",), [(1, 2)])


def test_numbers_from_json() -> None:
    assert number("inf") == math.inf and number(3) == 3.0
    assert all(math.isnan(number(value)) for value in (None, True, "x", [], {}, 10**400))


def test_fixture_schedules_have_the_delays_they_claim() -> None:
    for schedule in delays(4)["schedules"]:
        witness = schedule["optimizer_step_delay"]
        assert witness["closed_form"] == witness["enumeration"] and len(witness["closed_form"]) == schedule["stages"]
