"""Time to draw a report from its result files, and what share of it is spent in matplotlib's PDF export.

    python benchmarks/report.py DIR [repeats]

DIR is a result folder of `staleproof verify`; it is copied first and left as it is.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from matplotlib.backends.backend_pdf import FigureCanvasPdf

from figures import write_report


def main() -> None:
    """Median CPU and wall time over the repeats."""
    if len(sys.argv) < 2:
        sys.exit("usage: python benchmarks/report.py DIR [repeats]")
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    pdf_seconds = 0.0
    original = FigureCanvasPdf.print_pdf

    def timed(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        nonlocal pdf_seconds
        start = time.perf_counter()
        result = original(self, *args, **kwargs)
        pdf_seconds += time.perf_counter() - start
        return result

    FigureCanvasPdf.print_pdf = timed  # type: ignore[method-assign]
    wall, cpu = [], []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "results"
        shutil.copytree(sys.argv[1], folder)
        for _ in range(repeats):
            start, cpu_start = time.perf_counter(), time.process_time()
            write_report(folder)
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - cpu_start)
    print(f"report   {statistics.median(wall):6.1f} s wall, {statistics.median(cpu):6.1f} s CPU")
    print(f"of which PDF export {pdf_seconds / sum(wall):.0%}")


if __name__ == "__main__":
    main()
