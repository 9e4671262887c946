"""LaTeX of the theory: statements of theorems, the table of all bounds with their conditions, the lists behind them.

Fragments for a document with amsmath, amssymb, booktabs and longtable.
"""

from __future__ import annotations

from collections.abc import Iterable

from figures.text import latex as escape
from theory.assumptions import ASSUMPTIONS
from theory.bound import Bound
from theory.evaluation import latex_of
from theory.symbols import QUANTITIES

NEEDS = "% needs amsmath, amssymb, booktabs, longtable"
_KIND = {"derived here": "derived here", "paper": "from the paper", "as reported": "as reported"}


def statement(bound: Bound) -> str:
    """A paragraph: title, assumptions, conditions, the inequality with one term a line, the reference."""
    terms = list(bound.term_latex().values())
    lines = [f"{bound.metric} \\le{{}} & {_bracketed(terms[0])}"] + [f"& + {_bracketed(term)}" for term in terms[1:]]
    conditions = f" If ${'$ and $'.join(map(latex_of, bound.conditions))}$, then" if bound.conditions else " Then"
    where = [f"${QUANTITIES[name].latex} = {latex_of(best)}$" for name, best in bound.optional.items()]
    choice = f" Where it is not given, {', '.join(where)}." if where else ""
    return "\n".join(
        [
            f"\\paragraph{{{escape(bound.title)} (\\texttt{{{escape(bound.name)}}}).}}",
            f"Assume {escape(', '.join(bound.assumptions))}.{conditions}",
            "\\begin{align*}",
            " \\\\\n".join(lines),
            "\\end{align*}",
            f"{_first_up(bound.kind)}{_origin(bound)}: {escape(bound.reference)}.{choice}",
        ]
    )


def table(bounds: Iterable[Bound]) -> str:
    """A longtable: name, what is bounded, under which conditions, kind and origin."""
    head = r"bound & what is bounded & if & kind \\"
    rows = [
        f"\\texttt{{{_breakable(bound.name)}}} & ${bound.metric}$ & "
        f"{', '.join(f'${latex_of(condition)}$' for condition in bound.conditions) or '---'} & "
        f"{bound.kind}, {_KIND[bound.origin]} \\\\"
        for bound in bounds
    ]
    return "\n".join(
        [
            r"\begin{longtable}{p{0.24\textwidth}p{0.27\textwidth}p{0.25\textwidth}p{0.14\textwidth}}",
            r"\toprule",
            head,
            r"\midrule \endfirsthead",
            r"\toprule",
            head,
            r"\midrule \endhead",
            r"\bottomrule \endfoot",
            *rows,
            r"\end{longtable}",
        ]
    )


def assumptions(bounds: Iterable[Bound]) -> str:
    """What the named assumptions mean, each once."""
    used = {name for bound in bounds for name in bound.assumptions}
    items = [f"\\item[{escape(name)}] {escape(text)}" for name, text in ASSUMPTIONS.items() if name in used]
    return "\n".join(["\\begin{description}", *items, "\\end{description}"])


def symbols(bounds: Iterable[Bound]) -> str:
    """Every symbol once: its meaning and domain."""
    used = {name for bound in bounds for name in bound.symbols}
    rows = [
        f"${quantity.latex}$ & {escape(quantity.meaning)} & {escape(quantity.domain.text)} \\\\"
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


def _origin(bound: Bound) -> str:
    return "" if bound.reference.startswith(bound.origin) else f", {_KIND[bound.origin]}"


def _bracketed(term: str) -> str:
    return rf"\left({term}\right)" if term.startswith("-") else term


def _breakable(name: str) -> str:
    return escape(name).replace("-", "-\\allowbreak{}")


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]
