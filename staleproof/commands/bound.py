"""`staleproof bound`: evaluate, tune, compare or print convergence bounds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from staleproof.arguments import add_json
from staleproof.bound_output import (
    commented,
    head,
    hypotheses,
    number,
    show_comparison,
    show_expansion,
    show_table,
    tuned_latex,
)
from staleproof.bound_values import add_values, refuse_without_values, values_of
from staleproof.bound_words import in_words, meaning_lines
from staleproof.errors import EXIT_HOLDS, InputError
from staleproof.output import emit, emit_json

if TYPE_CHECKING:
    from theory.bound import Bound


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    forms = (
        "NAME --set SYMBOL=VALUE ...",
        "NAME --terms [--set ...]",
        "NAME --tune [SYMBOL ...] --set ... [--latex]",
        "NAME --schedule NAME --stages S [--tune] --set ...",
        "NAME --expand [--latex]",
        "--compare A B [--set ... | --latex]",
        "--compare A B C ... --set ...",
        "[NAME | --list] --latex",
        "--list",
        "... --json",
    )
    parser.usage = "\n       ".join(f"staleproof bound {form}" for form in forms)
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="bound, before all options; --list prints the names")
    add_values(parser)
    terms = "print each term with its formula, and what it, the symbols and the assumptions mean; needs no values"
    add("--terms", action="store_true", help=terms)
    add(
        "--tune",
        metavar="SYMBOL",
        nargs="*",
        help="find the best step size, or the best of e.g. --tune eta alpha; the relative price of the delay is "
        "the tuned value over that of the same bound tuned at delay 0, minus 1",
    )
    add("--expand", action="store_true", help="print the orders in K, or M, of each term, step size and alpha tuned")
    add(
        "--compare",
        metavar="A",
        nargs="+",
        help="two bounds term by term, with --set judged at the values; with --set more than two as one table",
    )
    add(
        "--latex",
        action="store_true",
        help="print the statement as LaTeX; without NAME all theorems, with --list the table of all bounds",
    )
    add("--list", action="store_true", help="print the names of the bounds, how they are proved, their titles")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Evaluate or print."""
    from theory.registry import BOUNDS, get_bound

    _refuse_ignored(args)
    _refuse_order(args, BOUNDS)
    bounds = [get_bound(name) for name in args.compare or [args.name] if name is not None]
    values, schedule = values_of(args, bounds)
    if args.compare and len(bounds) > 2:
        show_table(bounds, values, schedule, args)
    elif args.compare:
        show_comparison(bounds[0], bounds[1], values, schedule, args)
    elif args.list:
        _list(BOUNDS, args)
    elif args.name is None and args.latex:
        from staleproof.statements import everything

        emit(everything(BOUNDS.values()))
    elif args.name is None:
        raise InputError(
            "name: not given; give a bound before the options, e.g. delayed-lmo --terms; --list prints the names"
        )
    elif args.tune is not None:
        _tune(bounds[0], tuple(args.tune), values, schedule, args)
    elif args.expand:
        show_expansion(bounds[0], args)
    else:
        _evaluate(bounds[0], values, schedule, args)
    return EXIT_HOLDS


def _refuse_ignored(args: argparse.Namespace) -> None:
    """Refuse options that would have no effect beside each other."""
    modes = ("list", "compare", "tune", "expand", "terms")
    given = [mode for mode in modes if getattr(args, mode) not in (None, False)]
    if len(given) > 1:
        raise InputError(f"{given[1]}: --{given[1]} is not allowed with --{given[0]}; give one of them")
    mode = given[0] if given else None
    if mode == "compare" and len(args.compare) < 2:
        raise InputError(f"compare: {args.compare[0]!r} is one bound; --compare takes 2 or more")
    if args.name is not None and mode in ("list", "compare"):
        which = "--list prints all bounds" if mode == "list" else "--compare takes all bounds"
        raise InputError(f"name: {args.name!r} is one too many; {which}")
    if args.latex and (args.json or mode == "terms"):
        raise InputError(f"latex: --latex is not allowed with --{'json' if args.json else 'terms'}; give one of them")
    refuse_without_values(args, mode)


def _refuse_order(args: argparse.Namespace, bounds: dict[str, Bound]) -> None:
    """Refuse the name of a bound that an option has swallowed."""
    for option in ("set", "tune"):
        word = next((word for word in getattr(args, option) or () if word in bounds), None)
        if word is not None:
            raise InputError(f"{option}: {word!r} is a bound, not a symbol; NAME comes first: {word} --{option} ...")


