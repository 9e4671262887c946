"""Faults that Muon implementations had: zero gradients that become NaN, kernels scaled by the wrong shape."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.optim import AdamW, Muon

from pipeline.optim import LMO, Delayed, ErrorFeedback, make_optimizer


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


OPTIMIZERS = {
    "lmo exact": lambda ps, decay: LMO(ps, lr=0.02, alpha=0.1),
    "lmo newton-schulz": lambda ps, decay: LMO(ps, lr=0.02, alpha=0.1, polar="newton-schulz", measure=True),
    "lmo working": lambda ps, decay: LMO(
        ps, lr=0.02, alpha=0.1, polar="newton-schulz", iteration_dtype="working", nesterov=True
    ),
    "lmo sign": lambda ps, decay: LMO(ps, lr=0.02, alpha=0.1, norm="sign"),
    "lmo row-l2": lambda ps, decay: LMO(ps, lr=0.02, alpha=0.1, norm="row-l2"),
    "lmo frobenius": lambda ps, decay: LMO(ps, lr=0.02, alpha=0.1, norm="frobenius"),
    "muon": lambda ps, decay: Muon(ps, lr=0.02, weight_decay=decay),
    "adamw": lambda ps, decay: AdamW(ps, lr=0.02, weight_decay=decay),
}


def wrap(optimizer, tau, correction):
    if correction:
        optimizer = ErrorFeedback(optimizer, tau=tau)
    return Delayed(optimizer, tau) if tau else optimizer


class Zeroed(nn.Module):
    """Two layers, the last starting at zero: the first has no gradient yet."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8, bias=False)
        self.head = nn.Linear(8, 4, bias=False)
        nn.init.zeros_(self.head.weight)

    def forward(self, x):
        return self.head(torch.tanh(self.inner(x)))


@pytest.mark.parametrize("correction", [False, True])
@pytest.mark.parametrize("tau", [0, 1, 4])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_zero_initialised_head_trains(name, tau, correction):
    torch.manual_seed(0)
    model = Zeroed()
    optimizer = wrap(OPTIMIZERS[name](list(model.parameters()), 0.0), tau, correction)
    x, y = draw(0, 32, 8).float(), draw(1, 32, 4).float()
    losses = []
    for _ in range(tau + 25):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        losses.append(float(loss.detach()))
        optimizer.step()
        assert all(bool(torch.isfinite(p).all()) for p in model.parameters())
    assert losses[-1] < 0.98 * losses[0]


@pytest.mark.parametrize("correction", [False, True])
@pytest.mark.parametrize("tau", [0, 1, 4])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_zero_gradients_leave_the_weights_and_the_correction_alone(name, tau, correction):
    W = nn.Parameter(draw(2, 6, 4).float())
    optimizer = wrap(OPTIMIZERS[name]([W], 0.0), tau, correction)
    start = W.detach().clone()
    for k in range(6):
        W.grad = torch.zeros(6, 4) if k < 3 else draw(k, 6, 4).float()
        optimizer.step()
        newest = optimizer.newest()[0] if tau else W
        if k < 3:
            assert torch.equal(newest, start)
            if correction:
                assert all(torch.equal(y, start) for y in optimizer.virtual_parameters())
        else:
            assert bool(torch.isfinite(newest).all())
            assert not torch.equal(newest, start)


@pytest.mark.parametrize("name", ["muon", "adamw"])
def test_on_zero_gradients_only_decay_acts(name):
    W = nn.Parameter(draw(3, 6, 4).float())
    optimizer = OPTIMIZERS[name]([W], 0.1)
    for _ in range(3):
        before = W.detach().clone()
        W.grad = torch.zeros(6, 4)
        optimizer.step()
        torch.testing.assert_close(W.detach(), before * (1 - 0.02 * 0.1), rtol=1e-6, atol=0)


NORM_SETTINGS = [
    {"norm": "spectral"},
    {"norm": "spectral", "polar": "newton-schulz"},
    {"norm": "spectral", "polar": "newton-schulz", "iteration_dtype": "working"},
    {"norm": "sign"},
    {"norm": "row-l2"},
    {"norm": "frobenius"},
]


