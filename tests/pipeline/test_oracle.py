"""The oracle against a transcription of its recursion on a scalar model, and what it shares with nobody."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from torch import nn

import pipeline.oracle
import pipeline.oracle_corrections
from pipeline.oracle import largest_difference, run_oracle
from pipeline.oracle_corrections import OracleCorrection

ETA = 0.01


class Scale(nn.Module):
    """Multiplies by one weight."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([value], dtype=torch.float64))

    def forward(self, x):
        return x * self.weight


class Numbers:
    """Microbatch j is the number j + 1, with target 1."""

    def microbatch(self, j):
        return torch.tensor([j + 1.0], dtype=torch.float64), torch.tensor([1.0], dtype=torch.float64)


def loss(output, target):
    return ((output - target) ** 2).sum()


def sgd(named):
    return torch.optim.SGD(named, lr=ETA, foreach=False)


def run(ages, steps, m=1, correction=None):
    weights = []
    result = run_oracle(
        [Scale(0.7), Scale(0.9)],
        sgd,
        Numbers(),
        loss,
        microbatches=m,
        steps=steps,
        ages=ages,
        correction=correction,
        snapshot_every=1,
    )
    for k in sorted(result.snapshots):
        weights.append(tuple(result.snapshots[k][f"layers.{i}.weight"].item() for i in (0, 1)))
    return weights


def by_hand(ages, steps, m=1, c=0.0, lag=1):
    """x_{k+1} = x_k + U_k + c (U_k - U_{max(k-lag, 0)}), gradient of layer l at version max(0, j - age_l) // m."""
    x = [(0.7, 0.9)]
    U: list[tuple[float, float]] = []
    for k in range(steps):
        g = [0.0, 0.0]
        for j in range(k * m, (k + 1) * m):
            a, b = (x[max(0, j - age) // m][layer] for layer, age in enumerate(ages))
            z = j + 1.0
            slope = 2 * (z * a * b - 1.0) / m
            g[0] += slope * z * b
            g[1] += slope * z * a
        U.append((-ETA * g[0], -ETA * g[1]))
        old = U[max(k - lag, 0)]
        x.append(tuple(x[k][i] + U[k][i] + (c * (U[k][i] - old[i]) if k > 0 else 0.0) for i in (0, 1)))
    return x[1:]


@pytest.mark.parametrize(
    ("ages", "m"), [((0, 0), 1), ((1, 0), 1), ((3, 1), 1), ((2, 2), 2), ((4, 4), 2), ((3, 1), 2)]
)
def test_delays_follow_the_recursion(ages, m):
    torch.testing.assert_close(run(ages, 3, m), by_hand(ages, 3, m), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("form", "tau", "c", "lag"), [("extrapolate", 1, 1.0, 1), ("extrapolate", 2, 2.0, 1),
                                                       ("telescoped", 2, 1.0, 2)])  # fmt: skip
def test_corrections_follow_the_recursion(form, tau, c, lag):
    correction = OracleCorrection("error-feedback", (tau, tau), form)
    torch.testing.assert_close(
        run((1, 1), 4, correction=correction), by_hand((1, 1), 4, c=c, lag=lag), rtol=1e-12, atol=1e-15
    )
    assert run((1, 1), 4, correction=correction) != run((1, 1), 4)


def test_a_wrong_age_is_another_trajectory():
    assert run((1, 1), 3) != run((2, 2), 3)
    assert run((1, 1), 3) != run((0, 0), 3)


def test_the_oracle_imports_neither_schedules_nor_engine_nor_wrappers():
    modules = set()
    for source in (pipeline.oracle, pipeline.oracle_corrections):
        tree = ast.parse(Path(source.__file__).read_text(encoding="utf-8"))
        modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    allowed = {"__future__", "hashlib", "math", "collections.abc", "dataclasses", "typing", "torch"}
    allowed.add("pipeline.oracle_corrections")
    assert modules <= allowed


def test_a_nan_is_an_infinite_difference():
    a = {1: {"w": torch.tensor([1.0, float("nan")])}}
    assert largest_difference(a, {1: {"w": torch.ones(2)}}) == (float("inf"), "step 1, w")


def test_nothing_compared_is_not_equality():
    w = {"w": torch.ones(2)}
    assert largest_difference({1: w}, {1: w}) == (0.0, "")
    for a, b in (({}, {}), ({1: w}, {}), ({1: w}, {1: w, 2: w}), ({1: {}}, {1: {}}), ({1: w}, {1: {"v": w["w"]}})):
        assert largest_difference(a, b)[0] == float("inf")
