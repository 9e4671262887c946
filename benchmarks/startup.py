"""What a user waits for before any work: start of the command line, imports, one evaluation of a bound.

    python benchmarks/startup.py [repeats]

Prints a line for each: median and range over the repeats. Run it on an idle machine.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
VALUES = dict(L=1, eta=0.01, alpha=0.05, tau=1, sigma=0, rho=1, Delta0=1, K=1000, E0=0)


def process(*words: str) -> Callable[[], None]:
    """A run of Python in a fresh process."""

    def run() -> None:
        subprocess.run([sys.executable, *words], cwd=ROOT, check=True, capture_output=True)

    return run


def measure(name: str, work: Callable[[], object], repeats: int, unit: str, scale: float) -> None:
    """Time `work` after one warm-up call and print median, least and most."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * scale)
    print(f"{name:<34} {statistics.median(times):8.1f} {unit}  ({min(times):.1f} to {max(times):.1f})")


def main() -> None:
    """All measurements."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    measure("python -c pass", process("-c", "pass"), repeats, "ms", 1e3)
    measure("staleproof --help", process("-m", "staleproof", "--help"), repeats, "ms", 1e3)
    measure("staleproof verify --help", process("-m", "staleproof", "verify", "--help"), repeats, "ms", 1e3)
    measure("import theory", process("-c", "import theory"), repeats, "ms", 1e3)
    measure("import torch", process("-c", "import torch"), repeats, "ms", 1e3)
    sys.path.insert(0, str(ROOT))
    from theory import get_bound

    bound = get_bound("delayed-lmo")
    measure("bound, one point", lambda: bound.evaluate(**VALUES), 20 * repeats, "us", 1e6)
    grid = {**VALUES, "eta": np.geomspace(1e-4, 1e-1, 10_000)}
    measure("bound, 10 000 step sizes", lambda: bound.evaluate(**grid), 20 * repeats, "us", 1e6)


if __name__ == "__main__":
    main()
