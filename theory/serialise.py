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
from theory.functions import LARGEST, GeometricSum
from theory.symbols import QUANTITIES, get_quantity

if TYPE_CHECKING:
    from theory.bound import Bound

FORMAT = "staleproof-bound-1"
DEEPEST = 60
LONGEST = 2**64  # numbers beyond it, or a power beyond LARGEST of them, could compute for ever
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
    _refuse_long(operator, arguments, tree)
    try:
        made = maker(*arguments)
    except (TypeError, ValueError):  # sympy compares no complex numbers
        raise InputError(f"expression: {_short(tree)} is not a real expression") from None
    if made in (sp.nan, sp.zoo, sp.oo, -sp.oo):  # one over it would be 0 again
        raise InputError(f"expression: {_short(tree)} is not finite")
    return made


def _refuse_long(operator: str, arguments: list[sp.Expr], tree: object) -> None:
    """Refuse what sympy would compute number by number for ever: before the operator is applied."""
    if operator == "^" and arguments[1].is_number:
        base, exponent = arguments
        if not (exponent.is_Rational and abs(exponent) <= LARGEST and _short_number(base.as_coeff_Mul()[0])):
            raise InputError(f"expression: power {_short(tree)} of numbers is beyond 64 bits ^ {LARGEST}")
    elif operator == "GeometricSum":
        *parts, K = arguments
        small = all(_short_number(part.as_coeff_Mul()[0]) for part in parts)
        if K.is_number and not (small and _at_most(K, LARGEST)):
            raise InputError(f"expression: {_short(tree)} is beyond 64 bits in {LARGEST} terms")
    elif operator in ("exp", "ceiling", "floor") and arguments[0].is_number:
        largest = LARGEST if operator == "exp" else LONGEST
        if not _at_most(arguments[0], largest):
            raise InputError(f"expression: {operator} of a number, {_short(tree)}: allowed up to {largest}")


def _short_number(value: sp.Expr) -> bool:
    return not value.is_Rational or bool(max(abs(value.p), value.q) < LONGEST)


def _at_most(value: sp.Expr, largest: int) -> bool:
    """True for a real number of at most that size; 15 digits of it take no time whatever its size."""
    rough = value.evalf(15)
    return bool(rough.is_comparable) and bool(abs(rough) <= largest)


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
