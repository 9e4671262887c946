"""Closed forms of delays against a small enumeration of 1F1B's order, and against the published numbers."""

from __future__ import annotations

import pytest
import sympy as sp

from theory.delays import SCHEDULES, block_update_delay, formulas, optimizer_step_delay, pipedream
from theory.errors import InputError
from theory.symbols import symbols


def steady_updates(S: int, microbatches: int) -> list[tuple[int, int, int]]:
    """PipeDream with F = B = 1: stage s (from 0) does the backward of microbatch j in slot 2S - 1 - s +
    2j.
    """
    return sorted((2 * S - 1 - s + 2 * j, s, j) for s in range(S) for j in range(microbatches))


def enumerated_matrix(S: int) -> list[list[int]]:
    """Stage order: a forward of microbatch j at stage r in slot t sees updates before (t, r)."""
    updates = steady_updates(S, 6 * S)
    j = 3 * S
    matrix = [[0] * S for _ in range(S)]
    for index, (_, a, batch) in enumerate(updates):
        if batch != j:
            continue
        for r in range(S):
            read = (2 * j + r, r)  # steady state: one forward every two slots, between two backwards
            matrix[a][r] = index - sum((slot, stage) < read for slot, stage, _ in updates)
    return matrix


@pytest.mark.parametrize("S", range(1, 13))
def test_block_update_delay_is_the_enumeration(S):
    closed = block_update_delay(S)
    matrix = enumerated_matrix(S)
    assert closed["matrix"] == matrix
    entries = [entry for row in matrix for entry in row]
    assert (closed["max"], closed["min"]) == (max(entries), min(entries))
    assert closed["mean"] == pytest.approx(sum(entries) / S**2, rel=1e-15)


def test_published_numbers():
    assert block_update_delay(4)["matrix"] == [[14, 11, 9, 6], [12, 9, 7, 4], [11, 8, 6, 3], [9, 6, 4, 1]]
    maxima = [0, 3, 7, 14, 22, 33, 45, 60, 76, 95, 115, 138, 162, 189, 217, 248]
    assert [block_update_delay(S)["max"] for S in range(1, 17)] == maxima
    sixteen = block_update_delay(16)
    assert {key: sixteen[key] for key in ("max", "mean", "min", "startup_max", "minimal_max")} == {
        "max": 248,
        "mean": 127.5,
        "min": 7,
        "startup_max": 304,
        "minimal_max": 240,
    }
    assert block_update_delay(8)["startup_max"] == 72


def test_integers_are_the_formulas():
    S, m, stage = symbols("S m stage")
    table = formulas("pipedream")
    a, r = pipedream._a, pipedream._r
    for n in range(1, 8):
        values = block_update_delay(n)
        for key in ("max", "mean", "min", "startup_max", "minimal_max"):
            assert table[key].subs(S, n) == sp.Rational(values[key]), key
        for i in range(1, n + 1):
            for p in range(1, n + 1):
                assert table["block_update_delay"].subs({S: n, a: i, r: p}) == values["matrix"][i - 1][p - 1]
        for per_step in (1, 2, 3, 9):
            formula = table["optimizer_step_delay"].subs({S: n, m: per_step})
            assert [formula.subs(stage, s) for s in range(n)] == optimizer_step_delay(
                "pipedream", n, per_step
            )
    assert (
        formulas("1f1b")["optimizer_step_delay"] == 0
        and formulas("pipedream-2bw")["optimizer_step_delay"] == 1
    )


@pytest.mark.parametrize("S", range(1, 9))
@pytest.mark.parametrize("m", [1, 2, 3, 7, 20])
def test_pipedream_steps(S, m):
    """Stage s runs backward j - (S-1-s) before forward j and steps after every m-th backward."""
    closed = optimizer_step_delay("pipedream", S, m)
    for s in range(S):
        ahead = S - 1 - s
        read = [max(0, j - ahead) // m for j in range(200)]
        assert closed[s] == max(j // m - version for j, version in enumerate(read))


def test_other_schedules():
    assert optimizer_step_delay("pipedream", 8) == [7, 6, 5, 4, 3, 2, 1, 0]
    assert optimizer_step_delay("pipedream-2bw", 4, 4) == [1, 1, 1, 1]
    assert optimizer_step_delay("pipedream-2bw", 4, 3) == [1, 1, 1, 1]  # m = S - 1 is enough
    assert optimizer_step_delay("1f1b", 4, 1) == [0, 0, 0, 0]
    assert [optimizer_step_delay(name, 1) for name in ("1f1b", "pipedream", "pipedream-2bw")] == [
        [0],
        [0],
        [1],
    ]


@pytest.mark.mutation
def test_an_off_by_one_is_seen(monkeypatch):
    """S - s instead of S - 1 - s, and a floor in place of a ceiling, both part from the enumeration."""
    right = pipedream.block_update_entry
    monkeypatch.setattr(pipedream, "block_update_entry", lambda S, a, r: right(S, a, r) + (a == r == 1))
    assert block_update_delay(5)["matrix"] != enumerated_matrix(5)
    assert [-(-(5 - s) // 2) for s in range(5)] != optimizer_step_delay("pipedream", 5, 2)
    assert [(4 - s) // 2 for s in range(5)] != optimizer_step_delay("pipedream", 5, 2)


@pytest.mark.parametrize("S", [0, -1, 2.0, True, "4", None])
def test_bad_counts(S):
    for name in SCHEDULES:
        with pytest.raises(InputError, match="S=.* must be an integer >= 1"):
            optimizer_step_delay(name, S)
    with pytest.raises(InputError, match="S="):
        block_update_delay(S)


def test_bad_names_and_microbatches():
    with pytest.raises(InputError, match="unknown schedule 'gpipe2'; known: 1f1b, pipedream, pipedream-2bw"):
        optimizer_step_delay("gpipe2", 2)
    with pytest.raises(InputError, match="m=0 is not allowed"):
        optimizer_step_delay("pipedream", 2, 0)
    with pytest.raises(InputError, match="m=2 is not allowed: pipedream-2bw with S=4 needs m >= 3"):
        optimizer_step_delay("pipedream-2bw", 4, 2)
