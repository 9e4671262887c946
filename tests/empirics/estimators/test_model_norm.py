"""The model's norm and its dual: duality, attainment by the optimizer's own step, and the constant rho."""

from __future__ import annotations

import math

import pytest
import torch

from empirics.estimators.model_norm import ModelNorm
from pipeline.errors import InputError
from pipeline.optim.layer_norms import layer_dual, layer_norm, layer_rho
from pipeline.optim.lmo import LMO, lmo_direction

NORMS = ["spectral", "row-l2", "sign", "frobenius"]


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (1, 6)])
def test_the_direction_attains_the_dual_norm(norm, shape):
    g = draw(0, *shape)
    d = lmo_direction(g, norm)
    assert layer_norm(d, norm) == pytest.approx(1.0, rel=1e-12)
    assert (g * d).sum().item() == pytest.approx(layer_dual(g, norm), rel=1e-12)
    for seed in range(1, 30):
        x = draw(seed, *shape)
        assert (g * x).sum().item() <= layer_dual(g, norm) * layer_norm(x, norm) * (1 + 1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_rho_is_attained_and_not_smaller(norm, shape):
    v = torch.ones(shape, dtype=torch.float64)
    if norm == "spectral":
        v = torch.eye(*shape, dtype=torch.float64)
    rho = layer_rho(v.shape, norm)
    assert layer_dual(v, norm) == pytest.approx(rho * v.norm().item(), rel=1e-12)
    assert all(layer_dual(x, norm) <= rho * x.norm().item() * (1 + 1e-12) for x in (draw(s, *shape) for s in range(30)))


def test_the_whole_model_takes_a_maximum_and_its_dual_a_sum():
    W, b = torch.nn.Parameter(draw(1, 3, 5)), torch.nn.Parameter(draw(2, 4))
    groups = [{"params": [W], "norm": "spectral", "weight": 2.0}, {"params": [b], "norm": "sign", "weight": 0.5}]
    optimizer = LMO(groups, lr=0.1, alpha=1.0)
    norm = ModelNorm.of_optimizer(optimizer.param_groups, {id(W): "W", id(b): "b"})
    before = {"W": W.detach().clone(), "b": b.detach().clone()}
    W.grad, b.grad = draw(3, 3, 5), draw(4, 4)
    gradient = {"W": W.grad, "b": b.grad}
    optimizer.step()
    step = {"W": W.detach() - before["W"], "b": b.detach() - before["b"]}
    assert norm.norm(step) == pytest.approx(0.1, rel=1e-12)  # one step has norm eta, whatever the weights
    inner = sum((gradient[n] * step[n]).sum().item() for n in step)
    assert -inner == pytest.approx(0.1 * norm.dual(gradient), rel=1e-12)
    size = math.sqrt(sum(g.square().sum().item() for g in gradient.values()))
    assert norm.dual(gradient) <= norm.rho(gradient) * size


def test_unknown_norms_are_refused():
    for function in (layer_norm, layer_dual):
        with pytest.raises(InputError, match="norm: 'max'; allowed are"):
            function(draw(0, 2, 2), "max")
