"""An adversarial search on 2 x 2 matrices: the quadratic on which delayed Muon stays furthest from a stationary point.

Random positive semidefinite and indefinite Q scaled to L = 1, random starts, then random changes of the best ones; what
counts is the average of the gradient's nuclear norm late in a run from the method's own start that stays bounded.
Kind: heuristic; what it finds is a lower bound, checked again by `matrices.Instance`. Run as
`python -m theory.tightness.matrix_search SECONDS`; it prints matrix_instances.json. SECONDS only limits the work: the
draws depend on the seed alone.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from theory.tightness.matrices import run, smoothness

BATCH, KEPT, SEED = 500, 40, 20


def _score(Q: np.ndarray, start: np.ndarray, tau: int, steps: int) -> np.ndarray:
    norms, last = run(Q, start, tau, steps)
    return np.where(np.abs(last).max(axis=1) < 20, norms[:, steps // 2 :].mean(axis=1), 0.0)


def search(tau: int, seconds: float) -> tuple[dict, int]:
    """(best instance as JSON data, number of runs)."""
    rng = np.random.default_rng(SEED + tau)
    kept: list[tuple[float, np.ndarray, np.ndarray]] = []
    began, runs = time.monotonic(), 0
    while time.monotonic() - began < seconds or not kept:
        noise = rng.standard_normal((BATCH, 4, 4))
        noise = (noise + noise.transpose(0, 2, 1)) / 2
        if len(kept) < KEPT or rng.random() < 0.25:
            Q = noise @ noise if rng.random() < 0.5 else noise
            start = rng.uniform(-4, 4, (BATCH, 4))
        else:
            chosen = rng.integers(0, len(kept), BATCH)
            size = 10 ** rng.uniform(-3, -0.3, (BATCH, 1))
            Q = np.array([kept[i][1] for i in chosen]) + size[:, :, None] * noise
            start = np.array([kept[i][2] for i in chosen]) + size * rng.standard_normal((BATCH, 4))
        Q = Q / smoothness(Q)[:, None, None]
        score = _score(Q, start, tau, 200)
        best = np.argsort(-score)[:20]
        score = _score(Q[best], start[best], tau, 3000)  # slow escapes are found out here
        runs += BATCH
        kept += [(float(s), Q[i], start[i]) for s, i in zip(score, best, strict=True) if s > 0]
        kept = sorted(kept, key=lambda item: -item[0])[:KEPT]
    value, Q, start = kept[0]
    Q = np.round(Q, 6)
    return {"tau": tau, "average": round(value, 6), "start": np.round(start, 6).tolist(), "Q": Q.tolist()}, runs


def main(seconds: float) -> None:
    """Print the content of matrix_instances.json for tau = 1, 2."""
    found, runs = zip(*(search(tau, seconds) for tau in (1, 2)), strict=True)
    note = "quadratics on 2 x 2 matrices, coordinates of theory.tightness.matrices, found by its search"
    print(json.dumps({"about": note, "runs": list(runs), "found": list(found)}, indent=1))


if __name__ == "__main__":
    main(float(sys.argv[1]))
