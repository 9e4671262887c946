"""One look for all figures: sizes, fonts, colours, log axes, and saving without traces of time or user settings.

Colours are those of Okabe and Ito (2008), safe for the common kinds of colour blindness; where a colour carries
meaning, a marker, a dash pattern or a word carries it too. Figures are made through matplotlib's object interface
inside `context`, so pyplot's state and the user's rcParams stay as they were.
"""

from __future__ import annotations

import csv
import io
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.mathtext import MathTextParser

from figures.errors import InputError
from figures.files import write_bytes
from figures.text import clean, is_safe_math

PNG_DPI = 200
WIDTH = 7.2  # inches: the text width of a two-column paper
BLACK, GREY, LIGHT = "#1a1a1a", "#767676", "#d9d9d9"
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PINK, YELLOW = "#56B4E9", "#CC79A7", "#F0E442"
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, RED, YELLOW, GREY)
TERM_COLOURS = {
    "initial": BLUE,
    "step": SKY,
    "momentum_lag": GREEN,
    "delay": RED,
    "noise": PINK,
    "start": YELLOW,
    "start_shift": GREY,
    "return": ORANGE,
    "reference": "#332288",
}
TERM_NAMES = {
    "initial": "initial distance",
    "step": "step size",
    "momentum_lag": "momentum lag",
    "delay": "delay",
    "noise": "gradient noise",
    "start": "momentum start",
    "start_shift": "first steps",
    "return": "return to the iterate",
    "reference": "age against the reference",
}

_RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.0,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.edgecolor": GREY,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.unicode_minus": True,
    "axes.labelcolor": BLACK,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "text.color": BLACK,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.hashsalt": "figures",
    "figure.constrained_layout.use": False,
    "text.usetex": False,
}


@dataclass(frozen=True)
class Drawing:
    """One finished figure with its words and its data.

    Attributes:
        name: file stem; title, caption: plain text, the caption says what is compared and why the two part.
        figure: the drawn figure; header, rows: the CSV beside it (one row per drawn point).
        notes: what was left out of the picture, one sentence each.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    header: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or any(not (c.isascii() and (c.isalnum() or c in "_-")) for c in self.name):
            raise InputError(f"name: {self.name!r} is no file stem; allowed are ASCII letters, digits, _ and -")
        for row in self.rows:
            if len(row) != len(self.header):
                raise InputError(f"rows: {len(row)} cells in figure {self.name}; allowed is {len(self.header)}")

    @property
    def words(self) -> str:
        """Caption and notes together."""
        return " ".join((self.caption, *self.notes))


@contextmanager
def context() -> Iterator[None]:
    """matplotlib's defaults plus our style; the user's rcParams come back at the end."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)  # type: ignore[arg-type, unused-ignore]
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of the given size in inches, with constrained layout."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@lru_cache(maxsize=1)
def _known_characters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap())


def label(value: object, longest: int = 44) -> str:
    """Text for a figure: never read as mathematics, no glyph the font lacks, at most `longest` characters."""
    cleaned = "".join(c if ord(c) in _known_characters() else "□" for c in clean(value))
    if len(cleaned) > longest:
        cleaned = cleaned[: longest - 1] + "…"
    return cleaned.replace("$", r"\$")


def wrapped(value: object, width: int, lines: int = 2) -> str:
    """A label broken into at most `lines` lines of about `width` characters; what does not fit ends in an ellipsis."""
    broken = textwrap.wrap(clean(value), width, max_lines=lines, placeholder=" …")
    return "\n".join(label(line, width + 8) for line in broken)


def dialect(formula: str) -> str:
    """`formula` in matplotlib's dialect, which lacks a few short names of LaTeX."""
    return re.sub(r"\\(le|ge)(?![A-Za-z])", r"\\\1q", formula)


@lru_cache(maxsize=512)
def parses(formula: str) -> bool:
    """True if matplotlib can draw this LaTeX formula."""
    if not is_safe_math(formula):
        return False
    try:
        MathTextParser("path").parse(f"${dialect(formula)}$", 72, FontProperties(family="DejaVu Sans"))
    except ValueError:
        return False
    return True


def math_label(formula: str, fallback: object) -> str:
    """`formula` as mathematics if matplotlib can draw it, else the fallback text."""
    return f"${dialect(formula)}$" if parses(formula) else label(fallback)


def term_colour(name: str, position: int = 0) -> str:
    """The colour of a bound's term; an unknown name takes a dark one by its `position` among all names."""
    return TERM_COLOURS.get(name, ("#332288", "#882255", BLACK)[position % 3])


