"""Linear consequences: does a polynomial inequality follow from others when each monomial is an unknown of its own?

That only loses information, so what follows so follows; it is quick where a solver for polynomials gets lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy as sp

Known = Iterable[tuple[sp.Expr, str]]  # (polynomial, sense): polynomial <= 0, or == 0


def implies_positive(z3: Any, known: Known, polynomial: sp.Expr, timeout: float) -> bool:
    """Whether what is known makes the polynomial positive, by adding up multiples of it."""
    monomials: dict[sp.Expr, Any] = {}

    def term(expression: sp.Expr) -> Any:
        total = z3.RealVal(0)
        for part in sp.Add.make_args(sp.expand(expression)):
            number, rest = part.as_coeff_Mul()
            if rest not in monomials:
                monomials[rest] = z3.RealVal(1) if rest == 1 else z3.Real(f"monomial_{len(monomials)}")
            total = total + z3.RealVal(str(number)) * monomials[rest]
        return total

    solver = z3.SolverFor("QF_LRA")
    solver.set("timeout", int(1000 * timeout))
    solver.add(term(polynomial) <= 0)
    for fact, sense in known:
        value = term(fact)
        solver.add(value <= 0 if sense == "<=" else value == 0)
    for monomial, value in monomials.items():
        if monomial.is_nonnegative and monomial != 1:
            solver.add(value >= 0)
    return bool(solver.check() == z3.unsat)
