"""The derivation of PipeDream's S^2 delay: every step holds, and breaks with the entries."""

from __future__ import annotations

import pytest
import sympy as sp

from theory.delays import block_update
from theory.delays.block_update import ENTRY, S, a, r
from theory.delays.block_update_derivation import derive


def test_every_step_holds_for_even_and_odd_depth():
    steps = derive()
    assert all(step.holds for step in steps), [str(step) for step in steps if not step.holds]
    law = {(s.convention, s.parity): s.right for s in steps if s.name == "largest less 2S - 1 slots at S/2 updates"}
    assert law == {
        (convention, parity): sp.Rational(0 if parity == "even" else -1, 2)
        for convention in ("stage order", "physical", "slot")
        for parity in ("even", "odd")
    }
    assert {s.parity for s in steps if s.name == "largest of the start-up"} == {"even", "odd"}


@pytest.mark.mutation
@pytest.mark.parametrize("convention", ENTRY)
@pytest.mark.parametrize("change", [sp.S.One, a, -sp.floor(r / 2), sp.Mod(S, 2)])
def test_a_mutated_entry_breaks_a_step(convention, change):
    steps = derive({convention: ENTRY[convention] + change})
    assert any(not step.holds for step in steps)


@pytest.mark.mutation
@pytest.mark.parametrize("table", ["MAX", "MIN", "MEAN"])
def test_a_mutated_summary_breaks_a_step(table, monkeypatch):
    formulas = getattr(block_update, table)
    monkeypatch.setitem(formulas, "slot", formulas["slot"] + sp.Rational(1, 2))
    assert any(not step.holds and step.convention == "slot" for step in derive())


def test_entries_from_the_slots_themselves():
    """Steady 1F1B by hand: stage s reads microbatch j in slot 2j + s and updates it in slot 2j + 2S - 1 - s."""
    for n in range(1, 10):
        updates = sorted((2 * j + 2 * n - 1 - s, s, j) for s in range(n) for j in range(6 * n))
        j = 3 * n
        for index, (_, active, batch) in enumerate(updates):
            if batch == j:
                for read in range(n):
                    seen = sum((slot, s) < (2 * j + read, read) for slot, s, _ in updates)
                    assert block_update.entry(n, active + 1, read + 1) == index - seen