def _list(bounds: dict[str, Bound], args: argparse.Namespace) -> None:
    from theory.proved import proof_of

    titles = {name: bound.title for name, bound in bounds.items()}
    proofs = {name: proof_of(bound) for name, bound in bounds.items()}
    width, wide = max(map(len, titles)), max(map(len, proofs.values()))
    if args.json:
        proved = {name: proof == "by machine" for name, proof in proofs.items()}
        emit_json({"bounds": titles, "proved": proved})
    elif args.latex:
        from staleproof.statements import NEEDS, table

        emit(f"{NEEDS}\n{table(bounds.values())}")
    else:
        rows = [f"{name:<{width}}  {proofs[name]:<{wide}}  {title}" for name, title in titles.items()]
        emit("\n".join([*rows, "by machine: staleproof prove NAME checks its proof; in words: in its module"]))


def _evaluate(bound: Bound, values: dict[str, float], schedule: list[str], args: argparse.Namespace) -> None:
    import sympy as sp

    from theory.bound import TERM_NAMES

    result: dict[str, Any] = {
        **head(bound),
        **in_words(bound),
        "values": values,
        "schedule": schedule,
        "chosen": {},
        "value": None,
        "terms": None,
        "latex": bound.latex(),
        "term_latex": bound.term_latex(),
    }
    if values or not (args.latex or args.terms):
        result["value"] = float(bound.evaluate(**values))
        result["terms"] = {name: float(term) for name, term in bound.evaluate_terms(**values).items()}
        result["chosen"] = {name: bound.chosen(values)[name] for name in bound.optional if name not in values}
        result |= _lag(bound, values, result["terms"])
    if args.json:
        emit_json(result)
    elif args.latex:
        from staleproof.statements import NEEDS_ONE, statement

        emit(f"{NEEDS_ONE}\n{statement(bound)}")
    elif args.terms:
        emit(hypotheses(bound, schedule))
        for name, term in bound.terms.items():
            here = f" = {number(result['terms'][name])}" if result["terms"] else ""
            emit(f"  {name}: {TERM_NAMES[name]}\n    {sp.sstr(term)}{here}")
        emit(meaning_lines(bound))
    else:
        emit(hypotheses(bound, schedule))
        _print_terms(result["terms"], result["value"])
        for name, taken in result["chosen"].items():
            emit(f"  {name} = {number(taken)} ({bound.left_out(name)})")


def _tune(
    bound: Bound, names: tuple[str, ...], values: dict[str, float], schedule: list[str], args: argparse.Namespace
) -> None:
    from theory.evaluation import latex_of

    names = names or tuple(name for name in ("eta", "gamma") if name in bound.symbols)[:1]
    tuned = bound.tune(names, **values)
    result = {
        **head(bound),
        "values": values,
        "schedule": schedule,
        "at": tuned.at,
        "value": tuned.value,
        "terms": tuned.terms,
        "method": tuned.method,
        "check": tuned.check,
        "limited_by": tuned.limited_by,
        "relative_price": tuned.relative_price,
        "relative_price_total": tuned.relative_price_total,
        "relative_price_note": tuned.relative_price_note,
        "formula": {name: latex_of(expression) for name, expression in tuned.formula.items()},
    }
    if args.json:
        emit_json(result)
    elif args.latex:
        if not tuned.formula:
            raise InputError(f"latex: {bound.name} tuned over {', '.join(names)} has no closed form here")
        emit(f"{commented(bound)}\n{tuned_latex(bound, tuned.formula)}")
    else:
        emit(hypotheses(bound, schedule))
        _print_terms(tuned.terms, tuned.value)
        for name, best in tuned.at.items():
            emit(f"  {name} = {number(best)} (best, {tuned.method})")
        emit(f"checked: {tuned.check}")
        if tuned.limited_by:
            emit(f"limited by {tuned.limited_by}")
        if tuned.relative_price_total is not None:
            emit(f"relative price of the delay: {tuned.relative_price_total:.4f} above the bound tuned at delay 0")
        else:
            emit(f"relative price of the delay: not defined, {tuned.relative_price_note}")


def _lag(bound: Bound, values: dict[str, float], terms: dict[str, float]) -> dict[str, float]:
    """The factor of L eta in the terms of age, and the index of the measured gradient, where a bound has them."""
    out: dict[str, Any] = {}
    if "s" in bound.symbols:
        out["reference_index"] = int(float(bound.chosen(values)["s"]))  # type: ignore[arg-type]
    if bound.unit == "f/x" and values.get("L", 0) > 0 and "eta" in values:
        age = sum(terms.get(name, 0.0) for name in ("momentum_lag", "delay", "reference"))
        out["lag_coefficient"] = age / (values["L"] * values["eta"])
    return out


def _print_terms(terms: dict[str, float], value: float) -> None:
    width = max(len(name) for name in (*terms, "total"))
    emit("\n".join(f"  {name:<{width}}  {number(term)}" for name, term in terms.items()))
    emit(f"  {'total':<{width}}  {number(value)}")
