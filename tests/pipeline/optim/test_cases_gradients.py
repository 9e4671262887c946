"""Gradients as they come: zero, late, of rank one, in low precision, not finite; for every optimizer there is."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from pipeline.optim import OPTIMIZERS, REGISTRY, Delayed, ErrorFeedback, make_optimizer

DECOUPLED = [name for name in OPTIMIZERS if name not in ("sgd", "lmo")]
PAIRS = [("layers.1.weight", (4, 4)), ("layers.1.bias", (4,)), ("embed.weight", (5, 4)), ("head.weight", (5, 4))]


def build(dtype=torch.float64, pairs=PAIRS):
    generator = torch.Generator().manual_seed(5)
    return {n: nn.Parameter(torch.randn(s, generator=generator, dtype=torch.float64).to(dtype)) for n, s in pairs}


def zero(ps):
    for p in ps.values():
        p.grad = torch.zeros_like(p)


def draw(ps, call):
    generator = torch.Generator().manual_seed(50 + call)
    for p in ps.values():
        p.grad = torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype)


def finite(ps):
    return all(bool(torch.isfinite(p).all()) for p in ps.values())


def copies(ps):
    return {n: p.detach().clone() for n, p in ps.items()}


# -- zero gradients


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_zero_gradients_move_a_weight_by_decay_alone(name):
    """p = p0 (1 - lr decay)^n for matrices, p0 for vectors: no jump of the size of the rate, and no NaN."""
    ps = build()
    start = copies(ps)
    optimizer = make_optimizer(name, list(ps.items()), lr=0.1)
    share = {id(p): g["lr"] * g.get("weight_decay", 0.0) for g in optimizer.param_groups for p in g["params"]}
    for _ in range(11):
        zero(ps)
        optimizer.step()
    applied = 10 if name == "soap" else 11  # its first step only starts the preconditioner
    for n, p in ps.items():
        decay = share[id(p)]
        if p.ndim < 2:
            decay = 0.0  # MARS has one group, with a decay of its own for vectors
        elif name in DECOUPLED:
            lr_share = 0.15 if name in ("muon", "normuon") and n != "layers.1.weight" else 1.0
            assert decay == pytest.approx(0.01 * lr_share, rel=1e-12)
        torch.testing.assert_close(p.detach(), start[n] * (1 - decay) ** applied, rtol=1e-13, atol=0, msg=n)


@pytest.mark.parametrize("correction", [False, True])
@pytest.mark.parametrize("tau", [0, 1, 4])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_zero_gradients_first_then_normal_ones(name, tau, correction):
    """Delay 0, 1 and 4, with histories that are empty at first. Zero-initialised matrices stay where they are."""
    ps = build()
    with torch.no_grad():
        ps["layers.1.weight"].zero_()
    base = make_optimizer(name, list(ps.items()), lr=0.1)
    inner = ErrorFeedback(base, tau) if correction else base
    optimizer = Delayed(inner, tau)
    for call in range(3):
        zero(ps)
        optimizer.step()
        assert torch.equal(ps["layers.1.weight"], torch.zeros(4, 4, dtype=torch.float64)), call
        assert finite(ps), call
        if correction:
            assert all(not bool(U.any()) for U in inner.history.get(ps["layers.1.bias"], []))
    before = copies(ps)
    for call in range(3, 8 + tau):
        draw(ps, call)
        optimizer.step()
        assert finite(ps), call
    assert all(not torch.equal(p, before[n]) for n, p in ps.items())


# -- late and missing gradients: every history with its own parameter


@pytest.mark.parametrize("wrap", [False, True], ids=["alone", "delayed"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_missing_gradients_follow_each_parameter(name, wrap):
    """Frozen, always, late, absent once; one shape, so nothing crashes where histories shift."""
    shapes = [(f"layers.{i}.weight", (3, 3)) for i in range(4)]

    def optimizer(pairs):
        base = make_optimizer(name, pairs, lr=0.05)
        return Delayed(ErrorFeedback(base, 1), 1) if wrap else base

    ps, qs = build(pairs=shapes), build(pairs=shapes)
    for these in (ps, qs):
        these["layers.0.weight"].requires_grad_(False)
    together = optimizer(list(ps.items()))
    alone = [optimizer([pair]) for pair in qs.items() if pair[1].requires_grad]
    start = copies(ps)
    for call in range(7):
        for these in (ps, qs):
            draw(these, call)
            these["layers.0.weight"].grad = None
            if call in (0, 1):
                these["layers.2.weight"].grad = None
            if call == 4:
                these["layers.3.weight"].grad = None
        together.step()
        for one in alone:
            one.step()
        for n, p in ps.items():
            assert torch.equal(p, qs[n]), (call, n)
        if call < 2:
            assert torch.equal(ps["layers.2.weight"], start["layers.2.weight"])
    assert torch.equal(ps["layers.0.weight"], start["layers.0.weight"])


def test_adan_starts_a_late_parameter_without_a_previous_gradient():
    ps = build(pairs=[("a.weight", (3, 3)), ("b.weight", (3, 3))])
    optimizer = make_optimizer("adan", list(ps.items()))
    draw(ps, 0)
    ps["b.weight"].grad = None
    optimizer.step()
    draw(ps, 1)
    optimizer.step()
    assert not bool(optimizer.state[ps["b.weight"]]["exp_avg_diff"].any())
    assert bool(optimizer.state[ps["a.weight"]]["exp_avg_diff"].any())


def late_update(name, steps_before):
    """The first update of a vector whose gradient comes after so many steps of the others."""
    ps = build(pairs=[("a.bias", (3,)), ("b.bias", (3,))])
    optimizer = make_optimizer(name, list(ps.items()), lr=0.01)
    for call in range(steps_before + 1):
        draw(ps, call)
        if call < steps_before:
            ps["b.bias"].grad = None
        else:
            ps["b.bias"].grad = torch.ones(3, dtype=torch.float64)
        before = copies(ps)
        optimizer.step()
    return (ps["b.bias"].detach() - before["b.bias"]).abs().max().item()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_which_count_steps_per_group(name):
    """Then a late parameter's moments are corrected for steps that it did not take; the registry says so."""
    steps_before = (1, 9) if name == "soap" else (0, 9)
    early, late = (late_update(name, n) for n in steps_before)
    says_so = any("per group" in line for line in REGISTRY[name].known)
    assert (not math.isclose(early, late, rel_tol=1e-9)) == says_so, (early, late)


