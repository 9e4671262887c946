"""What is shown: figures, LaTeX tables and one self-contained HTML report.

This room reads result files only (JSON, see ``figures/results.py`` for the schema) and imports no other room.
It draws and tabulates; it never computes a result. Importing the package stays light: matplotlib is loaded
with the first call of ``write_report``.
"""

from __future__ import annotations

from pathlib import Path

from figures.errors import InputError

__all__ = ["InputError", "write_report"]


def write_report(folder: Path | str) -> list[Path]:
    """Draw everything the result files in `folder` allow; see ``figures.report.write_report``."""
    from figures.report import write_report as write

    return write(Path(folder))
