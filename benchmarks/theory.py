"""Speed of the theory: its import, building every theorem, a bound on a million points, tuning, all proofs.

    python benchmarks/theory.py [--write]

Rival in the same run: the sum of a bound's terms typed by hand in numpy, which must give the same numbers. Ends with
exit 1 if a limit is passed. With --write this part of ``benchmarks/results.md`` is replaced, or added at its end.
Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.parts import RESULTS, limits_table, write_part

ROOT = RESULTS.parent.parent
POINTS = 1_000_000
BUILD = """
import time
import sympy, numpy, scipy.optimize
start = time.perf_counter()
import theory
print(len(theory.BOUNDS), time.perf_counter() - start)
"""


def best(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Least seconds of a few calls, and the result of the last."""
    times, result = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def process(code: str) -> str:
    """Run code in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


ROWS: list[tuple[str, float, float | None]] = []


def report(what: str, value: float, limit: float) -> bool:
    """Print a line and keep it for the table; True if the limit is kept."""
    kept = value <= limit
    ROWS.append((what, value, limit))
    print(f"{what:<52} {value:8.3f} s  at most {limit:g}{'' if kept else '  MISSED'}")
    return kept


def by_hand(v: dict[str, Any]) -> np.ndarray:
    """Theorem 1, typed in."""
    a, eta, L, K = v["alpha"], v["eta"], v["L"], v["K"]
    error = L * eta * ((1 - a) / a + v["tau"]) + v["rho"] * v["sigma"] * np.sqrt(a / (2 - a))
    error = error + v["E0"] * (1 - a) / (a * K)
    return np.asarray(v["Delta0"] / (eta * K) + L * eta / 2 + 2 * error)


def main() -> int:
    """All measurements; 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"replace this file's part of {RESULTS.name}")
    options = parser.parse_args()
    kept = [report("import theory, in a fresh process", best(lambda: process("import theory"))[0], 1.5)]
    count, seconds = process(BUILD).split()
    kept.append(report(f"building all {count} theorems, after sympy", float(seconds), 3))

    from theory import BOUNDS, get_bound

    rng = np.random.default_rng(0)
    values = dict(L=1.3, tau=2, sigma=0.7, rho=1.4, Delta0=0.8, E0=0.4)
    values |= dict(eta=rng.uniform(1e-3, 1e-1, POINTS), alpha=rng.uniform(0.01, 1, POINTS))
    values |= dict(K=rng.integers(1, 10**6, POINTS))
    seconds_bound, ours = best(lambda: get_bound("delayed-lmo").evaluate(**values))
    kept.append(report("delayed-lmo on 1e6 points, three of its symbols", seconds_bound, 0.5))
    seconds_hand, theirs = best(lambda: by_hand(values))
    print(f"{'':<8}{seconds_bound / seconds_hand:.1f} times the formula typed by hand; checks of the domains included")
    assert np.allclose(ours, theirs, rtol=1e-12)
    for name in ("delayed-lmo-median", "delayed-lmo-finite"):
        kept.append(report(f"{name} on 1e6 step sizes", best(lambda n=name: _steps(BOUNDS[n], values))[0], 0.5))
    fixed = {name: value for name, value in values.items() if np.ndim(value) == 0} | {"K": 10**5}
    tune = best(lambda: get_bound("delayed-lmo").tune(("eta", "alpha"), **fixed))[0]
    kept.append(report("tuning eta and alpha", tune, 0.5))
    if importlib.util.find_spec("z3"):
        kept.append(report("staleproof prove, all proofs and certificates", best(prove, 1)[0], 60))
    if options.write:
        write_part("theory", limits_table("Time of the theory", "python benchmarks/theory.py --write", ROWS))
    return 0 if all(kept) else 1


def prove() -> None:
    """The command in a process of its own; raises if a proof fails."""
    subprocess.run([sys.executable, "-m", "staleproof", "prove"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def _steps(bound: Any, values: dict[str, Any]) -> np.ndarray:
    return bound.evaluate(**values | {"alpha": 0.1, "K": 1000})


if __name__ == "__main__":
    sys.exit(main())
