"""Theory and enumeration say the same of every schedule; with any closed form off by one, they part."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipeline.delays import delays_of
from pipeline.errors import InputError
from pipeline.schedules import SCHEDULES, make_schedule
from pipeline.schedules.base import Schedule
from staleproof import agreement
from staleproof.commands.delays import both_ways
from theory import delays
from theory.delays import CLOSED_FORMS, block_update
from theory.delays.closed_form import ClosedForm, t_f

CASES = [(name, "refuse") for name in SCHEDULES] + [("pipedream-2bw", "stall"), ("pipedream-2bw", "uniform")]


def build(name: str, S: int, m: int, **options) -> Schedule | None:
    try:
        return make_schedule(name, S, m, **options)
    except InputError:
        return None


def differences(schedule: Schedule, t_b: int | Fraction = 2, t_w: int | Fraction | None = None) -> list[str]:
    """Everything closed about the schedule that the enumeration contradicts, with t_f = 1."""
    found = [
        *agreement.delay_differences(schedule),
        *agreement.memory_differences(schedule),
        *agreement.time_differences(schedule, 1, t_b, t_w),
    ]
    return [str(difference) for difference in found]


def test_every_schedule_has_closed_forms():
    assert set(SCHEDULES) <= set(CLOSED_FORMS)


@pytest.mark.parametrize("name", SCHEDULES)
def test_both_rooms_have_the_same_default_of_m(name):
    assert delays.optimizer_step_delay(name, 4) == delays_of(name, 4)["optimizer_step_delay"]


@pytest.mark.parametrize(("name", "policy"), CASES)
@pytest.mark.parametrize("S", range(1, 17))
def test_closed_forms_are_the_enumeration(name, policy, S):
    options = {} if policy == "refuse" else {"policy": policy}
    compared = timed = 0
    for m in sorted({1, S, *([max(S - 1, 1), 2 * S] if S <= 8 else [])}):
        if (schedule := build(name, S, m, **options)) is not None:
            assert differences(schedule) == [], schedule
            compared += 1
            timed += agreement.has_closed_times(schedule, 1, 2)
    assert (compared > 0 and timed > 0) or (name == "amdp" and S % 4)


@pytest.mark.parametrize("case", CASES)
@given(
    S=st.integers(1, 24),
    m=st.integers(1, 40),
    t_b=st.fractions(0, 4, max_denominator=6),
    w=st.fractions(0, 1, max_denominator=4),
    chunks=st.integers(1, 4),
    replicas=st.integers(1, 30),
)
@settings(max_examples=8, deadline=None)
def test_closed_forms_beyond_the_grid(case, S, m, t_b, w, chunks, replicas):
    """Other depths, numbers of microbatches, durations and options of the schedules."""
    name, policy = case
    options = {
        "pipedream-2bw": {"policy": policy},
        "interleaved-1f1b": {"chunks": chunks},
        "uniform": {"tau": -(-(S - 1) // m) + chunks - 1},
    }.get(name, {})
    if name == "amdp":
        S = 4 * (S // 4 + 1)
    if name == "localsgd":
        options = {"replicas": replicas}
        m = replicas * (m // replicas + 1)
    if name in ("amdp", "interleaved-1f1b"):
        m = S * (1 + m % 3)
    schedule = build(name, S, m, **options)
    assume(schedule is not None)
    assert differences(schedule, t_b, w * t_b / 2) == [], schedule


def key_of(name: str, policy: str) -> str:
    return name if policy == "refuse" else f"{name} ({policy})"


QUANTITIES = [
    (name, policy, field.name)
    for name, policy in CASES
    for field in fields(ClosedForm)
    if isinstance(getattr(CLOSED_FORMS[key_of(name, policy)], field.name), sp.Expr)
]


@pytest.mark.mutation
@pytest.mark.parametrize(("name", "policy", "quantity"), QUANTITIES)
def test_a_closed_form_off_by_one_is_seen(name, policy, quantity, monkeypatch):
    key = key_of(name, policy)
    form = CLOSED_FORMS[key]
    formula = getattr(form, quantity)
    off = t_f if quantity in ("period", "fill_and_drain") else sp.S.One
    monkeypatch.setitem(delays.CLOSED_FORMS, key, replace(form, **{quantity: formula + off}))
    schedule = make_schedule(name, 4, 1, policy=policy) if policy != "refuse" else make_schedule(name, 4)
    found = differences(schedule)
    assert found
    assert any(line.startswith(f"{quantity} of {name}") for line in found)


@pytest.mark.mutation
@pytest.mark.parametrize("name", ["pipedream", "pipedream-2bw", "paci", "pipemare", "amdp", "pipedream-vertical-sync"])
def test_a_version_rule_off_by_one_is_seen(name, monkeypatch):
    cls = SCHEDULES[name]
    right = cls.version
    monkeypatch.setattr(cls, "version", lambda self, stage, j: max(right(self, stage, j) - 1, 0))
    assert any(line.startswith("delay of ") for line in differences(make_schedule(name, 4)))


@pytest.mark.parametrize("S", range(1, 17))
@pytest.mark.parametrize("convention", block_update.CONVENTIONS)
def test_block_update_delays_are_the_enumeration(S, convention):
    counted, found = both_ways(make_schedule("pipedream", S), convention)
    assert found == []
    assert counted["block_update_delay"]["convention"] == convention


@pytest.mark.mutation
@pytest.mark.parametrize("convention", block_update.CONVENTIONS)
@pytest.mark.parametrize("table", ["ENTRY", "MAX", "MIN", "MEAN"])
def test_a_block_update_formula_off_by_one_is_seen(convention, table, monkeypatch):
    formulas = getattr(block_update, table)
    monkeypatch.setitem(formulas, convention, formulas[convention] + 1)
    assert both_ways(make_schedule("pipedream", 5), convention)[1]


@pytest.mark.mutation
def test_a_start_up_formula_off_by_one_is_seen(monkeypatch):
    monkeypatch.setattr(block_update, "STARTUP_MAX", block_update.STARTUP_MAX + 1)
    assert ["startup_max" in line for line in both_ways(make_schedule("pipedream", 5))[1]] == [True]
