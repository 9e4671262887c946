"""What is proved: symbols, bounds, pathwise inequalities, closed forms of delays, exact theory on quadratics.

Knows sympy, numpy and scipy; no torch. `theory.registry.BOUNDS` holds the bounds, `theory.lmo.PATHWISE` the
steps of their proofs, `theory.delays` the closed forms of schedules, `theory.quadratic` the exact moments of
linear methods, `theory.proofs.PROOFS` the proofs (step by step, for `theory.checkers`).
"""

from theory.bound import Bound
from theory.errors import InputError
from theory.inequality import Inequality
from theory.registry import BOUNDS, get_bound
from theory.symbols import QUANTITIES, Quantity

__all__ = ["BOUNDS", "QUANTITIES", "Bound", "Inequality", "InputError", "Quantity", "get_bound"]
