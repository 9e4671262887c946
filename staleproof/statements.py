"""LaTeX of the theory: statements of theorems, the table of all bounds with their conditions, the lists behind them.

Fragments for a document with amsmath and amssymb. Those with a table need booktabs and longtable, too, and one column.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from figures.text import latex as escape
from theory.bound import Bound
from theory.evaluation import latex_of
from theory.latex_words import ASSUMPTIONS_LATEX, assumption_latex, meaning_latex, quantities_of
from theory.symbols import QUANTITIES, latex_names

NEEDS = (
    "% needs amsmath, amssymb, booktabs, longtable\n"
    r"% for one column of text; in a two-column document put \onecolumn before it and \twocolumn after it"
)
NEEDS_ONE = "% needs amsmath, amssymb; fits a column of a two-column article"
_KIND = {"derived here": "derived here", "paper": "from the paper", "as reported": "as reported"}
#: Shares of the width: bound, what is bounded, conditions, kind.
_COLUMNS = (0.21, 0.37, 0.26, 0.16)
_LONG = 200  # characters of LaTeX of a term from which every minimum and maximum in it gets a letter
_FILLS_A_LINE = 170  # ... from which, after that, a sum in it gets one
_WIDTH = r"\dimexpr\textwidth-6\tabcolsep\relax"


def statement(bound: Bound, listed: bool = False) -> str:
    r"""A paragraph: title, assumptions, conditions, the inequality with one term a line and \label{bound:NAME}, its
    symbols, the reference. `listed`: assumptions by name and no symbols, which a list of all bounds has at its end.
    """
    terms, where = _shortened(bound)
    signs = [r"\quad \le{}", *[r"\quad {}+"] * (len(terms) - 1)]
    lines = [f"& {bound.metric}"]
    lines += [f"& {sign} {_bracketed(term)}" for sign, term in zip(signs, terms, strict=True)]
    conditions = f"If {' and '.join(map(_inline, bound.conditions))}, then" if bound.conditions else "Then"
    assumed = f"Assume {escape(', '.join(bound.assumptions))}." if listed else f"Assume\n{assumptions([bound])}"
    named = f"Here {' and '.join(where)}." if where else ""
    best = [f"${QUANTITIES[name].latex} = {latex_of(choice)}$" for name, choice in bound.optional.items()]
    choice = f"Where it is not given, {', '.join(best)}." if best else ""
    kind = f"{_first_up(bound.kind)}{_origin(bound)}: {escape(bound.reference)}."
    return "\n".join(
        [
            r"\begin{sloppypar}",
            f"\\paragraph{{{escape(bound.title)} (\\texttt{{{_breakable(bound.name)}}}).}}",
            assumed,
            conditions,
            rf"\begin{{equation}}\label{{bound:{bound.name}}}",
            r"\begin{aligned}",
            " \\\\\n".join(lines),
            r"\end{aligned}",
            r"\end{equation}",
            *filter(None, (named, choice, "" if listed else _symbols_of(bound), kind)),
            r"\end{sloppypar}",
        ]
    )


def table(bounds: Iterable[Bound]) -> str:
    """A longtable as wide as the text: name, what is bounded, under which conditions, kind and origin."""
    head = r"bound & what is bounded & if & kind \tabularnewline"
    rows = [
        " & ".join(
            rf"\raggedright {cell}"
            for cell in (
                f"\\texttt{{{_breakable(bound.name)}}}",
                f"${bound.metric}$",
                ", ".join(map(_inline, bound.conditions)) or "---",
                f"{bound.kind}, {_KIND[bound.origin]}",
            )
        )
        + r" \tabularnewline"
        for bound in bounds
    ]
    columns = "".join(f"p{{{share}{_WIDTH}}}" for share in _COLUMNS)
    return "\n".join(
        [
            r"\begingroup\footnotesize",
            rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
            r"\toprule",
            head,
            r"\midrule \endfirsthead",
            r"\toprule",
            head,
            r"\midrule \endhead",
            r"\bottomrule \endfoot",
            *rows,
            r"\end{longtable}",
            r"\endgroup",
        ]
    )


def assumptions(bounds: Iterable[Bound]) -> str:
    """What the named assumptions say, in mathematics, each once."""
    used = {name for bound in bounds for name in bound.assumptions}
    items = [f"\\item[{escape(name)}] {assumption_latex(name)}" for name in ASSUMPTIONS_LATEX if name in used]
    return "\n".join([r"\begin{description}\sloppy", *items, r"\end{description}"])


def symbols(bounds: Iterable[Bound]) -> str:
    """Every symbol once: its meaning and domain."""
    used = {name for bound in bounds for name in bound.symbols}
    rows = [
        f"${quantity.latex}$ & {meaning_latex(name) or escape(quantity.meaning)} & {escape(quantity.domain.text)} \\\\"
        for name, quantity in QUANTITIES.items()
        if name in used
    ]
    head = r"symbol & meaning & domain \\"
    begin = [r"\begin{longtable}{lp{0.55\textwidth}p{0.25\textwidth}}", r"\toprule", head, r"\midrule \endhead"]
    return "\n".join([*begin, r"\bottomrule \endfoot", *rows, r"\end{longtable}"])


def everything(bounds: Iterable[Bound]) -> str:
    """All statements, the table, the assumptions and the symbols, each of these once."""
    every = list(bounds)
    parts = [*(statement(bound, listed=True) for bound in every), table(every), assumptions(every), symbols(every)]
    return "\n\n".join([NEEDS, *parts])


def _symbols_of(bound: Bound) -> str:
    """A sentence with every symbol of the bound and of its assumptions."""
    used = {*bound.symbols, *(name for assumed in bound.assumptions for name in quantities_of(assumed))}
    named = [QUANTITIES[name] for name in QUANTITIES if name in used]
    words = [f"${quantity.latex}$: {meaning_latex(quantity.name) or escape(quantity.meaning)}" for quantity in named]
    return f"Symbols: {'; '.join(words)}."


def _shortened(bound: Bound) -> tuple[list[str], list[str]]:
    """LaTeX of the terms, and `$n = ...$` for each minimum or maximum that fills a line or stands twice in a term, and
    for a sum in a term that would still fill a line."""
    found = sorted(bound.expression.atoms(sp.Min, sp.Max), key=sp.default_sort_key)
    long = [bound.terms[name] for name, text in bound.term_latex().items() if len(text) > _LONG]
    often = [part for part in found if any(term.count(part) > 1 for term in bound.terms.values())]
    often += [part for part in found if part not in often and any(term.has(part) for term in long)]
    names = _letters("n", often)
    terms = _replaced(bound.terms.values(), names)
    latex = {**latex_names(), **{letter: str(letter) for letter in names}}
    sums = [_part(term) for term in terms if len(sp.latex(term, symbol_names=latex)) > _FILLS_A_LINE]
    again = _letters("A", list(dict.fromkeys(part for part in sums if part is not None)))
    latex |= {letter: str(letter) for letter in again}
    where = [*names.items(), *again.items()]
    shown = [str(sp.latex(term, symbol_names=latex)) for term in _replaced(terms, again)]
    return shown, [f"${letter} = {sp.latex(part, symbol_names=latex)}$" for letter, part in where]


def _letters(letter: str, parts: list[sp.Expr]) -> dict[sp.Symbol, sp.Expr]:
    """A letter for each part, with an index where there are several."""
    named = [f"{letter}_{{{i}}}" for i in range(1, len(parts) + 1)] if len(parts) > 1 else [letter]
    return {sp.Symbol(name): part for name, part in zip(named, parts, strict=False)}


def _replaced(terms: Iterable[sp.Expr], names: dict[sp.Symbol, sp.Expr]) -> list[sp.Expr]:
    return [term.subs({part: letter for letter, part in names.items()}) for term in terms]


def _part(term: sp.Expr) -> sp.Expr | None:
    """The longest sum in a term that is at most two thirds of it."""
    parts = [part for part in term.atoms(sp.Add) if 3 * part.count_ops() <= 2 * term.count_ops()]
    return max(parts, key=lambda part: (part.count_ops(), sp.default_sort_key(part)), default=None)


def _inline(relation: sp.Basic) -> str:
    """A relation in the text, where it may break at any sign: brackets of one size."""
    return "$" + latex_of(relation).replace(r"\left(", "(").replace(r"\right)", ")") + "$"


def _origin(bound: Bound) -> str:
    return "" if bound.reference.startswith(bound.origin) else f", {_KIND[bound.origin]}"


def _bracketed(term: str) -> str:
    return rf"\left({term}\right)" if term.startswith("-") else term


def _breakable(name: str) -> str:
    return escape(name).replace("-", "-\\allowbreak{}")


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]
