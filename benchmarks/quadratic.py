"""Speed of the exact theory on quadratics: mean and variance of 100 modes over 1000 steps at 32 settings.

    python benchmarks/quadratic.py [--write]

Rival in the same run: mean and covariance of the whole state carried from step to step, which must give the same
numbers. Ends with exit 1 if the limit is passed. --write puts the result into results.md. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import platform
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.parts import write_part
from theory.quadratic import QuadraticMethod

MODES, STEPS, LIMIT = 100, 1000, 5.0
SETTINGS = [
    (QuadraticMethod(tau=tau, beta=beta, dampening=beta, correction=correction), eta)
    for tau, beta, correction, eta in itertools.product(
        (1, 2, 3, 4), (0.0, 0.9), ("none", "error-feedback"), (0.01, 0.03)
    )
]


def by_covariance(method: QuadraticMethod, eta: float, lam: np.ndarray, steps: int) -> np.ndarray:
    """Variance of x_steps by the recursion of the state's covariance, noise 1."""
    first, later = np.zeros(method.size), np.zeros(method.size)
    first[[0, method.ages, *range(method.ages + 1, method.size)]] = -1.0  # no damping yet; memory: all U_j are U_0
    later[[0, method.ages]] = -method.gain * (1 + method.c), -method.gain
    later[method.ages + 1 : method.ages + 2] = -method.gain
    covariance = np.broadcast_to(eta**2 * np.outer(first, first), (len(lam), method.size, method.size))
    matrix = method.transition(eta * lam)
    for _ in range(1, steps):
        covariance = matrix @ covariance @ np.swapaxes(matrix, -1, -2) + eta**2 * np.outer(later, later)
    return np.asarray(covariance[:, 0, 0])


def main() -> int:
    """The measurement; 1 if the limit is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the result into results.md")
    write = parser.parse_args().write
    lam = np.linspace(0.01, 1.0, MODES)
    start = time.perf_counter()
    ours = [method.predict(eta, lam, 1.0, 1.0, STEPS)[1][-1] for method, eta in SETTINGS]
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    theirs = [by_covariance(method, eta, lam, STEPS) for method, eta in SETTINGS]
    rival = time.perf_counter() - start
    error = max(float(np.abs(a / b - 1).max()) for a, b in zip(ours, theirs, strict=True))
    assert error < 1e-9, error
    kept = seconds <= LIMIT
    row = f"moments of {MODES} modes, {STEPS} steps, {len(SETTINGS)} settings"
    print(f"{row} {seconds:8.2f} s  at most {LIMIT:g}{'' if kept else '  MISSED'}; by covariances {rival:.2f} s")
    if write:
        lines = [
            "# Exact theory on quadratics",
            "",
            f"{datetime.date.today()}, `python benchmarks/quadratic.py --write`. Python {platform.python_version()}, "
            f"numpy {np.__version__}.",
            "",
            "| what | ours, s | state's covariance, s | target |  |",
            "| --- | --- | --- | --- | --- |",
            f"| {row} | {seconds:.2f} | {rival:.2f} | at most {LIMIT:g} | {'met' if kept else 'missed'} |",
            "",
            f"Variances at the last step differ by at most {error:.0e}, relative.",
        ]
        write_part("quadratic", "\n".join(lines))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
