"""Bounds and expressions as JSON trees, written and read node by node: nothing is ever evaluated as code.

A tree is a string (the name of a quantity), an integer, or a list [operator, operand, ...]:
    ["/", 1, 2]  a fraction      ["+", ...], ["*", ...], ["^", base, exponent]  arithmetic
    ["Min", ...], ["Max", ...], ["log", x], ["exp", x], ["ceiling", x], ["floor", x], ["Abs", x], ["GeometricSum", ...]
A condition is ["<=", left, right] with <=, >=, < or >.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.core.relational import Relational

from theory.errors import InputError
from theory.functions import GeometricSum
from theory.symbols import QUANTITIES, get_quantity

if TYPE_CHECKING:
    from theory.bound import Bound

FORMAT = "staleproof-bound-1"
DEEPEST = 60
LARGEST = 1000  # a number to a power beyond it, or of more digits than a machine word, could compute for ever
OPERATORS: dict[str, tuple[Callable[..., sp.Basic], int, int | None]] = {  # name -> (maker, least, most operands)
    "+": (sp.Add, 2, None),
    "*": (sp.Mul, 2, None),
    "^": (sp.Pow, 2, 2),
    "Min": (sp.Min, 2, None),
    "Max": (sp.Max, 2, None),
    "log": (sp.log, 1, 1),
    "exp": (sp.exp, 1, 1),
    "ceiling": (sp.ceiling, 1, 1),
    "floor": (sp.floor, 1, 1),
    "Abs": (sp.Abs, 1, 1),
    "GeometricSum": (GeometricSum, 3, 3),
}
RELATIONS: dict[str, type[Relational]] = {"<=": sp.Le, ">=": sp.Ge, "<": sp.Lt, ">": sp.Gt}
_NAMES = {sp.Add: "+", sp.Mul: "*", sp.Pow: "^"}


def expression_to_json(expression: sp.Expr) -> Any:
    """The tree of an expression. Raises InputError for a node that has no place in the format."""
    if isinstance(expression, sp.Integer):
        return int(expression)
    if isinstance(expression, sp.Rational):
        return ["/", int(expression.p), int(expression.q)]
    if isinstance(expression, sp.Symbol):
        name = str(expression)
        if get_quantity(name).symbol != expression:
            raise InputError(f"symbol {name!r} has other assumptions than the quantity of that name")
        return name
    operator = _NAMES.get(expression.func, expression.func.__name__)
    if operator not in OPERATORS:
        raise InputError(f"expression: {sp.sstr(expression)} is no tree of {', '.join(OPERATORS)}")
    return [operator, *(expression_to_json(arg) for arg in expression.args)]


def expression_from_json(tree: object, depth: int = 0) -> sp.Expr:
    """The expression of a tree. Raises InputError naming the first node that is not one."""
    if depth > DEEPEST:
        raise InputError(f"expression: nested deeper than {DEEPEST}")
    if isinstance(tree, int) and not isinstance(tree, bool):
        return sp.Integer(tree)
    if isinstance(tree, str):
        return get_quantity(tree).symbol
    if not isinstance(tree, list) or not tree or not isinstance(tree[0], str):
        raise InputError(f"expression: {_short(tree)} is no name, integer or [operator, operand, ...]")
    operator, operands = tree[0], tree[1:]
    if operator == "/":
        if len(operands) != 2 or not all(type(part) is int for part in operands) or operands[1] == 0:
            raise InputError(f"expression: {_short(tree)} is no fraction of two integers")
        return sp.Rational(*operands)
    if operator not in OPERATORS:
        raise InputError(f"expression: operator {_short(operator)} is not one of /, {', '.join(OPERATORS)}")
    maker, least, most = OPERATORS[operator]
    if len(operands) < least or (most is not None and len(operands) > most):
        raise InputError(f"expression: {operator} with {len(operands)} operands; allowed {least} to {most or 'any'}")
    arguments = [expression_from_json(operand, depth + 1) for operand in operands]
    if operator == "^" and all(arg.is_number for arg in arguments):
        base, exponent = arguments
        small = not base.is_Rational or max(abs(base.p), base.q) < 2**64
        if not (exponent.is_Rational and abs(exponent) <= LARGEST and small):
            raise InputError(f"expression: power {_short(tree)} of numbers is beyond 64 bits ^ {LARGEST}")
    try:
        made = maker(*arguments)
    except (TypeError, ValueError):  # sympy compares no complex numbers
        raise InputError(f"expression: {_short(tree)} is not a real expression") from None
    if made in (sp.nan, sp.zoo, sp.oo, -sp.oo):  # one over it would be 0 again
        raise InputError(f"expression: {_short(tree)} is not finite")
    return made


def bound_to_json(bound: Bound) -> dict[str, Any]:
    """A bound as plain lists, dicts, strings and integers."""
    return {
        "format": FORMAT,
        "name": bound.name,
        "title": bound.title,
        "terms": {name: expression_to_json(term) for name, term in bound.terms.items()},
        "metric": bound.metric,
        "assumptions": list(bound.assumptions),
        "reference": bound.reference,
        "kind": bound.kind,
        "origin": bound.origin,
        "conditions": [
            [condition.rel_op, expression_to_json(condition.lhs), expression_to_json(condition.rhs)]
            for condition in bound.conditions
        ],
        "unit": bound.unit,
        "optional": {name: expression_to_json(best) for name, best in bound.optional.items()},
    }


def bound_from_json(data: object) -> Bound:
    """The bound that `bound_to_json` wrote, equal to the original. Raises InputError naming what is wrong."""
    from theory.bound import Bound

    keys = ["name", "title", "terms", "metric", "assumptions", "reference", "kind", "origin", "conditions", "unit"]
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise InputError(f"bound: not an object with format {FORMAT!r}")
    allowed = {*keys, "format", "optional"}
    wrong = [key for key in data if key not in allowed] + [key for key in allowed if key not in data]
    if wrong:
        raise InputError(f"bound: key {wrong[0]!r} is unknown or missing; needed {', '.join(sorted(allowed))}")
    for key in ("name", "title", "metric", "reference", "kind", "origin", "unit"):
        if not isinstance(data[key], str):
            raise InputError(f"bound: {key} {_short(data[key])} is not text")
    for key, form in (("terms", dict), ("optional", dict), ("assumptions", list), ("conditions", list)):
        if not isinstance(data[key], form):
            raise InputError(f"bound: {key} {_short(data[key])} is not {'an object' if form is dict else 'a list'}")
    if not all(isinstance(name, str) for name in data["assumptions"]):
        raise InputError(f"bound: assumptions {_short(data['assumptions'])} are not names")
    unknown = [name for name in data["optional"] if name not in QUANTITIES]
    if unknown:
        raise InputError(f"bound: optional {unknown[0]!r} is not a quantity")
    return Bound(
        terms={name: expression_from_json(tree) for name, tree in data["terms"].items()},
        assumptions=tuple(data["assumptions"]),
        conditions=tuple(_condition(tree) for tree in data["conditions"]),
        optional={name: expression_from_json(tree) for name, tree in data["optional"].items()},
        **{key: data[key] for key in ("name", "title", "metric", "reference", "kind", "origin", "unit")},
    )


def _condition(tree: object) -> Relational:
    if not isinstance(tree, list) or len(tree) != 3 or tree[0] not in RELATIONS:
        raise InputError(f"bound: condition {_short(tree)} is not [relation, left, right] with {', '.join(RELATIONS)}")
    return RELATIONS[tree[0]](expression_from_json(tree[1]), expression_from_json(tree[2]))


def _short(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else text[:57] + "..."
