"""LaTeX of the theory: statements of theorems, the table of all bounds with their conditions, the lists behind them.

Fragments for a document with amsmath, amssymb, booktabs and longtable.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from figures.text import latex as escape
from theory.bound import Bound
from theory.evaluation import latex_of
from theory.latex_words import ASSUMPTIONS_LATEX, assumption_latex, meaning_latex
from theory.symbols import QUANTITIES, latex_names

NEEDS = "% needs amsmath, amssymb, booktabs, longtable"
_KIND = {"derived here": "derived here", "paper": "from the paper", "as reported": "as reported"}
#: Shares of the width: bound, what is bounded, conditions, kind.
_COLUMNS = (0.21, 0.37, 0.26, 0.16)
_LONG = 200  # characters of LaTeX of a term from which every minimum and maximum in it gets a letter
_WIDTH = r"\dimexpr\textwidth-6\tabcolsep\relax"


def statement(bound: Bound) -> str:
    """A paragraph: title, assumptions, conditions, the inequality with one term a line, the reference."""
    terms, where = _shortened(bound)
    signs = [r"\quad \le{}", *[r"\quad {}+"] * (len(terms) - 1)]
    lines = [f"& {bound.metric}"]
    lines += [f"& {sign} {_bracketed(term)}" for sign, term in zip(signs, terms, strict=True)]
    conditions = f" If {' and '.join(map(_inline, bound.conditions))}, then" if bound.conditions else " Then"
    named = f"Here {' and '.join(where)}. " if where else ""
    best = [f"${QUANTITIES[name].latex} = {latex_of(choice)}$" for name, choice in bound.optional.items()]
    choice = f" Where it is not given, {', '.join(best)}." if best else ""
    return "\n".join(
        [
            r"\begin{sloppypar}",
            f"\\paragraph{{{escape(bound.title)} (\\texttt{{{_breakable(bound.name)}}}).}}",
            f"Assume {escape(', '.join(bound.assumptions))}.{conditions}",
            r"\begin{align*}",
            " \\\\\n".join(lines),
            r"\end{align*}",
            f"{named}{_first_up(bound.kind)}{_origin(bound)}: {escape(bound.reference)}.{choice}",
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
    """All statements, the table, the assumptions and the symbols."""
    every = list(bounds)
    parts = [*map(statement, every), table(every), assumptions(every), symbols(every)]
    return "\n\n".join([NEEDS, *parts])


def _shortened(bound: Bound) -> tuple[list[str], list[str]]:
    """LaTeX of the terms, and `$n = ...$` for each minimum or maximum that fills a line or stands twice in a term."""
    found = sorted(bound.expression.atoms(sp.Min, sp.Max), key=sp.default_sort_key)
    long = [bound.terms[name] for name, text in bound.term_latex().items() if len(text) > _LONG]
    often = [part for part in found if any(term.count(part) > 1 for term in bound.terms.values())]
    often += [part for part in found if part not in often and any(term.has(part) for term in long)]
    letters = [f"n_{{{i}}}" for i in range(1, len(often) + 1)] if len(often) > 1 else ["n"]
    names = {sp.Symbol(letter): part for letter, part in zip(letters, often, strict=False)}
    short = {part: letter for letter, part in names.items()}
    latex = {**latex_names(), **{letter: str(letter) for letter in names}}
    terms = [str(sp.latex(term.subs(short), symbol_names=latex)) for term in bound.terms.values()]
    return terms, [f"${letter} = {latex_of(part)}$" for letter, part in names.items()]


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
