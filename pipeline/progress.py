"""Progress on stderr: one line that is redrawn on a terminal, a line now and then in a log."""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

WIDTH = 24
LOG_INTERVAL = 15.0  # seconds between two lines of one section where stderr is not a terminal


class Progress:
    """Progress of one section; call it with the share done in [0, 1] and a few words."""

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self.label = label
        # sys.stderr is None where the process was started with it closed.
        self.stream = stream or sys.stderr or open(os.devnull, "w", encoding="utf-8")
        self.started = time.monotonic()
        self._terminal = self.stream.isatty()
        self._last_line = -LOG_INTERVAL

    def __call__(self, share: float, text: str = "") -> None:
        share = min(max(float(share), 0.0), 1.0)
        elapsed = time.monotonic() - self.started
        if self._terminal:
            done = round(share * WIDTH)
            bar = "#" * done + "." * (WIDTH - done)
            self._write(f"\r{self.label:<10} [{bar}] {share:4.0%} {elapsed:5.0f} s  {text[:50]:<50}")
        elif elapsed - self._last_line >= LOG_INTERVAL:
            self._last_line = elapsed
            self._write(f"{self.label}: {share:.0%} after {elapsed:.0f} s  {text}\n")

    def finish(self, text: str) -> None:
        """The last line of the section; it stays."""
        elapsed = time.monotonic() - self.started
        line = f"{self.label:<10} {text} ({elapsed:.1f} s)"
        # On a terminal the line covers the bar that it replaces.
        self._write(f"\r{line:<105}\n" if self._terminal else f"{line}\n")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (BrokenPipeError, ValueError):
            pass
