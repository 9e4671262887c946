"""Writes everything that is shown: figures, tables and the report page, from the result files of one folder.

The output depends on the result files only: a second call writes the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from figures import (
    bound_terms,
    gap,
    loss_curves,
    page,
    quadratic_curves,
    style,
    tables,
    timeline,
    utilisation,
    waterfall,
    window_losses,
)
from figures.files import write_bytes, write_text
from figures.results import Results, load
from figures.style import Drawing
from figures.table import document_latex, table_csv, table_latex

MANIFEST = "report.json"

# section -> the figures of its part of the report, in the order shown
FIGURES: dict[str, tuple[Callable[[Results], list[Drawing]], ...]] = {
    "delays": (timeline.draw,),
    "quadratic": (quadratic_curves.draw,),
    "proofs": (),
    "certified": (bound_terms.draw_certified, utilisation.draw),
    "empirics": (waterfall.draw_empirics, window_losses.draw),
    "training": (gap.draw, loss_curves.draw, bound_terms.draw_training, waterfall.draw_training),
}


def _old_files(folder: Path) -> list[str]:
    """Files that an earlier report of this folder wrote, by its own list."""
    try:
        listed = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    if not isinstance(listed, list):
        return []
    names = [name for name in listed if isinstance(name, str)]
    return [n for n in names if Path(n).parts[:1] in (("figures",), ("tables",)) and len(Path(n).parts) == 2]


def write_report(folder: Path) -> list[Path]:
    """Read the result files in `folder` and write the report beside them.

    Writes ``report.html``, ``figures/*.pdf|png|csv``, ``tables/*.tex|csv``, ``tables/all.tex`` (inputs every table)
    and ``report.json`` (the list of files with captions). Files of an earlier report that are no longer drawn are
    removed. A missing section is said so in the report.

    Returns:
        The paths written, ``report.html`` first.

    Raises:
        InputError: if `folder` has no readable status.json or cannot be written to.
    """
    folder = Path(folder)
    results = load(folder)
    before = _old_files(folder)
    built = tables.build(results)
    drawn: dict[str, list[tuple[Drawing, bytes]]] = {}
    written: list[Path] = []
    with style.context():
        for section, functions in FIGURES.items():
            for function in functions:
                for drawing in function(results):
                    paths, png = style.save(drawing, folder / "figures")
                    written += paths
                    drawn.setdefault(section, []).append((drawing, png))
        for name, table in built.items():
            written.append(write_text(folder / "tables" / f"{name}.tex", table_latex(table)))
            written.append(write_bytes(folder / "tables" / f"{name}.csv", table_csv(table)))
        if built:
            written.append(write_text(folder / "tables" / "all.tex", document_latex(list(built))))
        names = [path.relative_to(folder).as_posix() for path in written]
        html = page.build(results, drawn, built, names)
    for name in sorted(set(before) - set(names)):
        (folder / name).unlink(missing_ok=True)
    report = write_text(folder / "report.html", html)
    figures = [
        {"name": d.name, "section": section, "title": d.title, "caption": d.caption, "notes": list(d.notes)}
        for section, pairs in drawn.items()
        for d, _ in pairs
    ]
    manifest = json.dumps({"schema": 1, "files": names, "figures": figures}, indent=1, ensure_ascii=False) + "\n"
    return [report, write_text(folder / MANIFEST, manifest), *written]