def tint(colour: str, amount: float) -> tuple[float, float, float]:
    """`colour` mixed with white; amount 0 is the colour itself, 1 is white."""
    r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return (r + (1 - r) * amount, g + (1 - g) * amount, b + (1 - b) * amount)


def say_nothing_to_draw(axes: Axes, why: str) -> None:
    """Write the reason into an axes that would otherwise be empty."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, label(why, 80), transform=axes.transAxes, ha="center", va="center", color=GREY, wrap=True)


def positive(y: np.ndarray) -> tuple[np.ndarray, int]:
    """`y` for a log axis, with NaN where it is not positive and finite, and how many such points there are."""
    good = np.isfinite(y) & (y > 0)
    return np.where(good, y, np.nan), int(y.size - good.sum())


def log_errorbar(axes: Axes, x: np.ndarray, y: np.ndarray, error: np.ndarray, **style: Any) -> tuple[int, int]:
    """Points with error bars on a log axis.

    A lower end at or below zero is cut a little above the smallest drawn value and marked with a triangle.

    Returns:
        (points dropped because they are not positive and finite, lower ends cut).
    """
    shown, dropped = positive(y)
    keep = np.isfinite(shown)
    x, y = x[keep], shown[keep]
    error = np.nan_to_num(error[keep] if error.size == keep.size else np.zeros(y.size), nan=0.0, posinf=0.0)
    error = np.maximum(error, 0.0)
    if not y.size:
        return dropped, 0
    cut = error >= y
    floor = 0.5 * float(y.min())
    below = np.where(cut, y - floor, error)
    axes.errorbar(x, y, yerr=np.vstack([below, error]), **style)
    if cut.any():
        axes.plot(
            x[cut],
            np.full(int(cut.sum()), floor),
            linestyle="none",
            marker="v",
            markersize=4,
            color=style.get("color", BLACK),
        )
    return dropped, int(cut.sum())


def counted(count: int, singular: str, plural: str) -> tuple[str, ...]:
    """A note that names a count, or nothing for zero."""
    return () if count == 0 else ((f"1 {singular}",) if count == 1 else (f"{count} {plural}",))


def csv_cell(value: object) -> str:
    """A CSV cell: floats in full precision, missing empty."""
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return clean(value)


def csv_bytes(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """A CSV file as UTF-8 bytes with Unix line ends."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([csv_cell(cell) for cell in row] for row in rows)
    return stream.getvalue().encode("utf-8")


def save(drawing: Drawing, folder: Path) -> tuple[list[Path], bytes]:
    """Write NAME.pdf, NAME.png and NAME.csv into `folder`; returns the paths and the PNG's bytes.

    The layout is computed once for both. The same drawing gives the same bytes: no dates, no program versions.
    """
    figure = drawing.figure
    figure.set_dpi(PNG_DPI)
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    png, pdf = io.BytesIO(), io.BytesIO()
    FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
    metadata = {"CreationDate": None, "Creator": None, "Producer": None, "Title": drawing.title}
    figure.set_dpi(72)
    FigureCanvasPdf(figure).print_pdf(pdf, metadata=metadata)
    contents = {"pdf": pdf.getvalue(), "png": png.getvalue(), "csv": csv_bytes(drawing.header, drawing.rows)}
    return [write_bytes(folder / f"{drawing.name}.{end}", content) for end, content in contents.items()], png.getvalue()


def save_as(drawing: Drawing, path: Path) -> list[Path]:
    """Write the figure to `path`, in the format of its ending, and its data beside it as CSV; returns both paths."""
    suffix = path.suffix.lower()
    if suffix not in (".png", ".pdf", ".svg"):
        raise InputError(f"figure: {str(path)!r} is not allowed; give a name that ends in .png, .pdf or .svg")
    stream = io.BytesIO()
    metadata = {"Date": None} if suffix == ".svg" else {"CreationDate": None} if suffix == ".pdf" else {}
    drawing.figure.savefig(stream, format=suffix[1:], dpi=PNG_DPI, metadata=metadata)
    data = path.with_suffix(".csv")
    return [write_bytes(path, stream.getvalue()), write_bytes(data, csv_bytes(drawing.header, drawing.rows))]


def finite_max(values: Sequence[float], default: float = math.nan) -> float:
    """Largest finite value, or `default`."""
    return max((v for v in values if math.isfinite(v)), default=default)
