"""One table value and its three renderings: LaTeX (booktabs), HTML and CSV.

A cell is text (always escaped), a number, None (a dash), a `Math` formula, an `Estimate` with its interval, or
a `Mark` (text with a tone). The LaTeX needs array, booktabs, longtable, amsmath and amssymb, but no siunitx: a
missing value or an interval in a number column cannot stop the compiler.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from figures import text
from figures.errors import InputError
from figures.style import csv_bytes

LONG = 20  # more rows than this: a longtable with a repeated header
TONES = ("good", "bad", "warn", "quiet")


@dataclass(frozen=True)
class Math:
    """A LaTeX formula without dollar signs; `fallback` is shown if it is absent or no plain mathematics."""

    latex: str
    fallback: str = ""


@dataclass(frozen=True)
class Estimate:
    """A value with the ends of its interval (NaN if unknown)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Digits:
    """A number shown with a given number of significant digits."""

    value: float
    digits: int


@dataclass(frozen=True)
class Mark:
    """A word with a tone: good, bad, warn or quiet."""

    word: str
    tone: str

    def __post_init__(self) -> None:
        if self.tone not in TONES:
            raise InputError(f"tone: {self.tone!r} is unknown; allowed are {', '.join(TONES)}")


Cell = str | int | float | None | Math | Estimate | Digits | Mark


@dataclass(frozen=True)
class Column:
    """A column: header text, alignment "l", "r" or "p" (wrapped text, `width` as a share of the line)."""

    header: str
    align: str = "l"
    width: float = 0.3

    def __post_init__(self) -> None:
        if self.align not in ("l", "r", "p"):
            raise InputError(f"align: {self.align!r} is unknown; allowed are l, r, p")


@dataclass(frozen=True)
class Table:
    """A finished table; every row has one cell per column."""

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        if re.fullmatch(r"[a-z0-9_-]+", self.name) is None:
            raise InputError(f"name: {self.name!r} is no file stem; allowed are a-z, 0-9, _ and -")
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InputError(f"rows: {len(row)} cells in table {self.name}; allowed is {len(self.columns)}")


def cell_latex(cell: Cell) -> str:
    """One cell as LaTeX, without unescaped & or %."""
    if isinstance(cell, str):
        return text.latex(cell)
    if cell is None:
        return "--"
    if isinstance(cell, Math):
        return f"${cell.latex}$" if text.is_safe_math(cell.latex) else text.latex(cell.fallback or cell.latex)
    if isinstance(cell, Estimate):
        return text.latex_interval(cell.value, cell.low, cell.high)
    if isinstance(cell, Digits):
        return text.latex_number(cell.value, cell.digits)
    if isinstance(cell, Mark):
        return rf"\textbf{{{text.latex(cell.word)}}}" if cell.tone == "bad" else text.latex(cell.word)
    return text.latex_number(cell)


def cell_html(cell: Cell, formula: Callable[[str, str], str]) -> str:
    """One cell as HTML; `formula(latex, fallback)` renders mathematics."""
    if isinstance(cell, str):
        return text.html(cell)
    if cell is None:
        return text.MISSING
    if isinstance(cell, Math):
        return formula(cell.latex, cell.fallback)
    if isinstance(cell, Estimate):
        return text.html_interval(cell.value, cell.low, cell.high)
    if isinstance(cell, Digits):
        return text.html_number(cell.value, cell.digits)
    if isinstance(cell, Mark):
        return f"<span class='{cell.tone}'>{text.html(cell.word)}</span>"
    return text.html_number(cell)


def _csv_cells(cell: Cell) -> str | int | float | None:
    if isinstance(cell, Math):
        return cell.latex or cell.fallback
    if isinstance(cell, Estimate):
        return f"{cell.value!r} [{cell.low!r}, {cell.high!r}]"
    if isinstance(cell, Digits):
        return cell.value
    return cell.word if isinstance(cell, Mark) else cell


def table_csv(table: Table) -> bytes:
    """The table as CSV, numbers in full precision."""
    return csv_bytes([column.header for column in table.columns], [[_csv_cells(c) for c in row] for row in table.rows])


def table_html(table: Table, formula: Callable[[str, str], str]) -> str:
    """The table as an HTML figure with its caption."""
    head = "".join(f"<th class='{c.align}'>{text.html(c.header)}</th>" for c in table.columns)
    body = []
    for row in table.rows:
        bad = any(isinstance(cell, Mark) and cell.tone == "bad" for cell in row)
        cells = "".join(
            f"<td class='{column.align}'>{cell_html(cell, formula)}</td>"
            for column, cell in zip(table.columns, row, strict=True)
        )
        body.append(f"<tr{' class=badrow' if bad else ''}>{cells}</tr>")
    if not body:
        body.append(f"<tr><td colspan='{len(table.columns)}' class='quiet'>no rows</td></tr>")
    return (
        f"<figure class='table' id='table-{table.name}'><div class='scroll'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div><figcaption><b>{text.html(table.title)}.</b> "
        f"{text.html(table.caption)}</figcaption></figure>"
    )


def table_latex(table: Table) -> str:
    """The table as a LaTeX float, or as a longtable beyond `LONG` rows; one caption and one label."""
    layout = "".join(
        rf">{{\raggedright\arraybackslash}}p{{{column.width:.2f}\linewidth}}" if column.align == "p" else column.align
        for column in table.columns
    )
    layout = "@{}" + layout + "@{}"
    head = " & ".join(text.latex(column.header) for column in table.columns) + r" \\"
    lines = [" & ".join(cell_latex(cell) for cell in row) + r" \\" for row in table.rows]
    lines = lines or [rf"\multicolumn{{{len(table.columns)}}}{{l}}{{no rows}} \\"]
    lines = [(r"\relax " + line) if line.startswith("[") else line for line in lines]
    caption = rf"\caption{{\textbf{{{text.latex(table.title)}.}} {text.latex(table.caption)}}}"
    label = rf"\label{{tab:{table.name}}}"
    start = "% needs \\usepackage{array,booktabs,longtable,amsmath,amssymb}"
    if len(lines) <= LONG:
        return "\n".join(
            [
                start,
                r"\begin{table}[htbp]",
                r"\centering\small",
                caption,
                label,
                rf"\begin{{tabular}}{{{layout}}}",
                r"\toprule",
                head,
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )
    return "\n".join(
        [
            start,
            r"{\small",
            rf"\begin{{longtable}}{{{layout}}}",
            caption + label + r" \\",
            r"\toprule",
            head,
            r"\midrule",
            r"\endfirsthead",
            r"\toprule",
            head,
            r"\midrule",
            r"\endhead",
            r"\bottomrule",
            r"\endfoot",
            *lines,
            r"\end{longtable}",
            "}",
            "",
        ]
    )


def document_latex(names: list[str]) -> str:
    """A document that inputs all tables, to compile and look at them at once."""
    inputs = "\n\n".join(rf"\input{{{name}.tex}}" for name in names)
    return (
        "\\documentclass[10pt]{article}\n\\usepackage[utf8]{inputenc}\n"
        "\\usepackage[margin=2cm,landscape]{geometry}\n\\usepackage{array,booktabs,longtable,amsmath,amssymb}\n"
        f"\\begin{{document}}\n{inputs}\n\\end{{document}}\n"
    )


def estimate(interval: object) -> Estimate | None:
    """An interval of a result file as a cell; None if there is none."""
    if not isinstance(interval, dict) or not interval:
        return None
    from figures.results import number

    value, low, high = (number(interval.get(key)) for key in ("value", "low", "high"))
    return Estimate(value, low, high) if not math.isnan(value) else None