@pytest.mark.parametrize("settings", NORM_SETTINGS, ids=lambda s: " ".join(s.values()))
@pytest.mark.parametrize("kernel", [(8, 4, 3, 3), (64, 1, 3, 3), (8, 4, 1, 7), (72, 8, 3, 3)], ids=str)
def test_a_kernel_steps_like_its_flattened_matrix(kernel, settings):
    flat = (kernel[0], math.prod(kernel[1:]))
    conv, linear = nn.Parameter(torch.zeros(kernel)), nn.Parameter(torch.zeros(flat))
    options = {"lr": 0.1, "alpha": 0.2, "nesterov": True, "weight": 3.0, **settings}
    optimizers = LMO([conv], **options), LMO([linear], **options)
    for k in range(3):
        conv.grad = draw(k, *kernel).float()
        linear.grad = conv.grad.reshape(flat)
        for optimizer in optimizers:
            optimizer.step()
    assert torch.equal(conv.reshape(flat), linear)
    assert optimizers[0].norm([conv]) == pytest.approx(optimizers[1].norm([linear]), rel=1e-12)


def one_step(optimizer, p, g):
    before = p.detach().clone()
    p.grad = g.clone()
    optimizer.step()
    return p.detach() - before


@pytest.mark.parametrize("polar", ["exact", "newton-schulz"])
def test_lmo_step_rms_is_that_of_the_flattened_shape(polar):
    """lr weight/sqrt(max(rows, columns)): tall and wide alike, whatever the kernel's own last dimensions."""
    for shape, side in (((64, 8), 64), ((8, 64), 64), ((8, 4, 3, 3), 36), ((64, 1, 3, 3), 64), ((8, 4, 1, 7), 28)):
        p = nn.Parameter(torch.zeros(shape, dtype=torch.float64))
        step = one_step(LMO([p], lr=0.1, alpha=1.0, weight=2.0, polar=polar), p, draw(4, *shape))
        rms = float(step.square().mean().sqrt())
        off = {"exact": 1e-12, "newton-schulz": 0.25}[polar]  # its singular values are 0.68 to 1.21
        assert rms == pytest.approx(0.2 / math.sqrt(side), rel=off)


@pytest.mark.parametrize(
    ("rule", "factor"),
    [
        (None, lambda rows, columns: math.sqrt(max(1, rows / columns))),
        ("original", lambda rows, columns: math.sqrt(max(1, rows / columns))),
        ("match_rms_adamw", lambda rows, columns: 0.2 * math.sqrt(max(rows, columns))),
    ],
)
def test_torchs_scaling_rules_are_weights_of_lmo(rule, factor):
    """Torch's Muon by each of its rules equals LMO with that rule as the group's weight."""
    for rows, columns in ((64, 8), (8, 64), (36, 8), (8, 36), (16, 16)):
        g = draw(5, rows, columns).float()
        p, q = (nn.Parameter(torch.zeros(rows, columns)) for _ in range(2))
        muon = Muon([p], lr=0.05, momentum=0.0, nesterov=False, weight_decay=0.0, adjust_lr_fn=rule)
        lmo = LMO([q], lr=0.05, alpha=1.0, polar="newton-schulz", weight=factor(rows, columns))
        torch.testing.assert_close(one_step(muon, p, g), one_step(lmo, q, g), rtol=1e-6, atol=0)


@pytest.mark.parametrize("rule", ["original", "match_rms_adamw"])
def test_tall_against_wide_is_the_documented_ratio(rule):
    g = draw(6, 64, 8).float()
    rms = []
    for gradient in (g, g.T.contiguous()):
        p = nn.Parameter(torch.zeros_like(gradient))
        muon = Muon([p], lr=0.05, momentum=0.0, nesterov=False, weight_decay=0.0, adjust_lr_fn=rule)
        rms.append(float(one_step(muon, p, gradient).square().mean().sqrt()))
    expected = math.sqrt(64 / 8) if rule == "original" else 1.0
    assert rms[0] / rms[1] == pytest.approx(expected, rel=1e-2)  # bfloat16 products


def test_the_muon_recipe_keeps_kernels_out_of_torchs_muon():
    kernel = nn.Parameter(torch.zeros(8, 4, 3, 3))
    with pytest.raises(ValueError, match="2D parameters"):
        Muon([kernel])
    make_optimizer("muon", [("conv.weight", kernel), ("inner.weight", nn.Parameter(torch.zeros(4, 4)))])


@pytest.mark.parametrize(
    "settings", [s for s in NORM_SETTINGS if s["norm"] != "row-l2"], ids=lambda s: " ".join(s.values())
)
def test_transposing_a_square_problem_transposes_the_step(settings):
    g = draw(7, 12, 12)
    p, q = (nn.Parameter(torch.zeros(12, 12, dtype=torch.float64)) for _ in range(2))
    steps = [one_step(LMO([x], lr=0.1, alpha=1.0, **settings), x, h) for x, h in ((p, g), (q, g.T.contiguous()))]
    # In bfloat16 a product and its transpose are summed in another order.
    allowed = 2e-3 if settings.get("polar") and "iteration_dtype" not in settings else 1e-12
    assert float((steps[0] - steps[1].T).abs().max()) <= allowed
