"""How exact directions were, the model's norm and its dual, and a parameter listed twice."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from pipeline.errors import InputError
from pipeline.optim import LMO, Delayed, ErrorFeedback, inexactness, lmo_direction
from pipeline.optim.layer_norms import NORMS, layer_dual, layer_norm


def draw(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_exact_oracle_has_one_and_one(norm, scale):
    m = draw(0, 6, 4) * scale
    assert inexactness(m, lmo_direction(m, norm), norm) == pytest.approx((1.0, 1.0), abs=1e-13)
    assert layer_norm(m, norm) == pytest.approx(layer_norm(m / scale, norm) * scale, rel=1e-12)
    assert layer_dual(m, norm) == pytest.approx(layer_dual(m / scale, norm) * scale, rel=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_r_lo_is_a_share_of_the_dual_norm_and_r_hi_a_length(norm):
    m, d = draw(1, 5, 3), draw(2, 5, 3)
    r_lo, r_hi = inexactness(m, d, norm)
    flat = {
        "spectral": (torch.linalg.svdvals(m).sum(), torch.linalg.svdvals(d)[0]),
        "sign": (m.abs().sum(), d.abs().max()),
        "row-l2": (m.norm(dim=1).sum(), d.norm(dim=1).max()),
        "frobenius": (m.norm(), d.norm()),
    }[norm]
    assert r_hi == pytest.approx(float(flat[1]), rel=1e-13)
    assert r_lo * float(flat[0]) == pytest.approx(float((m * d).sum()), rel=1e-12)
    assert r_lo <= r_hi
    doubled = inexactness(m, 2 * d, norm)
    assert doubled == pytest.approx((2 * r_lo, 2 * r_hi), rel=1e-13)


def test_zero_and_not_finite():
    zero, nan = torch.zeros(3, 4), torch.full((3, 4), math.nan)
    assert inexactness(zero, zero, "spectral") == (1.0, 0.0)
    assert inexactness(zero, torch.ones(3, 4), "sign") == (1.0, 1.0)
    for m, d in ((nan, nan), (zero, nan), (nan, zero), (zero + math.inf, zero)):
        assert all(map(math.isnan, inexactness(m, d, "sign")))


def model_and_optimizer(**settings):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4)).double()
    groups = [
        {"params": [(n, p) for n, p in model.named_parameters() if p.ndim == 2], "polar": "newton-schulz"},
        {"params": [(n, p) for n, p in model.named_parameters() if p.ndim == 1], "norm": "sign", "weight": 0.5},
    ]
    return model, LMO(groups, lr=0.1, alpha=0.3, nesterov=True, **settings)


def test_measured_at_every_step_and_kept_over_the_run():
    model, optimizer = model_and_optimizer(measure=True)
    plain_model, plain = model_and_optimizer()
    seen = {name: [] for name, _ in model.named_parameters()}
    for k in range(5):
        for i, (p, q) in enumerate(zip(model.parameters(), plain_model.parameters(), strict=True)):
            p.grad = draw(10 * k + i, *p.shape)
            q.grad = p.grad.clone()
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        optimizer.step()
        plain.step()
        for name, p in model.named_parameters():
            # The direction from the step that was made, the momentum from the state: not the optimizer's own d.
            m = optimizer.state[p]["momentum"] * 0.7 + p.grad * 0.3
            weight, norm = (1.0, "spectral") if p.ndim == 2 else (0.5, "sign")
            seen[name].append(inexactness(m, (before[name] - p.detach()) / (0.1 * weight), norm))
    assert plain.measured() == {}
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), plain_model.parameters(), strict=True))
    measured = optimizer.measured()
    assert set(measured) == set(seen)
    for name, pairs in seen.items():
        lows, highs = zip(*pairs, strict=True)
        assert measured[name] == pytest.approx((*pairs[-1], min(lows), max(highs)), rel=1e-10)
    matrix = measured["0.weight"]
    assert matrix.r_lo < matrix.last_r_lo or matrix.r_hi > matrix.last_r_hi
    assert measured["0.bias"] == pytest.approx((1, 1, 1, 1), abs=1e-12)


@pytest.mark.parametrize("wrapped", [False, True])
def test_measurements_are_saved_and_loaded(wrapped):
    def build():
        model, optimizer = model_and_optimizer(measure=True)
        return model, optimizer, Delayed(ErrorFeedback(optimizer), 1) if wrapped else optimizer

    model, lmo, optimizer = build()
    for k in range(4):
        if k == 3:
            saved = copy.deepcopy(optimizer.state_dict()), copy.deepcopy(model.state_dict())
        for i, p in enumerate(model.parameters()):
            p.grad = draw(10 * k + i, *p.shape)
        optimizer.step()
    other, other_lmo, again = build()
    again.load_state_dict(saved[0])
    other.load_state_dict(saved[1])
    assert other_lmo.measured() != lmo.measured()
    for i, p in enumerate(other.parameters()):
        p.grad = draw(30 + i, *p.shape)
    again.step()
    assert other_lmo.measured() == lmo.measured()


def test_a_broken_step_is_not_forgotten():
    p = nn.Parameter(torch.zeros(2, 2))
    optimizer = LMO([p], lr=0.1, alpha=1.0, measure=True)
    for value in (1.0, math.nan, 1.0):
        p.grad = torch.full((2, 2), value)
        optimizer.step()
    found = optimizer.measured()["number 0 of group 0"]
    assert math.isnan(found.r_lo) and math.isnan(found.r_hi)


def test_an_older_checkpoint_gets_what_was_done_then():
    p = nn.Parameter(torch.eye(3))
    saved = LMO([p], lr=0.1, alpha=0.5).state_dict()
    for key in ("polar", "iteration_dtype", "measure"):
        del saved["param_groups"][0][key]
    optimizer = LMO([p], lr=0.1, alpha=0.5, polar="newton-schulz", measure=True)
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["polar"] == "exact"
    assert optimizer.param_groups[0]["measure"] is False
    p.grad = torch.eye(3)
    optimizer.step()


def test_the_norm_is_a_weighted_maximum_and_its_dual_a_weighted_sum():
    model, optimizer = model_and_optimizer()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    x = [draw(i, *p.shape) * (10 if p.ndim == 1 else 1) for i, p in enumerate(parameters)]
    norms = [float(torch.linalg.svdvals(t)[0]) if t.ndim == 2 else float(t.abs().max()) / 0.5 for t in x]
    duals = [float(torch.linalg.svdvals(t).sum()) if t.ndim == 2 else float(t.abs().sum()) * 0.5 for t in x]
    assert optimizer.norm(x) == pytest.approx(max(norms), rel=1e-13)
    assert optimizer.dual_norm(x) == pytest.approx(sum(duals), rel=1e-13)
    assert optimizer.norm([None, *x[1:]]) == pytest.approx(max(norms[1:]), rel=1e-13)
    assert optimizer.dual_norm([None, *x[1:]]) == pytest.approx(sum(duals[1:]), rel=1e-13)
    for seed in range(20):
        g = [draw(100 * seed + i, *p.shape) for i, p in enumerate(parameters)]
        inner = sum(float((a * b).sum()) for a, b in zip(g, x, strict=True))
        assert inner <= optimizer.dual_norm(g) * optimizer.norm(x)
    with pytest.raises(InputError, match=r"^tensors: 1 of them; allowed are 4, one for each parameter$"):
        optimizer.norm(x[:1])
    with pytest.raises(InputError, match=r"^tensors: shape \(4, 8\) for 0.weight; allowed is \(8, 6\)$"):
        optimizer.dual_norm([x[1], x[0], *x[2:]])


def test_one_step_attains_the_dual_norm_and_has_norm_lr():
    model, optimizer = model_and_optimizer()
    optimizer.param_groups[0]["polar"] = "exact"
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    before = [p.detach().clone() for p in parameters]
    for i, p in enumerate(parameters):
        p.grad = draw(50 + i, *p.shape)
    optimizer.step()
    step = [p.detach() - old for p, old in zip(parameters, before, strict=True)]
    # From m = 0 the direction is that of the gradient itself.
    inner = sum(float((s * p.grad).sum()) for s, p in zip(step, parameters, strict=True))
    assert optimizer.norm(step) == pytest.approx(0.1, rel=1e-12)
    assert -inner == pytest.approx(0.1 * optimizer.dual_norm([p.grad for p in parameters]), rel=1e-12)


def test_a_parameter_in_two_groups_is_refused_with_both():
    p, q = nn.Parameter(torch.zeros(2, 2)), nn.Parameter(torch.zeros(2, 2))
    named = [{"params": [("wte", p)]}, {"params": [("mid", q)]}, {"params": [("head", p)], "norm": "sign"}]
    with pytest.raises(InputError, match=r"^params: parameter head is in group 0 and group 2 \(there wte\); allowed"):
        LMO(named, lr=0.1, alpha=0.5)
    with pytest.raises(InputError, match=r"^params: parameter w is in group 0 and group 1; allowed is one place"):
        LMO([{"params": [("w", p)]}, {"params": [("w", p)]}], lr=0.1, alpha=0.5)
    with pytest.raises(InputError, match=r"number 1 of group 1 is in group 0 and group 1 \(there number 0 of"):
        LMO([{"params": p}, {"params": (x for x in (q, p))}], lr=0.1, alpha=0.5)
    with pytest.raises(InputError, match=r"number 1 of group 0 is in group 0 twice"):
        LMO([p, p], lr=0.1, alpha=0.5)
    optimizer = LMO([p], lr=0.1, alpha=0.5)
    with pytest.raises(InputError, match="in group 0 and group 1"):
        optimizer.add_param_group({"params": [p]})
    assert len(optimizer.param_groups) == 1
    optimizer.add_param_group({"params": q})
    assert len(optimizer.param_groups) == 2
