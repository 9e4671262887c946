"""The LMO directions, and which parameter goes where in the recipes."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from pipeline.errors import InputError
from pipeline.optim import (
    LMO,
    OPTIMIZERS,
    Chained,
    ErrorFeedback,
    lmo_direction,
    make_optimizer,
    split_parameters,
)
from tests.pipeline.optim.models import Model


def dual_and_norm(m: torch.Tensor, d: torch.Tensor, norm: str) -> tuple[float, float]:
    flat, other = m.reshape(m.shape[0], -1), d.reshape(d.shape[0], -1)
    if norm == "spectral":
        return float(torch.linalg.svdvals(flat).sum()), float(torch.linalg.svdvals(other).max())
    if norm == "sign":
        return float(flat.abs().sum()), float(other.abs().max())
    if norm == "row-l2":
        return float(flat.norm(dim=1).sum()), float(other.norm(dim=1).max())
    return float(flat.norm()), float(other.norm())


@pytest.mark.parametrize("norm", ["spectral", "sign", "row-l2", "frobenius"])
@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1.0, 1e200])
def test_direction_is_the_lmo(norm, scale):
    m = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    d = lmo_direction(m * scale, norm)
    dual, size = dual_and_norm(m, d, norm)
    assert size == pytest.approx(1.0, abs=1e-13)
    assert float((m * d).sum()) == pytest.approx(dual, rel=1e-13)


@pytest.mark.parametrize("norm", ["spectral", "sign", "row-l2", "frobenius"])
def test_direction_of_zero_rank_one_and_nan(norm):
    assert torch.equal(lmo_direction(torch.zeros(3, 4), norm), torch.zeros(3, 4))
    m = torch.outer(torch.arange(1.0, 4.0), torch.arange(4.0)).double()
    d = lmo_direction(m, norm)
    dual, size = dual_and_norm(m, d, norm)
    assert size <= 1 + 1e-13
    assert float((m * d).sum()) == pytest.approx(dual, rel=1e-13)
    assert bool(torch.isnan(lmo_direction(torch.full((3, 4), float("nan")), norm)).all())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dtypes_survive(dtype):
    p = nn.Parameter(torch.zeros(4, 4, dtype=dtype))
    optimizer = LMO([p], lr=0.1, alpha=0.5)
    for _ in range(3):
        p.grad = torch.eye(4).to(dtype)
        optimizer.step()
    assert optimizer.state[p]["momentum"].dtype == dtype
    torch.testing.assert_close(p.detach().double(), -0.3 * torch.eye(4, dtype=torch.float64), rtol=1e-2, atol=1e-3)


def test_convolution_kernel_is_a_flattened_matrix():
    g = torch.randn(8, 4, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        lmo_direction(g, "spectral").reshape(8, 36),
        lmo_direction(g.reshape(8, 36), "spectral"),
        rtol=0,
        atol=1e-13,
    )


@pytest.mark.parametrize(
    "change",
    [
        {"lr": 0.2},
        {"alpha": 0.9},
        {"nesterov": True},
        {"weight": 2.0},
        {"norm": "sign"},
        {"momentum_start": "gradient"},
    ],
)
def test_every_setting_changes_the_path(change):
    def final(**settings):
        p = nn.Parameter(torch.eye(3, dtype=torch.float64))
        optimizer = LMO([p], **({"lr": 0.1, "alpha": 0.3} | settings))
        for k in range(4):
            p.grad = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(k))
            optimizer.step()
        return p.detach()

    assert not torch.allclose(final(), final(**change))


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"lr": -1.0}, "lr"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.5}, "alpha"),
        ({"norm": "l7"}, "spectral, sign"),
        ({"weight": 0.0}, "weight"),
        ({"momentum_start": "no"}, "momentum_start"),
    ],
)
def test_bad_settings(settings, field):
    with pytest.raises(InputError, match=field):
        LMO([nn.Parameter(torch.zeros(2, 2))], **({"lr": 0.1, "alpha": 0.5} | settings))


def test_vector_in_a_spectral_group_is_refused_by_name():
    with pytest.raises(InputError, match="norm.bias"):
        LMO([("norm.bias", nn.Parameter(torch.zeros(3)))], lr=0.1, alpha=0.5)


def test_each_parameter_in_exactly_one_part():
    model = Model()
    pairs = [*model.named_parameters(), ("head.weight", model.head.weight)]
    parts = split_parameters(pairs)
    names = sorted(name for part in parts.values() for name, _ in part)
    assert names == sorted(name for name, p in model.named_parameters() if p.requires_grad)
    assert [name for name, _ in parts["hidden"]] == ["inner.weight"]
    assert [name for name, _ in parts["embedding"]] == ["wte.weight"]
    assert [name for name, _ in parts["other"]] == ["conv.weight"]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("correction", ["none", "error-feedback"])
def test_recipes_move_every_trainable_parameter_once(name, correction):
    torch.manual_seed(0)
    model = Model()
    before = {key: p.detach().clone() for key, p in model.named_parameters()}
    optimizer = make_optimizer(name, list(model.named_parameters()), correction=correction)
    assert isinstance(optimizer, ErrorFeedback) == (correction == "error-feedback")
    for _ in range(2):
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimizer.step()
    moved = {key for key, p in model.named_parameters() if not torch.equal(p, before[key])}
    assert moved == set(before) - {"frozen.weight"}
    counted = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert len(counted) == len(set(counted)) == len(before) - 1


def test_chained_shares_groups_and_state_after_loading():
    model = Model()
    optimizer = make_optimizer("muon", list(model.named_parameters()))
    assert isinstance(optimizer, Chained)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    assert len(optimizer.state) == len([p for p in model.parameters() if p.requires_grad])
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.param_groups[0]["lr"] = 0.0
    assert optimizer.optimizers[0].param_groups[0]["lr"] == 0.0
    assert optimizer.optimizers[1].state is optimizer.state


def test_unknown_names_list_the_known():
    with pytest.raises(InputError, match=f"allowed are {', '.join(sorted(OPTIMIZERS))}$"):
        make_optimizer("adam", [("a", nn.Parameter(torch.zeros(2)))])
    with pytest.raises(InputError, match="no trainable parameter"):
        make_optimizer("sgd", [])
    with pytest.raises(InputError, match="lr"):
        make_optimizer("sgd", [("a", nn.Parameter(torch.zeros(2)))], lr=-1.0)


def test_recipes_load_no_wrapper():
    code = (
        "import sys, pipeline.optim.recipes as r, torch\n"
        "r.make_optimizer('muon', [('a', torch.nn.Parameter(torch.zeros(2, 2)))])\n"
        "loaded = {'pipeline.optim.error_feedback', 'pipeline.optim.delayed'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
