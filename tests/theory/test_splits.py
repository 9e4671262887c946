"""Cases are all: every choice of whole numbers falls into exactly one of them."""

from __future__ import annotations

from itertools import product

import pytest

from theory.splits import from_one, split, split_all, split_along, split_between, split_reference, split_run
from theory.symbols import symbols

LARGEST = 4


@pytest.mark.parametrize(
    ("cases", "names", "least"),
    [
        (split, "k tau", (1, 0)),
        (split_all, "k tau", (0, 0)),
        (split_run, "K tau", (1, 0)),
        (split_reference, "s tau", (0, 0)),
        (split_along, "k s tau", (1, 1, 0)),
        (split_between, "k s tau", (0, 0, 0)),
        (from_one, "k", (1,)),
    ],
)
def test_each_choice_is_in_one_case(cases, names, least):
    wanted = set(product(*(range(low, LARGEST + 1) for low in least)))
    numbers, lows, found = symbols(names), dict(zip(symbols(names), least, strict=True)), []
    for case in cases():
        inside = {s for value in case.values() for s in value.free_symbols}
        free = sorted(inside | {s for s in numbers if s not in case}, key=str)
        for point in product(*(range(lows.get(s, 0), LARGEST + 1) for s in free)):
            at = dict(zip(free, point, strict=True))
            found.append(tuple(int(case[s].xreplace(at)) if s in case else at[s] for s in numbers))
    found = [choice for choice in found if choice in wanted]
    assert sorted(found) == sorted(wanted)
