"""`staleproof bound NAME`: evaluate a convergence bound by term, or print its formula."""

from __future__ import annotations

import argparse
from typing import Any

from staleproof.arguments import add_json
from staleproof.errors import EXIT_HOLDS, InputError
from staleproof.output import emit, emit_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="bound; --list prints the names")
    parser.add_argument(
        "--set",
        metavar="SYMBOL=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="values of the symbols, e.g. --set L=1 eta=0.01",
    )
    parser.add_argument("--latex", action="store_true", help="print the formula as LaTeX; needs no values")
    parser.add_argument("--list", action="store_true", help="print the names and titles of the bounds")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Evaluate or print."""
    from theory.registry import BOUNDS, get_bound

    if args.list:
        titles = {name: BOUNDS[name].title for name in BOUNDS}
        width = max(map(len, titles))
        text = "\n".join(f"{name:<{width}}  {title}" for name, title in titles.items())
        emit_json({"bounds": titles}) if args.json else emit(text)
        return EXIT_HOLDS
    if args.name is None:
        raise InputError(f"name: None is not allowed; give one of {', '.join(BOUNDS)}")
    bound = get_bound(args.name)
    values = dict(assignment(text) for text in args.set)
    if len(values) != len(args.set):
        names = [text.split("=", 1)[0].strip() for text in args.set]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"set: {twice!r} is given twice; give each symbol once")
    result: dict[str, Any] = {
        "name": bound.name,
        "title": bound.title,
        "kind": bound.kind,
        "reference": bound.reference,
        "symbols": [str(symbol) for symbol in bound.symbols],
        "values": values,
        "value": None,
        "terms": None,
        "latex": bound.latex(),
        "term_latex": bound.term_latex(),
    }
    if values or not args.latex:
        result["value"] = float(bound.evaluate(**values))
        result["terms"] = {name: float(term) for name, term in bound.evaluate_terms(**values).items()}
    if args.json:
        emit_json(result)
    elif args.latex:
        emit(bound.latex())
    else:
        terms = result["terms"]
        width = max(len(name) for name in (*terms, "total"))
        emit(f"{bound.title}\n{bound.kind}; {bound.reference}")
        emit("\n".join(f"  {name:<{width}}  {value!r}" for name, value in terms.items()))
        emit(f"  {'total':<{width}}  {result['value']!r}")
    return EXIT_HOLDS


def assignment(text: str) -> tuple[str, float]:
    """SYMBOL=VALUE as a pair; raises InputError naming the text and the form."""
    name, sign, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        sign = ""
    if not sign or not name.strip():
        raise InputError(f"set: {text!r} is not allowed; give SYMBOL=VALUE with a number, e.g. tau=1")
    return name.strip(), value
