"""Hessian-vector products that the perceptron's top eigenvalue needs, and time of a product on it and on the GPT.

    python benchmarks/curvature.py [seeds]

The rival is plain power iteration on the same products, from the same start, stopped where it is right to the same 1e-3
(it is told the truth, which it cannot know by itself). Truth: the dense Hessian's eigenvalues. Ends with exit 1 if
Lanczos needs more than 40 products, is off by more than 1e-3, or says that it has not converged.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from empirics.estimators.initial_gap import minimise  # noqa: E402
from empirics.estimators.lanczos import extreme_eigenvalues  # noqa: E402
from empirics.estimators.weights import flatten, unflatten  # noqa: E402
from empirics.problems.gpt_corpus import gpt  # noqa: E402
from empirics.problems.mlp import mlp  # noqa: E402

TOLERANCE, LIMIT, MOST = 1e-3, 40, 5000


def power_products(H: torch.Tensor, truth: float, seed: int) -> int:
    """Products of power iteration until its Rayleigh quotient is right; MOST where it is not by then."""
    q = torch.randn(len(H), dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    for k in range(1, MOST):
        q = q / q.norm()
        w = H @ q
        if abs(float(q @ w) - truth) <= TOLERANCE * abs(truth):
            return k
        q = w
    return MOST


def main() -> int:
    """Print a line a place and one for the times; the exit code."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    missed = 0
    for place in ("at the start", "after L-BFGS"):  # 100 steps of it
        products, errors, rivals = [], [], []
        for seed in range(seeds):
            problem = mlp(seed=seed)
            x = problem.start() if place == "at the start" else minimise(problem, most_steps=100)[0]
            eye = torch.eye(sum(v.numel() for v in x.values()), dtype=torch.float64)
            H = torch.stack([flatten(problem.hessian_product(x, unflatten(e, x))) for e in eye])
            truth = float(torch.linalg.eigvalsh(H)[-1])
            found = extreme_eigenvalues(
                lambda v, p=problem, x=x: p.hessian_product(x, v), x, "top", TOLERANCE, LIMIT, seed
            )
            products.append(found.products)
            errors.append(abs(found.top - truth) / truth)
            rivals.append(power_products(H, truth, seed))
            missed += not found.converged or errors[-1] > TOLERANCE
        print(
            f"perceptron {place} {statistics.median(products):g} products (at most {max(products)}; limit "
            f"{LIMIT}), error at most {max(errors):.1e}; power iteration {statistics.median(rivals):g} "
            f"(at most {max(rivals)})"
        )
    text = bytes((7 * i * i + i) % 256 for i in range(8000))
    for problem in (mlp(), gpt(text, sequences=8, layers=2, width=64, heads=4, context=64)):
        x, times = problem.start(), []
        for _ in range(7):
            start = time.perf_counter()
            problem.value_and_gradient(x)
            middle = time.perf_counter()
            problem.hessian_product(x, x)
            times.append((time.perf_counter() - middle) / (middle - start))
        print(f"a product against a gradient, {problem.name:<4} {statistics.median(times):.1f} times")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
