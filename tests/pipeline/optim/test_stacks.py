"""Wrappers in wrappers: what may stand in what, who decides, and what cannot be done while weights are swapped."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.errors import InputError
from pipeline.optim import (
    OPTIMIZERS,
    Chained,
    DelayCompensation,
    Delayed,
    ErrorFeedback,
    GradientExtrapolation,
    LRDiscount,
    WeightPrediction,
    make_optimizer,
)


def scalar(value: float = 0.0, dtype: torch.dtype = torch.float64) -> nn.Parameter:
    return nn.Parameter(torch.tensor([value], dtype=dtype))


def sgd(*ps: nn.Parameter, lr: float = 1.0) -> torch.optim.Optimizer:
    return torch.optim.SGD(ps, lr=lr, foreach=False)


def steps(p: nn.Parameter, optimizer: torch.optim.Optimizer, gradients) -> list[float]:
    path = []
    for g in gradients:
        p.grad = torch.full_like(p, g)
        optimizer.step()
        path.append(p.item())
    return path


# -- inside newest_weights and solution_weights


@pytest.mark.parametrize("call", ["step", "state_dict", "load_state_dict"])
@pytest.mark.parametrize("where", ["newest_weights", "solution_weights"])
def test_no_step_and_no_checkpoint_while_weights_are_swapped(call, where):
    p = scalar()
    optimizer = Delayed(sgd(p), 2)
    steps(p, optimizer, [1.0, 1.0, 1.0])
    saved = optimizer.state_dict()
    with getattr(optimizer, where)(), pytest.raises(InputError, match=f"^{call}: called inside newest_weights"):
        getattr(optimizer, call)(*([saved] if call == "load_state_dict" else []))
    assert (p.item(), optimizer.newest()[0].item()) == (-1.0, -3.0)
    steps(p, optimizer, [1.0])


def test_the_solution_of_weight_prediction_may_be_read_and_changed():
    for build in (lambda o: WeightPrediction(o, 2), lambda o: Delayed(WeightPrediction(o, 2), 2)):
        p = scalar()
        optimizer = build(sgd(p))
        steps(p, optimizer, [1.0, 1.0, 1.0])
        before = p.item()
        with optimizer.solution_weights():
            assert p.item() == optimizer.solution()[0].item() == -3.0
        assert p.item() == before
        with torch.no_grad(), optimizer.solution_weights():
            p.add_(10.0)
        assert optimizer.solution()[0].item() == 7.0
        steps(p, optimizer, [1.0])
        assert optimizer.solution()[0].item() == 6.0


def test_a_parameter_that_is_frozen_later_comes_up_to_date():
    p, q = scalar(), scalar()
    optimizer = Delayed(sgd(p, q), 2)
    for k in range(8):
        p.grad = torch.ones_like(p)
        q.grad = torch.ones_like(q) if k < 4 else None
        q.requires_grad_(k < 4)
        optimizer.step()
    assert (q.item(), p.item()) == (-4.0, -6.0)


# -- what may stand in what


@pytest.mark.parametrize(
    "build",
    [
        lambda o: ErrorFeedback(ErrorFeedback(o, 1), 2),
        lambda o: Delayed(Delayed(o, 1), 2),
        lambda o: Delayed(ErrorFeedback(LRDiscount(ErrorFeedback(o, 1), 2, 3), 1), 1),
    ],
)
def test_two_of_a_kind_are_refused(build):
    with pytest.raises(InputError, match="inside; allowed is one of a kind"):
        build(sgd(scalar()))


@pytest.mark.parametrize(
    "build",
    [
        lambda o: ErrorFeedback(WeightPrediction(o, 1), 1),
        lambda o: WeightPrediction(ErrorFeedback(o, 1), 1),
        lambda o: WeightPrediction(GradientExtrapolation(DelayCompensation(o, 1), 1), 1),
        lambda o: GradientExtrapolation(WeightPrediction(o, 1), 1),
    ],
)
def test_two_that_both_place_the_weights_are_refused(build):
    with pytest.raises(InputError, match="allowed is WeightPrediction around all but a Delayed"):
        build(sgd(scalar()))


def test_a_chain_has_no_wrappers():
    with pytest.raises(InputError, match=r"optimizers: a ErrorFeedback; allowed is ErrorFeedback\(Chained"):
        Chained([ErrorFeedback(sgd(scalar()), 1)])


def test_a_parameter_twice_is_refused():
    p = scalar()
    with pytest.warns(UserWarning, match="duplicate parameters"):
        base = torch.optim.SGD([p, p], lr=1.0)
    with pytest.raises(InputError, match="is in group 0 and in group 0; allowed is one"):
        Delayed(base, 1)


def test_a_checkpoint_of_another_stack_is_refused():
    p = scalar()
    inner = ErrorFeedback(sgd(p), 2)
    saved = Delayed(inner, 2).state_dict()
    with pytest.raises(InputError, match="was saved with 'delayed' around the optimizer"):
        ErrorFeedback(sgd(p), 2).load_state_dict(saved)
    a = Delayed(ErrorFeedback(GradientExtrapolation(sgd(p), 1), 1), 1)
    b = Delayed(GradientExtrapolation(ErrorFeedback(sgd(p), 1), 1), 1)
    with pytest.raises(InputError, match="around: saved with 'error_feedback', this one has 'gradient_extrapolation'"):
        b.load_state_dict(a.state_dict())
    with pytest.raises(InputError, match="around: saved with 'SGD', this one has 'AdamW'"):
        ErrorFeedback(torch.optim.AdamW([p]), 2).load_state_dict(ErrorFeedback(sgd(p), 2).state_dict())
    with pytest.raises(InputError, match=r"groups of \[1\] parameters, this optimizer has \[2\]"):
        ErrorFeedback(sgd(p, scalar()), 2).load_state_dict(ErrorFeedback(sgd(p), 2).state_dict())
    with pytest.raises(InputError, match="state_dict: NoneType; allowed"):
        inner.load_state_dict(None)
    low = ErrorFeedback(sgd(p), 2, master_dtype=torch.float64)
    with pytest.raises(InputError, match="master_dtype: saved with 'torch.float32', this one has 'torch.float64'"):
        low.load_state_dict(ErrorFeedback(sgd(p), 2).state_dict())


def test_base_state_of_another_shape_is_refused():
    big = nn.Parameter(torch.zeros(4, 3))
    small = nn.Parameter(torch.zeros(2, 3))
    first = ErrorFeedback(torch.optim.AdamW([big]), 0)
    big.grad = torch.ones(4, 3)
    first.step()
    with pytest.raises(InputError, match=r"exp_avg of parameter 0 was saved with shape \(4, 3\), this one has \(2,"):
        ErrorFeedback(torch.optim.AdamW([small]), 0).load_state_dict(first.state_dict())


# -- who decides about a step that is left out


@pytest.mark.filterwarnings("ignore:.*gradient not finite")
@pytest.mark.parametrize(
    "build",
    [
        lambda o: ErrorFeedback(LRDiscount(o, 2, 4, skip_nonfinite=True), 1),
        lambda o: GradientExtrapolation(ErrorFeedback(o, 1, skip_nonfinite=True), 1),
        lambda o: DelayCompensation(ErrorFeedback(o, 1, skip_nonfinite=True), 1, adaptive=True),
        lambda o: LRDiscount(ErrorFeedback(o, 1), 2, 4, skip_nonfinite=True),
    ],
)
def test_the_outermost_decides_for_all(build):
    """With Inf in the third step: nothing moves, and later steps are those of a run that never had it."""
    p, q = scalar(), scalar()
    a, b = build(sgd(p, lr=0.1)), build(sgd(q, lr=0.1))
    path = steps(p, a, [1.0, 2.0, float("inf"), 3.0, 1.0])
    assert path[2] == path[1]
    assert steps(q, b, [1.0, 2.0, 3.0, 1.0])[2:] == path[3:] or isinstance(a, DelayCompensation)
    assert a.skip_nonfinite and not a.base.skip_nonfinite
    assert a.skipped_steps == 1
    assert np.isfinite(path).all()


def test_compensation_remembers_weights_past_a_step_that_was_left_out():
    """Delay 1: the gradient of step 4 was taken at x_3 = x_4, so nothing is to be compensated."""
    p = scalar()
    optimizer = LRDiscount(DelayCompensation(sgd(p, lr=0.5), 1, 1.0), 1, 4, skip_nonfinite=True)
    with pytest.warns(RuntimeWarning, match="not finite"):
        path = steps(p, optimizer, [1.0, 1.0, float("nan"), 1.0])
    assert path == [-0.5, -0.5 - 0.5 * (1 + 1 * (-0.5 - 0.0)), path[1], path[1] - 0.5]


# -- what bases do to a gradient


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_extrapolating_a_constant_gradient_changes_nothing(name):
    """Also over optimizers that write into the gradient that they are given."""
    torch.manual_seed(0)
    start = torch.randn(4, 4, dtype=torch.float64)
    ps = [nn.Parameter(start.clone()) for _ in range(2)]
    plain = make_optimizer(name, [("layers.1.weight", ps[0])])
    wrapped = GradientExtrapolation(make_optimizer(name, [("layers.1.weight", ps[1])]), 3)
    g = torch.randn(4, 4, dtype=torch.float64)
    for _ in range(4):
        ps[0].grad, ps[1].grad = g.clone(), g.clone()
        plain.step()
        wrapped.step()
        assert torch.equal(ps[1].grad, g)
        assert torch.equal(ps[0], ps[1])


# -- copies and links


def test_virtual_parameters_follow_a_change_and_find_copies_of_an_outer_wrapper():
    p = scalar(1.0, torch.bfloat16)
    optimizer = ErrorFeedback(sgd(p, lr=0.001), 1)
    steps(p, optimizer, [1.0, 2.0])
    assert optimizer.virtual_parameters()[0].dtype == torch.float32
    with torch.no_grad():
        p.fill_(5.0)
    assert abs(optimizer.virtual_parameters()[0].item() - 5.0) < 0.01
    q = scalar(1.0, torch.bfloat16)
    inner = ErrorFeedback(sgd(q, lr=0.001), 1)
    outer = Delayed(GradientExtrapolation(inner, 1, 0.0), 1)
    steps(q, outer, [1.0, 1.0, 1.0])
    assert inner.virtual_parameters()[0].dtype == torch.float32
    assert torch.equal(outer.virtual_parameters()[0], inner.virtual_parameters()[0])
    assert outer.solution()[0].dtype == torch.float32


def test_virtual_parameters_need_error_feedback():
    with pytest.raises(InputError, match="virtual_parameters: SGD; allowed with an ErrorFeedback inside"):
        Delayed(sgd(scalar()), 1).virtual_parameters()
    p = scalar()
    deep = Delayed(LRDiscount(ErrorFeedback(sgd(p), 1), 2, 3), 1)
    steps(p, deep, [1.0, 1.0])
    assert len(deep.virtual_parameters()) == 1


def test_a_wrapper_that_is_gone_has_no_say():
    p = scalar()
    inner = ErrorFeedback(sgd(p), 1)
    outer = Delayed(inner, 1)
    steps(p, outer, [1.0, 1.0])
    del outer
    gc.collect()
    path = steps(p, inner, [1.0])
    assert inner.solution()[0].item() == path[-1]


def test_numbers_of_numpy_are_numbers():
    assert ErrorFeedback(sgd(scalar()), np.int64(2), coefficient=np.float32(0.5)).coefficient == 0.5
    with pytest.raises(InputError, match="skip_nonfinite: 'yes'"):
        Delayed(sgd(scalar()), 1, skip_nonfinite="yes")


@pytest.mark.parametrize("name", ["multihead_attn.out_proj.weight", "overhead.weight"])
def test_attention_is_no_head(name):
    parts = {n for group in make_optimizer("lmo", [(name, nn.Parameter(torch.zeros(3, 3)))]).param_groups
             for n in [group["norm"]]}  # fmt: skip
    assert parts == {"spectral"}


def test_parameters_without_names_are_refused():
    with pytest.raises(InputError, match="named_parameters: Parameter; allowed are pairs"):
        make_optimizer("muon", nn.Linear(2, 2).parameters())
