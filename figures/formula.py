"""Formulas for the report: LaTeX drawn by matplotlib's mathematics engine as inline SVG paths.

No script, no font and no network is needed to read them; the LaTeX source stays in the label of the picture.
"""

from __future__ import annotations

from functools import lru_cache

from matplotlib.font_manager import FontProperties
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath

from figures.style import dialect, parses
from figures.text import html

_SIZE = 100.0  # units per em in the SVG
_LETTERS = {Outline.MOVETO: "M", Outline.LINETO: "L", Outline.CURVE3: "Q", Outline.CURVE4: "C"}


def _path_data(outline: Outline) -> str:
    parts = []
    for points, code in outline.iter_segments(curves=True, simplify=False):
        if code == Outline.CLOSEPOLY:
            parts.append("Z")
            continue
        flipped = [f"{v if i % 2 == 0 else -v:.0f}" for i, v in enumerate(points)]
        parts.append(_LETTERS[code] + " ".join(flipped))
    return "".join(parts)


@lru_cache(maxsize=1024)
def formula_html(latex: str, fallback: str = "", display: bool = False) -> str:
    """A formula as inline SVG that scales with the text; source text in <code> if it cannot be drawn.

    With `display` fractions keep their full size.
    """
    if not parses(latex):
        return f"<code>{html(fallback or latex)}</code>"
    drawn = dialect(latex.replace(r"\frac", r"\dfrac") if display else latex)
    outline = TextPath((0, 0), f"${drawn}$", size=_SIZE, prop=FontProperties(family="DejaVu Sans"))
    if not len(outline.vertices):
        return f"<code>{html(fallback or latex)}</code>"
    box = outline.get_extents()
    left, bottom, width, height = box.x0 - 4, box.y0 - 4, box.width + 8, box.height + 8
    scale = 1.0 / _SIZE
    style = f"width:{width * scale:.3f}em;height:{height * scale:.3f}em;vertical-align:{bottom * scale:.3f}em"
    return (
        f"<svg class='math{' display' if display else ''}' role='img' aria-label='{html(latex)}' style='{style}' "
        f"viewBox='{left:.0f} {-bottom - height:.0f} {width:.0f} {height:.0f}'>"
        f"<path d='{_path_data(outline)}'/></svg>"
    )
