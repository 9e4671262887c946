"""Wrappers are torch optimizers: schedulers, groups, closures, hooks, copies, checkpoints do as with any other."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest
import torch
from torch import nn

from pipeline.errors import InputError
from pipeline.optim import Delayed, ErrorFeedback
from pipeline.optim.delay_compensation import DelayCompensation
from pipeline.optim.gradient_extrapolation import GradientExtrapolation
from pipeline.optim.lr_discount import LRDiscount
from pipeline.optim.weight_prediction import WeightPrediction

WRAP = {
    "delayed": lambda base: Delayed(base, 2),
    "error-feedback": lambda base: ErrorFeedback(base, 1),
    "telescoped": lambda base: ErrorFeedback(base, 3, "telescoped"),
    "weight-prediction": lambda base: WeightPrediction(base, 2),
    "gradient-extrapolation": lambda base: GradientExtrapolation(base, 2),
    "delay-compensation": lambda base: DelayCompensation(base, 2, 0.5),
    "adaptive": lambda base: DelayCompensation(base, 2, 0.5, adaptive=True),
    "lr-discount": lambda base: LRDiscount(base, 3, 4),
    "delayed error feedback": lambda base: Delayed(ErrorFeedback(base, 2), 2),
    "both": lambda base: Delayed(ErrorFeedback(LRDiscount(base, 2, 5), 2), 2),
}
every = pytest.mark.parametrize("wrap", WRAP.values(), ids=WRAP)


def weights(dtype: torch.dtype = torch.float64) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(1)
    return [nn.Parameter(torch.randn(s, generator=generator, dtype=torch.float64).to(dtype)) for s in [(4, 3), (3,)]]


def adamw(ps: list[nn.Parameter], **settings) -> torch.optim.Optimizer:
    return torch.optim.AdamW(ps, lr=0.05, foreach=False, **settings)


def loss_of(ps: list[nn.Parameter], k: int) -> torch.Tensor:
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(k), dtype=torch.float64).to(ps[0].dtype)
    return ((x @ ps[0] + ps[1]) ** 2).mean()


def run(ps: list[nn.Parameter], optimizer: torch.optim.Optimizer, steps: range, after=lambda: None) -> list:
    path = []
    for k in steps:
        optimizer.zero_grad()
        loss_of(ps, k).backward()
        optimizer.step()
        after()
        path.append([p.detach().clone() for p in ps])
    return path


def same(a: list, b: list) -> bool:
    return all(torch.equal(x, y) for row, other in zip(a, b, strict=True) for x, y in zip(row, other, strict=True))


@every
@pytest.mark.parametrize("set_to_none", [True, False])
def test_a_closure_is_a_step_and_both_ways_to_zero_are_one(wrap, set_to_none):
    ps, qs = weights(), weights()
    plain, closed = wrap(adamw(ps)), wrap(adamw(qs))
    path = run(ps, plain, range(6))
    for k in range(6):

        def closure(k=k):
            closed.zero_grad(set_to_none=set_to_none)
            loss = loss_of(qs, k)
            loss.backward()
            return loss

        where = loss_of(qs, k).item()
        assert closed.step(closure).item() == where
        assert same([qs], [path[k]])


@every
def test_a_scheduler_acts_on_the_optimizer_inside(wrap):
    """One that changes betas as well as the rate; as if it had been put on the bare optimizer."""
    ps, qs = weights(), weights()
    inside, outside = adamw(ps), adamw(qs)
    a, b = wrap(inside), wrap(outside)
    on_base = torch.optim.lr_scheduler.OneCycleLR(inside, max_lr=0.1, total_steps=9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns where it believes that step() was never called
        on_wrapper = torch.optim.lr_scheduler.OneCycleLR(b, max_lr=0.1, total_steps=9)
        assert same(run(ps, a, range(8), on_base.step), run(qs, b, range(8), on_wrapper.step))
    assert on_base.get_last_lr() == on_wrapper.get_last_lr() == [group["lr"] for group in b.param_groups]
    assert inside.param_groups[0]["betas"] == outside.param_groups[0]["betas"] != (0.9, 0.999)


@every
def test_groups_and_state_are_those_of_the_optimizer_inside(wrap):
    ps = weights()
    base = torch.optim.SGD([{"params": ps[:1], "lr": 0.3}], lr=0.1, momentum=0.9, foreach=False)
    optimizer = wrap(base)
    optimizer.add_param_group({"params": ps[1:]})
    assert [group["lr"] for group in base.param_groups] == [0.3, 0.1]
    run(ps, optimizer, range(3))
    assert optimizer.state is base.state
    assert optimizer.param_groups is base.param_groups
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert optimizer.state is base.state
    assert optimizer.param_groups is base.param_groups
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group({"params": ps[1:]})


@every
def test_hooks_of_the_wrapper_run_once(wrap):
    ps = weights()
    optimizer = wrap(adamw(ps))
    seen = []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    optimizer.register_state_dict_pre_hook(lambda _: seen.append("save"))
    optimizer.register_state_dict_post_hook(lambda _, saved: saved | {"note": 1})
    optimizer.register_load_state_dict_pre_hook(lambda _, saved: {k: v for k, v in saved.items() if k != "note"})
    optimizer.register_load_state_dict_post_hook(lambda _: seen.append("loaded"))
    run(ps, optimizer, range(2))
    assert seen == ["before", "after"] * 2
    saved = optimizer.state_dict()
    assert saved["note"] == 1
    optimizer.load_state_dict(saved)
    assert seen[4:] == ["save", "loaded"]


@every
@pytest.mark.parametrize("saved_after", [0, 1, 5])
def test_save_and_load_is_the_uninterrupted_run(wrap, saved_after, tmp_path):
    """With the safe loader, at a point where histories are empty, half full and full."""
    ps = weights()
    whole = run(ps, wrap(adamw(ps)), range(11))
    ps = weights()
    optimizer = wrap(adamw(ps))
    run(ps, optimizer, range(saved_after))
    torch.save([optimizer.state_dict(), [p.detach() for p in ps]], tmp_path / "c.pt")
    state, values = torch.load(tmp_path / "c.pt")
    qs = [nn.Parameter(v) for v in values]
    resumed = wrap(adamw(qs))
    resumed.load_state_dict(state)
    assert same(run(qs, resumed, range(saved_after, 11)), whole[saved_after:])
    twin_ps, twin = copy.deepcopy((ps, optimizer))
    other_ps, other = pickle.loads(pickle.dumps((ps, optimizer)))  # noqa: S301
    assert same(run(twin_ps, twin, range(saved_after, 11)), whole[saved_after:])
    assert same(run(other_ps, other, range(saved_after, 11)), whole[saved_after:])


@every
def test_state_of_another_shape_or_another_setting_is_refused(wrap):
    ps = weights()
    optimizer = wrap(adamw(ps))
    run(ps, optimizer, range(4))
    saved = optimizer.state_dict()
    qs = [nn.Parameter(torch.zeros(4, 2, dtype=torch.float64)), nn.Parameter(torch.zeros(3, dtype=torch.float64))]
    if any(isinstance(v, dict) and v for key in set(saved) - {"state", "param_groups"} for v in saved[key].values()):
        with pytest.raises(InputError, match=r"parameter 0 was saved with shape \(4, 3\), this one has \(4, 2\)"):
            wrap(adamw(qs)).load_state_dict(saved)
    key = optimizer.KEY
    other = saved | {key: saved[key] | {"tau": 7}}
    with pytest.raises(InputError, match=rf"tau: saved with 7, this one has {optimizer.tau}"):
        optimizer.load_state_dict(other)


@every
def test_what_was_refused_has_changed_nothing(wrap):
    ps = weights()
    optimizer = wrap(adamw(ps))
    run(ps, optimizer, range(4))
    before = copy.deepcopy(optimizer.state_dict())
    bad = copy.deepcopy(before)
    bad["param_groups"][0]["params"] = [0]  # torch's own loader refuses it, behind our checks
    with pytest.raises((InputError, ValueError)):
        optimizer.load_state_dict(bad)
    assert repr(optimizer.state_dict()) == repr(before)


@every
def test_a_grad_scaler_leaves_out_a_step(wrap):
    """Inf in one step: nothing of it stays, the scale is halved, and the run is that of one without the step."""
    ps, qs = weights(torch.float32), weights(torch.float32)
    a, b = wrap(torch.optim.SGD(ps, lr=0.01, foreach=False)), wrap(torch.optim.SGD(qs, lr=0.01, foreach=False))
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1000)
    for k in range(8):
        a.zero_grad()
        loss = loss_of(ps, k)
        scaler.scale(loss * (float("inf") if k == 3 else 1.0)).backward()
        scaler.unscale_(a)
        scaler.step(a)
        scaler.update()
        if k != 3:
            for p, q in zip(ps, qs, strict=True):
                q.grad = p.grad.clone()
            b.step()
        assert same([ps], [qs])
    assert scaler.get_scale() == 4.0
    assert all(bool(p.isfinite().all()) for p in ps)


def test_lbfgs_asks_for_more_than_one_gradient():
    with pytest.raises(InputError, match="LBFGS; allowed are optimizers that take one gradient a step"):
        ErrorFeedback(torch.optim.LBFGS(weights()), 1)


@pytest.mark.parametrize("name", [name for name in WRAP if "delayed" not in name and name != "both"])
def test_nothing_goes_around_a_delay_line(name):
    with pytest.raises(InputError, match=r"base_optimizer: a Delayed; allowed is Delayed\("):
        WRAP[name](Delayed(adamw(weights()), 1))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda o: ErrorFeedback(o, 1, coefficient=-0.1), "coefficient: -0.1; allowed is a finite number >= 0"),
        (lambda o: ErrorFeedback(o, 1, coefficient=float("nan")), "coefficient: nan"),
        (lambda o: ErrorFeedback(o, 1, state_dtype=torch.int8), "state_dtype: torch.int8; allowed are None"),
        (lambda o: ErrorFeedback(o, 1, master_dtype=torch.bfloat16), "master_dtype: torch.bfloat16; allowed are None"),
        (lambda o: WeightPrediction(o, 1.5), "tau: 1.5; allowed is an integer >= 0"),
        (lambda o: GradientExtrapolation(o, 1, coefficient=float("inf")), "coefficient: inf"),
        (lambda o: DelayCompensation(o, 1, strength=-1), "strength: -1; allowed"),
        (lambda o: DelayCompensation(o, 1, decay=2), "decay: 2; allowed is a finite number from 0 to 1"),
        (lambda o: LRDiscount(o, 2, 0), "anneal_steps: 0; allowed is an integer >= 1"),
        (lambda o: LRDiscount(o, -1, 3), "tau: -1; allowed is a finite number >= 0"),
    ],
)
def test_bad_settings_are_one_line(build, message):
    with pytest.raises(InputError, match=message):
        build(adamw(weights()))
