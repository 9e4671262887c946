"""The operator norm on 2 x 2 matrices: an exact L for quadratics, and the run of delayed Muon. Kind: exact L.

Every real 2 x 2 matrix is z1 I + z2 J + w1 D + w2 E with I, J = [[0,-1],[1,0]] (multiples of rotations) and
D = diag(1,-1), E = [[0,1],[1,0]] (of reflections). Its singular values are |z| + |w| and ||z| - |w||, so
    operator norm = |z|_2 + |w|_2,    nuclear norm = 2 max(|z|_2, |w|_2),
the l_1 sum of two Euclidean planes: a step of Muon is a unit step in one plane, the one whose gradient is longer. The
gradient of f = v'Qv/2, v = (z, w), has the coordinates Qv/2 and the nuclear norm max(|(Qv)_z|, |(Qv)_w|), and L is the
largest spectral norm of the four 2 x 2 blocks of Q: no estimate is needed. Larger shapes contain these (zero rows and
columns). The search of theory.tightness.matrix_search, tau = 1 and 2, ends at the circle's value and not above it.
Checked by tests/theory/tightness/test_matrices.py (against singular values and the polar factor).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from theory.errors import InputError
from theory.tightness.lattice import check_natural

STORE = Path(__file__).with_name("matrix_instances.json")
BASIS = np.array([[[1, 0], [0, 1]], [[0, -1], [1, 0]], [[1, 0], [0, -1]], [[0, 1], [1, 0]]], dtype=float)


def to_matrix(v: np.ndarray) -> np.ndarray:
    """The 2 x 2 matrix of coordinates v = (z1, z2, w1, w2)."""
    return np.asarray(np.tensordot(v, BASIS, 1))


def smoothness(Q: np.ndarray) -> np.ndarray:
    """L of v'Qv/2 in the operator norm; Q: (..., 4, 4) symmetric."""
    blocks = Q.reshape(*Q.shape[:-2], 2, 2, 2, 2)  # (..., plane, 2, plane, 2)
    return np.asarray(np.linalg.norm(blocks, ord=2, axis=(-3, -1)).max(axis=(-2, -1)))


def run(Q: np.ndarray, start: np.ndarray, tau: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Delayed Muon (alpha = 1, eta = 1) from its own start, many at once: Q (B, 4, 4), start (B, 4).

    Returns nuclear norms of the gradients, (B, steps), in units where f's L is `smoothness`, and v_steps, (B, 4).
    """
    check_natural("tau", tau)
    check_natural("steps", steps, 1)
    points, norms = [start], np.empty((len(Q), steps))
    for k in range(steps):
        point = points[max(k - tau, 0)] if k >= tau else points[0]
        gradient = np.einsum("bij,bj->bi", Q, point)
        z, w = np.hypot(gradient[:, 0], gradient[:, 1]), np.hypot(gradient[:, 2], gradient[:, 3])
        here = np.einsum("bij,bj->bi", Q, points[k])
        norms[:, k] = np.maximum(np.hypot(here[:, 0], here[:, 1]), np.hypot(here[:, 2], here[:, 3]))
        longer = np.repeat(np.stack([z >= w, z < w], axis=1), 2, axis=1)
        length = np.where(np.maximum(z, w) > 0, np.maximum(z, w), 1.0)
        points.append(points[k] - np.where(longer, gradient, 0.0) / length[:, None])
    return norms, points[-1]


@dataclass(frozen=True)
class Instance:
    """A stored quadratic and start: Q symmetric (4, 4), start (4,), tau, average: the value that was found."""

    tau: int
    Q: np.ndarray
    start: np.ndarray
    average: float

    def measured(self, steps: int = 6000, skipped: int = 2000) -> tuple[float, float]:
        """(average, minimum) of the gradient's nuclear norm / (L eta) over the steps after `skipped`."""
        norms, last = run(self.Q[None], self.start[None], self.tau, steps)
        if not np.abs(last).max() < 30:
            raise InputError(f"start: the run of tau={self.tau} does not stay bounded in {steps} steps")
        tail = norms[0, skipped:] / float(smoothness(self.Q))
        return float(tail.mean()), float(tail.min())


@cache
def stored() -> tuple[Instance, ...]:
    """The best instances of the search, one for each delay."""
    data = json.loads(STORE.read_text(encoding="utf-8"))
    return tuple(
        Instance(item["tau"], np.array(item["Q"]), np.array(item["start"]), item["average"]) for item in data["found"]
    )
