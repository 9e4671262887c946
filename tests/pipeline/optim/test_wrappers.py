"""Delayed and ErrorFeedback against literal transcriptions of their definitions."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from pipeline.errors import InputError
from pipeline.optim import LMO, Chained, Delayed, ErrorFeedback, make_optimizer

BASES = {
    "sgd": lambda ps: torch.optim.SGD(ps, lr=0.05, momentum=0.9),
    "adamw": lambda ps: torch.optim.AdamW(ps, lr=0.03, weight_decay=0.1, foreach=False),
    "muon": lambda ps: torch.optim.Muon(ps, lr=0.02),
    "lmo": lambda ps: LMO(ps, lr=0.02, alpha=0.3),
    "chained": lambda ps: Chained([torch.optim.Muon(ps[:1], lr=0.02), torch.optim.AdamW(ps[1:], lr=0.01)]),
}


def parameters(dtype: torch.dtype = torch.float64) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(3)
    return [
        nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype))
        for shape in [(4, 3), (3, 5)]
    ]


def set_gradients(ps: list[nn.Parameter], call: int) -> None:
    """A gradient that depends on the point and on the call."""
    generator = torch.Generator().manual_seed(100 + call)
    for p in ps:
        noise = torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype)
        p.grad = p.detach() * 0.7 + noise


def run(ps: list[nn.Parameter], optimizer: torch.optim.Optimizer, calls: range) -> list[list[torch.Tensor]]:
    path = []
    for call in calls:
        set_gradients(ps, call)
        optimizer.step()
        path.append([p.detach().clone() for p in ps])
    return path


def equal(a: list[list[torch.Tensor]], b: list[list[torch.Tensor]]) -> bool:
    return all(torch.equal(x, y) for row, other in zip(a, b, strict=True) for x, y in zip(row, other, strict=True))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    "wrap",
    [lambda o: Delayed(o, 0), lambda o: ErrorFeedback(o, 0), lambda o: ErrorFeedback(o, 0, "telescoped")],
)
def test_tau_zero_is_the_base_bit_for_bit(base, wrap):
    ps, qs = parameters(), parameters()
    assert equal(run(ps, BASES[base](ps), range(6)), run(qs, wrap(BASES[base](qs)), range(6)))


@pytest.mark.parametrize("tau", [1, 2, 4])
def test_delayed_sgd_is_the_recursion(tau):
    """x_{k+1} = x_k - eta m_{k+1} with g(x_{(k-tau)+}; xi_k), from step 0 on, bit for bit."""
    ps = parameters()
    optimizer = Delayed(torch.optim.SGD(ps, lr=0.05, momentum=0.5, dampening=0.5, foreach=False), tau)
    x = ps[0].detach().clone()
    iterates, m = [x], None
    for k in range(9):
        assert torch.equal(ps[0], iterates[max(k - tau, 0)]), "where the gradient is taken"
        set_gradients(ps, k)
        optimizer.step()
        generator = torch.Generator().manual_seed(100 + k)
        old = iterates[max(k - tau, 0)]
        g = old * 0.7 + torch.randn(old.shape, generator=generator, dtype=torch.float64)
        m = g.clone() if m is None else m.mul(0.5).add(g, alpha=0.5)
        iterates.append(iterates[-1].add(m, alpha=-0.05))
        assert torch.equal(optimizer.newest()[0], iterates[-1])
        with optimizer.newest_weights():
            assert torch.equal(ps[0], iterates[-1])
        assert not torch.equal(optimizer.newest()[0], iterates[-2])


def test_changes_inside_newest_weights_are_kept():
    ps = parameters()
    optimizer = Delayed(torch.optim.SGD(ps, lr=0.05, foreach=False), 2)
    run(ps, optimizer, range(5))
    where = ps[0].detach().clone()
    with torch.no_grad(), optimizer.newest_weights(), optimizer.newest_weights():
        ps[0].mul_(2)
        twice = ps[0].detach().clone()
    assert torch.equal(ps[0], where)
    assert torch.equal(optimizer.newest()[0], twice)


def test_a_backward_behind_the_step_is_noticed():
    """The weights that a graph has kept are overwritten in place, which autograd sees."""
    ps = parameters()
    optimizer = Delayed(torch.optim.SGD(ps, lr=0.05, foreach=False), 1)
    set_gradients(ps, 0)
    loss = (ps[0] @ ps[1]).square().sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    ("tau", "form"), [(1, "extrapolate"), (3, "extrapolate"), (1, "telescoped"), (3, "telescoped")]
)
def test_error_feedback_is_its_definition(base, tau, form):
    """x = new + c (U_k - U_{k-lag}) from a bare optimizer driven by hand, bit for bit; then the identity."""
    ps, qs = parameters(), parameters()
    optimizer, bare = ErrorFeedback(BASES[base](ps), tau, form), BASES[base](qs)
    c, lag = (tau, 1) if form == "extrapolate" else (1, tau)
    updates: list[list[torch.Tensor]] = []
    virtual: list[list[torch.Tensor]] = []
    x0 = [p.detach().clone() for p in ps]
    for k in range(8):
        set_gradients(ps, k)
        optimizer.step()
        virtual.append(optimizer.virtual_parameters())
        set_gradients(qs, k)
        old = [q.detach().clone() for q in qs]
        bare.step()
        updates.append([q.detach() - o for q, o in zip(qs, old, strict=True)])
        if k > 0:
            for i, q in enumerate(qs):
                correction = updates[k][i] - updates[max(k - lag, 0)][i]
                q.data = q.detach() + (correction * c if c != 1 else correction)
        assert all(torch.equal(p, q) for p, q in zip(ps, qs, strict=True)), f"step {k}"
    for i in range(len(ps)):
        first = x0[i] - (tau - 1) * updates[0][i]  # y_1
        torch.testing.assert_close(virtual[0][i], first, rtol=0, atol=1e-12)
        for k in range(1, 8):
            torch.testing.assert_close(virtual[k][i], virtual[k - 1][i] + updates[k][i], rtol=0, atol=1e-12)
            wrong = virtual[k - 1][i] + updates[k - 1][i]  # off by one
            assert not torch.allclose(virtual[k][i], wrong, rtol=0, atol=1e-6)


def test_storage_may_be_replaced_between_steps():
    ps, qs = parameters(), parameters()
    a, b = ErrorFeedback(BASES["adamw"](ps)), ErrorFeedback(BASES["adamw"](qs))
    for call in range(5):
        qs[0].data = qs[0].data.clone()
        assert equal(run(ps, a, range(call, call + 1)), run(qs, b, range(call, call + 1)))


def test_missing_gradients_follow_each_parameter():
    """Frozen, always, late: same shapes, so nothing crashes when histories shift; each on its own path."""

    def build():
        return [nn.Parameter(torch.ones(3, 3, dtype=torch.float64)) for _ in range(4)]

    def optimizer(ps):
        return Delayed(ErrorFeedback(torch.optim.SGD(ps, lr=0.1, momentum=0.9, foreach=False), 1), 1)

    ps = build()
    ps[0].requires_grad_(False)
    together, alone = optimizer(ps), []
    singles = build()
    for p in singles:
        alone.append(optimizer([p]))
    for call in range(6):
        for i, (p, q) in enumerate(zip(ps, singles, strict=True)):
            absent = i == 0 or (i == 2 and call in (0, 1)) or (i == 3 and call == 3)
            p.grad = None if absent else torch.full_like(p, 1.0 + i + call)
            q.grad = None if absent else torch.full_like(q, 1.0 + i + call)
        together.step()
        for o in alone:
            o.step()
        assert all(torch.equal(p, q) for p, q in zip(ps, singles, strict=True))
    assert torch.equal(ps[0], torch.ones(3, 3, dtype=torch.float64))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("saved_after", [0, 1, 7])
def test_resume_equals_the_uninterrupted_run(base, saved_after, tmp_path):
    tau = 3

    def build(ps):
        return Delayed(ErrorFeedback(BASES[base](ps), tau, "telescoped"), tau)

    ps = parameters()
    whole = run(ps, build(ps), range(15))
    ps = parameters()
    optimizer = build(ps)
    run(ps, optimizer, range(saved_after))
    torch.save({"optimizer": optimizer.state_dict(), "weights": [p.detach() for p in ps]}, tmp_path / "c.pt")
    saved = torch.load(tmp_path / "c.pt")  # the safe loader
    qs = [nn.Parameter(w) for w in saved["weights"]]
    resumed = build(qs)
    resumed.load_state_dict(saved["optimizer"])
    assert equal(run(qs, resumed, range(saved_after, 15)), whole[saved_after:])


def test_loading_another_wrapper_is_refused():
    ps = parameters()
    make = BASES["sgd"]
    with pytest.raises(InputError, match="saved with 3, this one has 2"):
        Delayed(make(ps), 2).load_state_dict(Delayed(make(ps), 3).state_dict())
    with pytest.raises(InputError, match="saved with 'telescoped'"):
        ErrorFeedback(make(ps)).load_state_dict(ErrorFeedback(make(ps), 1, "telescoped").state_dict())
    with pytest.raises(InputError, match="'delayed' is missing"):
        Delayed(make(ps), 2).load_state_dict(make(ps).state_dict())
    named = [("a", ps[0]), ("b", ps[1])]
    saved = ErrorFeedback(torch.optim.SGD(named, lr=0.1)).state_dict()
    with pytest.raises(InputError, match="b is saved as a"):
        ErrorFeedback(torch.optim.SGD([("b", ps[0]), ("a", ps[1])], lr=0.1)).load_state_dict(saved)


def test_loading_keeps_dtypes_and_values():
    """Moments, copies and updates of bfloat16 weights in the dtype of each, also where all of it is mixed."""

    def build(ps, kept):
        adamw = torch.optim.AdamW(ps, lr=0.1, foreach=False)
        return Delayed(ErrorFeedback(adamw, 3, "telescoped", state_dtype=kept), 3)

    for kept, dtype in ((None, torch.float32), (torch.bfloat16, torch.bfloat16)):
        ps = parameters(torch.bfloat16)
        optimizer = build(ps, kept)
        run(ps, optimizer, range(5))
        saved = copy.deepcopy(optimizer.state_dict())
        qs = [nn.Parameter(p.detach().clone()) for p in ps]
        loaded = build(qs, kept)
        loaded.load_state_dict(saved)
        inner = loaded.base
        assert {p.dtype for p in qs} == {torch.bfloat16}
        assert inner.base.state[qs[0]]["exp_avg"].dtype == torch.float32
        assert inner.masters.copies[qs[0]].dtype == torch.float32
        assert [U.dtype for U in inner.history[qs[0]]] == [dtype] * 3
        assert equal(run(ps, optimizer, range(5, 9)), run(qs, loaded, range(5, 9)))


@pytest.mark.parametrize("form", ["extrapolate", "telescoped"])
def test_half_precision_weights_are_the_rounded_ones_of_a_float32_run(form):
    ps, tau = parameters(torch.bfloat16), 2
    wide = [nn.Parameter(p.detach().float()) for p in ps]
    low = ErrorFeedback(torch.optim.AdamW(ps, lr=0.01, foreach=False), tau, form)
    full = ErrorFeedback(torch.optim.AdamW(wide, lr=0.01, foreach=False), tau, form)
    bare = [nn.Parameter(p.detach().clone()) for p in ps]
    rounded = ErrorFeedback(torch.optim.AdamW(bare, lr=0.01, foreach=False), tau, form, master_dtype=None)
    storage = ps[0].data_ptr()
    for call in range(6):
        set_gradients(ps, call)
        for p, w, b in zip(ps, wide, bare, strict=True):
            w.grad, b.grad = p.grad.float(), p.grad.clone()
        low.step(), full.step(), rounded.step()
        assert all(torch.equal(p, w.bfloat16()) for p, w in zip(ps, wide, strict=True))
        assert all(p.grad.dtype == torch.bfloat16 for p in ps)
    assert ps[0].data_ptr() == storage
    assert all(torch.equal(a, b) for a, b in zip(low.virtual_parameters(), full.virtual_parameters(), strict=True))
    assert not all(torch.equal(p, b) for p, b in zip(ps, bare, strict=True)), "in bfloat16 updates are lost"
    with torch.no_grad():
        ps[0].fill_(1.0)  # by somebody else: the copy follows
    set_gradients(ps, 7)
    low.step()
    assert bool(((ps[0] - 1.0).abs() < 0.2).all())


def test_nonfinite_gradient_is_left_out_and_counted():
    """x_4 = x_3, as in a pipeline; then equal to a run whose optimizer was not called with that batch."""
    tau = 2

    def build(ps):
        return ErrorFeedback(BASES["adamw"](ps), tau)

    ps, qs = parameters(), parameters()
    a, b = Delayed(build(ps), tau, skip_nonfinite=True), build(qs)
    path = [[q.detach().clone() for q in qs]]
    for k in range(12):
        set_gradients(ps, k)
        gradients = [p.grad.clone() for p in ps]
        if k == 3:
            ps[1].grad[0, 0] = float("inf")
            with pytest.warns(RuntimeWarning, match="not finite"):
                a.step()
        else:
            a.step()
            for q, g in zip(qs, gradients, strict=True):
                q.grad = g
            b.step()
        path.append([q.detach().clone() for q in qs])
        assert equal([a.newest()], [qs])
        assert equal([ps], [path[max(k + 1 - tau, 0)]])
    assert a.skipped_steps == 1
    assert a.state_dict()["delayed"]["skipped_steps"] == 1
    hoisted = Delayed(ErrorFeedback(BASES["adamw"](parameters()), tau, skip_nonfinite=True), tau)
    assert hoisted.skip_nonfinite and not hoisted.base.skip_nonfinite


def test_grad_scaler_skips_like_a_reference_without_that_step():
    def build(ps):
        return Delayed(ErrorFeedback(torch.optim.SGD(ps, lr=0.1, momentum=0.9, foreach=False), 2), 2)

    ps, qs = parameters(torch.float32), parameters(torch.float32)
    a, b = build(ps), build(qs)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1000)
    for call in range(12):
        generator = torch.Generator().manual_seed(call)
        weights = [torch.randn(p.shape, generator=generator) for p in ps]
        loss = sum((w * p).sum() for w, p in zip(weights, ps, strict=True))
        a.zero_grad()
        scaler.scale(loss * (float("inf") if call == 3 else 1.0)).backward()
        scaler.step(a)
        scaler.update()
        if call != 3:
            for w, q in zip(weights, qs, strict=True):
                q.grad = w.clone()
            b.step()
        assert all(torch.equal(p, q) for p, q in zip(ps, qs, strict=True)), call
    assert scaler.get_scale() == 2.0


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("tau", [0, 1, 4])
def test_zero_gradients_stay_finite(base, tau):
    ps = parameters()
    optimizer = Delayed(ErrorFeedback(BASES[base](ps), tau), tau)
    for call in range(9):
        set_gradients(ps, call)
        if call < 3:
            for p in ps:
                p.grad.zero_()
        optimizer.step()
    assert all(bool(torch.isfinite(p).all()) for p in ps)


def test_scheduler_and_copies_act_on_the_optimizer_inside():
    ps = parameters()
    optimizer = Delayed(ErrorFeedback(BASES["sgd"](ps), 1), 1)
    optimizer.param_groups[0]["lr"] = 0.25
    assert optimizer.base.base.param_groups[0]["lr"] == 0.25
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.param_groups[0]["lr"] = 0.5
    assert optimizer.base.base.param_groups[0]["lr"] == 0.5
    run(ps, optimizer, range(4))
    twin_ps, twin = copy.deepcopy((ps, optimizer))
    assert equal(run(ps, optimizer, range(4, 8)), run(twin_ps, twin, range(4, 8)))
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2, 2, dtype=torch.float64))]})
    assert len(optimizer.base.base.param_groups) == 2


def test_decay_acts_once_per_step():
    p = nn.Parameter(torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64))
    start = p.detach().clone()
    optimizer = Delayed(torch.optim.AdamW([p], lr=0.1, weight_decay=0.1, foreach=False), 2)
    for _ in range(10):
        p.grad = torch.zeros_like(p)
        optimizer.step()
    torch.testing.assert_close(optimizer.newest()[0].detach(), start * 0.99**10, rtol=1e-14, atol=0)
    torch.testing.assert_close(p.detach(), start * 0.99**8, rtol=1e-14, atol=0)


@pytest.mark.parametrize("tau", [-1, 1.0, True, "1"])
def test_bad_tau(tau):
    for build in (lambda o: Delayed(o, tau), lambda o: ErrorFeedback(o, tau)):
        with pytest.raises(InputError, match="tau"):
            build(BASES["sgd"](parameters()))


def test_bad_form_and_base():
    with pytest.raises(InputError, match="extrapolate, telescoped"):
        ErrorFeedback(BASES["sgd"](parameters()), 1, "other")
    with pytest.raises(InputError, match="base_optimizer"):
        Delayed("sgd", 1)
    with pytest.raises(InputError, match="correction"):
        make_optimizer("sgd", [("a", parameters()[0])], correction="both")