# -- shapes and precisions


GRADIENTS = {
    "zero": lambda a, b: torch.zeros(a, b),
    "rank one": lambda a, b: torch.outer(torch.arange(1.0, a + 1), torch.arange(1.0, b + 1)),
    "tiny": lambda a, b: torch.full((a, b), 1e-12),
    "large": lambda a, b: torch.full((a, b), 1e4),
    "one entry": lambda a, b: torch.eye(a, b) * (torch.arange(a) == 0)[:, None],
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_degenerate_matrices_stay_finite(name, gradient, dtype):
    pairs = [("m.weight", (4, 3)), ("row.weight", (1, 6)), ("column.weight", (6, 1)), ("dot.weight", (1, 1))]
    ps = build(dtype, pairs)
    optimizer = make_optimizer(name, list(ps.items()))
    for _ in range(12):  # SOAP turns its bases at the tenth step
        for p in ps.values():
            p.grad = GRADIENTS[gradient](*p.shape).to(dtype)
        optimizer.step()
    assert finite(ps)
    assert all(p.dtype == dtype for p in ps.values())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_kernels_scalars_and_low_precision(name):
    shapes = [("conv.weight", (3, 2, 3, 3)), ("scale", ()), ("a.bias", (1,)), ("wte.weight", (7, 4))]
    for dtype in (torch.float64, torch.bfloat16):
        ps = build(dtype, shapes)
        optimizer = make_optimizer(name, list(ps.items()))
        before = copies(ps)
        for call in range(12):
            draw(ps, call)
            optimizer.step()
        assert finite(ps)
        if dtype == torch.float64:  # in bfloat16 a step may be below half a unit in the last place
            assert all(not torch.equal(p, before[n]) for n, p in ps.items())


def test_soap_names_a_gradient_that_is_not_finite():
    ps = build()
    optimizer = make_optimizer("soap", list(ps.items()))
    draw(ps, 0)
    ps["layers.1.weight"].grad[0, 0] = float("nan")
    with pytest.raises(torch.linalg.LinAlgError):
        optimizer.step()
    assert any("LinAlgError" in line for line in REGISTRY["soap"].known)


# -- what a step does beside the weights


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_which_steps_change_the_gradient(name):
    ps = build()
    optimizer = make_optimizer(name, list(ps.items()))
    changed = set()
    for call in range(3):
        draw(ps, call)
        before = {n: p.grad.clone() for n, p in ps.items()}
        optimizer.step()
        changed |= {n for n, p in ps.items() if not torch.equal(p.grad, before[n])}
    expected = {"adan": set(ps), "normuon": {"layers.1.weight"}}.get(name, set())
    assert changed == expected
    assert any(".grad" in line for line in REGISTRY[name].known) == bool(expected)


def test_the_first_step_of_soap_only_starts_it():
    ps = build()
    optimizer = ErrorFeedback(make_optimizer("soap", list(ps.items())))
    plain = build()
    base = make_optimizer("soap", list(plain.items()))
    start = copies(ps)
    for call in range(2):
        for these, one in ((ps, optimizer), (plain, base)):
            draw(these, call)
            one.step()
        if call == 0:
            assert all(torch.equal(p, start[n]) for n, p in ps.items())
    for n, p in ps.items():  # U_0 = 0: x_2 = x_1 + U_1 + (U_1 - 0)
        update = plain[n].detach() - start[n]
        torch.testing.assert_close(p.detach() - start[n], 2 * update, rtol=1e-12, atol=1e-15)
    assert any("U_0 = 0" in line for line in REGISTRY["soap"].known)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_which_run_newton_schulz_in_bfloat16(name):
    """They do not see a change of the gradient by a part in 1e9; nor does Lion, which takes signs."""

    def final(change):
        ps = build(pairs=[("layers.1.weight", (4, 4))])
        optimizer = make_optimizer(name, list(ps.items()))
        for call in range(4):
            draw(ps, call)
            if call == 3:
                ps["layers.1.weight"].grad.mul_(1 + change * torch.eye(4, dtype=torch.float64))
            optimizer.step()
        return ps["layers.1.weight"].detach()

    blind = torch.equal(final(0.0), final(1e-9))
    assert blind == (name == "lion" or any("Newton-Schulz" in line for line in REGISTRY[name].known))


def test_bases_of_soap_are_orthogonal_to_float32_only():
    ps = build(pairs=[("layers.1.weight", (4, 4))])
    optimizer = make_optimizer("soap", list(ps.items()))
    error = []
    for call in range(12):
        draw(ps, call)
        optimizer.step()
        Q = optimizer.state[ps["layers.1.weight"]]["Q"][0]
        error.append(float((Q.T @ Q - torch.eye(4, dtype=torch.float64)).abs().max()))
    assert error[0] < 1e-13 < 1e-9 < error[-1] < 1e-5
    assert any("QR" in line for line in REGISTRY["soap"].known)
