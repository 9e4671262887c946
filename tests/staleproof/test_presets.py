"""Presets refuse nonsense, naming field, value and what is allowed."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from staleproof.errors import InputError
from staleproof.presets import PRESETS, get_preset


def test_quick_is_what_the_documentation_says() -> None:
    quick = get_preset("quick")
    assert (quick.tokens_per_step, quick.training_steps, quick.training_seeds) == (512, 200, 5)
    assert quick.oracle_steps == 20 and quick.seed == 0


def test_smoke_is_smaller_everywhere() -> None:
    quick, smoke = PRESETS["quick"], PRESETS["smoke"]
    for name in ("certified_steps", "oracle_steps", "training_steps", "training_seeds", "tokens_per_step"):
        assert getattr(smoke, name) < getattr(quick, name)


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("seed", -1, "0 to"),
        ("seed", True, "0 to"),
        ("seed", 2**31, "0 to"),
        ("training_seeds", 1, ">= 2"),
        ("training_steps", 0, ">= 1"),
        ("training_steps", 2.0, ">= 1"),
        ("context", -3, ">= 1"),
        ("model", {"layers": 2}, "width"),
        ("model", {"layers": 0, "width": 8, "heads": 2}, ">= 1"),
        ("model", {"layers": 2, "width": 9, "heads": 2}, "multiple of heads"),
    ],
)
def test_nonsense_is_refused(field: str, value: Any, allowed: str) -> None:
    with pytest.raises(InputError, match=f"^{field}.*{re.escape(allowed)}"):
        replace(PRESETS["quick"], **{field: value})


def test_unknown_preset() -> None:
    with pytest.raises(InputError, match="'full' is not one of quick, smoke"):
        get_preset("full")
