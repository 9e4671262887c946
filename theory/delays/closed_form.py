"""The value that states everything closed about one schedule: delays, versions, microbatches in flight, period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

import sympy as sp

from theory.delays.exact import Number, evaluate
from theory.errors import InputError
from theory.symbols import symbols

#: Quantities that depend on the durations.
TIMES = ("period", "fill_and_drain", "bubble")

S, m, stage, device, t_f, t_b, t_w = symbols("S m stage device t_f t_b t_w")


@dataclass(frozen=True)
class ClosedForm:
    """Closed forms of a schedule in S, m and the stage s (from 0 at the input side); None: no closed form known.

    In optimizer steps, at stage s, in the steady state:
        delay: largest over the microbatches; mean_delay: mean over them; backward_delay: largest of the backward;
        version_gap: largest between forward and backward; gap_microbatches: of how many microbatches of a step.
    Counts:
        versions: weight versions that a copy of stage s holds; in_flight: microbatches between forward and backward at
        stage s; in_flight_total: on a device d, over all stages it holds.
    Times, with t_f and t_b of one microbatch on an S-th of the model (t_b the whole backward, t_w its weight part):
        period: of an optimizer step (of LocalSGD: of a round); fill_and_drain: once in a run.

    conditions: what S and m must satisfy; time_conditions: what the durations must, for period and fill_and_drain.
    Each is (truth, in words). reference: author and year, or "derived here".
    """

    name: str
    reference: str
    delay: sp.Expr
    mean_delay: sp.Expr
    versions: sp.Expr
    period: sp.Expr
    in_flight: sp.Expr | None = None
    in_flight_total: sp.Expr | None = None
    fill_and_drain: sp.Expr | None = sp.S.Zero
    backward_delay: sp.Expr | None = None
    version_gap: sp.Expr = sp.S.Zero
    gap_microbatches: sp.Expr = sp.S.Zero
    conditions: tuple[tuple[sp.Basic, str], ...] = ()
    time_conditions: tuple[tuple[sp.Basic, str], ...] = ()
    #: Defaults in terms of S: of m, and of the schedule's own parameters (chunks v, replicas R).
    parameters: Mapping[str, sp.Expr] = field(default_factory=lambda: {"m": S})

    def __post_init__(self) -> None:
        if self.backward_delay is None:
            object.__setattr__(self, "backward_delay", self.delay)
        if self.in_flight_total is None:
            total = None if self.in_flight is None else self.in_flight.subs(stage, device)
            object.__setattr__(self, "in_flight_total", total)

    @cached_property
    def bubble(self) -> sp.Expr:
        """1 - work/(devices x period) with S devices: a step's work is m microbatches on S S-ths of the model."""
        return sp.simplify(1 - m * (t_f + t_b) / self.period)

    @cached_property
    def formulas(self) -> dict[str, sp.Expr]:
        """Every closed form that is known, by name, and the bubble that follows from the period."""
        known = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: f for name, f in known.items() if isinstance(f, sp.Expr)} | {"bubble": self.bubble}

    def missed(self, quantity: str, **values: Number) -> str | None:
        """The first condition that ``values`` miss for this quantity, in words, or None."""
        full = self._with_defaults(values)
        needed = self.conditions + (self.time_conditions if quantity in TIMES else ())
        self._refuse_missing(full, *(condition for condition, _ in needed))
        for condition, words in needed:
            if not evaluate(condition, **full):
                given = ", ".join(f"{name}={full[name]}" for name in sorted(map(str, condition.free_symbols)))
                return f"{given} is not allowed: {self.name} needs {words}"
        return None

    def evaluate(self, quantity: str, **values: Number) -> Number:
        """One of the quantities above, exactly, at ``S``, ``m`` and where it needs them ``stage``, ``t_f``, ...

        Raises InputError for values that miss a condition, and for a quantity that has no closed form.
        """
        formula = getattr(self, quantity, None)
        if not isinstance(formula, sp.Expr):
            known = ", ".join(self.formulas)
            raise InputError(f"quantity: {quantity!r} of {self.name} has no closed form; known: {known}")
        if (missed := self.missed(quantity, **values)) is not None:
            raise InputError(missed)
        full = self._with_defaults(values)
        self._refuse_missing(full, formula)
        return evaluate(formula, **full)

    def _refuse_missing(self, values: Mapping[str, Number], *formulas: sp.Basic) -> None:
        needed = sorted({str(symbol) for formula in formulas for symbol in formula.free_symbols} - set(values))
        if needed:
            raise InputError(f"{', '.join(needed)}: not given; {self.name} needs a value for each")

    def _with_defaults(self, values: Mapping[str, Number]) -> dict[str, Number]:
        if "S" not in values:
            raise InputError(f"S: not given; {self.name} needs the number of stages")
        full = dict(values)
        for name, default in self.parameters.items():
            if name not in full:
                full[name] = evaluate(default, **full)
        return full
