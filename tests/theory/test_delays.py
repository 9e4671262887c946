"""Closed forms as values: exact evaluation, conditions, bubbles that follow from periods, published numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp

from theory.delays import CLOSED_FORMS, block_update_delay, closed_form, formulas, optimizer_step_delay
from theory.delays.closed_form import S, m, t_b, t_f, t_w
from theory.delays.exact import evaluate
from theory.errors import InputError
from theory.symbols import symbols

(stage, v, R) = symbols("stage v R")


def test_published_numbers():
    assert block_update_delay(4)["matrix"] == [[14, 11, 9, 6], [12, 9, 7, 4], [11, 8, 6, 3], [9, 6, 4, 1]]
    maxima = [0, 3, 7, 14, 22, 33, 45, 60, 76, 95, 115, 138, 162, 189, 217, 248]
    assert [block_update_delay(n)["max"] for n in range(1, 17)] == maxima
    sixteen = block_update_delay(16)
    assert {key: sixteen[key] for key in ("max", "mean", "min", "startup_max", "minimal_max")} == {
        "max": 248,
        "mean": 127.5,
        "min": 7,
        "startup_max": 304,
        "minimal_max": 240,
    }
    assert block_update_delay(8)["startup_max"] == 72
    assert block_update_delay(16, "physical")["mean"] == 131.5


def test_bubbles_follow_from_the_periods():
    # GPipe, 1F1B: Narayanan et al. 2021; interleaved: 2021b; AMDP at t_b = 2 t_f: 1/(3S + 1).
    textbook = {
        "gpipe": (S - 1) / (m + S - 1),
        "1f1b": (S - 1) / (m + S - 1),
        "interleaved-1f1b": (S - 1) / (v * m + S - 1),
        "pipedream": 0,
        "pipedream-2bw": 0,
        "localsgd": (S - 1) / (m + S - 1),
    }
    for name, bubble in textbook.items():
        assert sp.simplify(CLOSED_FORMS[name].bubble - bubble) == 0, name
    assert sp.simplify(CLOSED_FORMS["amdp"].bubble.subs(t_b, 2 * t_f) - 1 / (3 * S + 1)) == 0


def test_localsgd_round_in_slots():
    # arXiv 2606.03498: 2SH + 2(S - 1) slots with R = S replicas and H local steps; utilisation H/(H + 1 - 1/S).
    H = sp.Symbol("H", positive=True)
    form = CLOSED_FORMS["localsgd"]
    one_slot = {t_f: 1, t_b: 1, m: S * H}
    assert sp.expand(form.period.subs(one_slot) - (2 * S * H + 2 * (S - 1))) == 0
    assert sp.simplify(1 - form.bubble.subs(one_slot) - H / (H + 1 - 1 / S)) == 0


def test_delays_that_the_papers_state():
    assert optimizer_step_delay("pipedream", 8) == [7, 6, 5, 4, 3, 2, 1, 0]
    assert optimizer_step_delay("pipedream-vertical-sync", 4, 1) == [3, 3, 3, 3]
    assert optimizer_step_delay("pipedream-2bw", 4, 3) == [1, 1, 1, 1]  # m = S - 1 is enough
    assert optimizer_step_delay("pipedream-2bw", 1) == [1]
    assert optimizer_step_delay("interleaved-1f1b", 2) == [0, 0, 0, 0]
    assert sp.simplify(formulas("pipemare")["mean_delay"] - (2 * (S - stage) - 1) / m) == 0
    paci = CLOSED_FORMS["paci"]
    assert [paci.evaluate("gap_microbatches", S=5, m=6, stage=s) for s in range(5)] == [4, 3, 2, 1, 0]
    assert [paci.evaluate("version_gap", S=8, m=3, stage=s) for s in range(8)] == [3, 2, 2, 2, 1, 1, 1, 0]


def test_zb_h1_bubble_is_that_of_its_paper():
    idle = sp.expand(CLOSED_FORMS["zb-h1"].period - m * (t_f + t_b))
    b = t_b - t_w  # the gradient of the inputs alone
    assert sp.expand(idle - (S - 1) * (t_f + b - t_w)) == 0


def test_evaluation_is_exact():
    form = CLOSED_FORMS["1f1b"]
    assert form.evaluate("bubble", S=4, m=8, t_f=1, t_b=2) == Fraction(3, 11)
    assert form.evaluate("period", S=3, m=1, t_f=Fraction(1, 3), t_b=Fraction(1, 7)) == Fraction(10, 7)
    assert evaluate(sp.floor(S / 2) + sp.ceiling(S / 3) + sp.Rational(1, 2), S=7) == Fraction(13, 2)
    assert evaluate(sp.Eq(sp.Mod(m, S), 0), m=6, S=3) is True
    assert isinstance(evaluate(S**2 / 2, S=4), int)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_exact_evaluation_is_sympys(name):
    form = CLOSED_FORMS[name]
    values = {"S": 8, "m": 16, "stage": 3, "device": 2, "t_f": 2, "t_b": 5, "t_w": 2, "v": 2, "R": 8, "tau": 2}
    for quantity, formula in form.formulas.items():
        expected = formula.subs({symbol: values[str(symbol)] for symbol in formula.free_symbols})
        assert sp.Rational(form.evaluate(quantity, **values)) == expected, quantity


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "4", None])
def test_bad_counts(n):
    for name in CLOSED_FORMS:
        with pytest.raises(InputError, match="S=.* must be an integer >= 1"):
            optimizer_step_delay(name, n)
    with pytest.raises(InputError, match="S="):
        block_update_delay(n)


@pytest.mark.parametrize(
    ("name", "quantity", "values", "said"),
    [
        ("pipedream-2bw", "delay", {"S": 4, "m": 2}, "S=4, m=2 is not allowed: pipedream-2bw needs m >= S - 1"),
        ("amdp", "delay", {"S": 6, "m": 6}, "S=6 is not allowed: amdp needs S a multiple of 4"),
        ("amdp", "delay", {"S": 4, "m": 6}, "S=4, m=6 is not allowed: amdp needs m a multiple of S"),
        ("localsgd", "period", {"S": 4, "m": 4, "R": 2}, "R=2, S=4 is not allowed: localsgd needs R >= S"),
        ("zb-h1", "bubble", {"S": 2, "m": 2, "t_f": 1, "t_w": 2, "t_b": 4}, "t_f=1, t_w=2 is not allowed"),
        ("interleaved-1f1b", "in_flight", {"S": 2, "m": 2}, "'in_flight' of interleaved-1f1b has no closed form"),
        ("zb-h1", "bubble", {"S": 2, "m": 2, "t_f": 1}, "t_w: not given; zb-h1 needs a value for each"),
        ("pipedream", "delay", {"S": 2}, "stage: not given"),
        ("pipedream", "delay", {"stage": 0}, "S: not given; pipedream needs the number of stages"),
        ("1f1b", "speed", {"S": 2, "m": 2}, "'speed' of 1f1b has no closed form; known: delay"),
    ],
)
def test_values_outside_the_conditions_are_refused(name, quantity, values, said):
    with pytest.raises(InputError, match=said):
        CLOSED_FORMS[name].evaluate(quantity, **values)


def test_bad_names_and_conventions():
    with pytest.raises(InputError, match="unknown schedule 'gpipe2'; known: gpipe, 1f1b"):
        optimizer_step_delay("gpipe2", 2)
    with pytest.raises(InputError, match="unknown schedule 'gpipe2'"):
        formulas("gpipe2")
    with pytest.raises(InputError, match="m=0 is not allowed"):
        optimizer_step_delay("pipedream", 2, 0)
    with pytest.raises(InputError, match="convention='slots' is not allowed: known are stage order, physical"):
        block_update_delay(2, "slots")
    assert closed_form("gpipe2") is None
