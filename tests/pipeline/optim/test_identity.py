"""y_{k+1} = y_k + U_k for every optimizer, form, delay and coefficient; the first update is plain."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pipeline.optim import OPTIMIZERS, Delayed, ErrorFeedback, WeightPrediction, make_optimizer

SETTINGS = [(1, "extrapolate", None), (3, "extrapolate", None), (3, "telescoped", None), (2, "telescoped", 0.4)]


def model() -> dict[str, nn.Parameter]:
    generator = torch.Generator().manual_seed(4)
    shapes = {"embed.weight": (5, 4), "layers.1.weight": (4, 4), "layers.1.bias": (4,), "head.weight": (5, 4)}
    return {
        name: nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64))
        for name, shape in shapes.items()
    }


def gradients(ps: dict[str, nn.Parameter], k: int) -> None:
    for number, p in enumerate(ps.values()):
        noise = torch.randn(p.shape, generator=torch.Generator().manual_seed(10 * k + number), dtype=torch.float64)
        p.grad = 0.5 * p.detach() + noise


def updates_of(base: torch.optim.Optimizer, ps: dict[str, nn.Parameter]) -> list[list[torch.Tensor]]:
    """U_0, U_1, ... as the optimizer inside makes them, filled in while it runs."""
    found: list[list[torch.Tensor]] = []
    before: list[torch.Tensor] = []

    def note(*_):
        before[:] = [p.detach().clone() for p in ps.values()]

    base.register_step_pre_hook(note)
    base.register_step_post_hook(
        lambda *_: found.append([p.detach() - x for p, x in zip(ps.values(), before, strict=True)])
    )
    return found


def in_order(optimizer: torch.optim.Optimizer, values: list[torch.Tensor], ps: dict[str, nn.Parameter]) -> list:
    by_id = dict(zip([id(p) for g in optimizer.param_groups for p in g["params"]], values, strict=True))
    return [by_id[id(p)] for p in ps.values()]


@pytest.mark.parametrize(("tau", "form", "c"), SETTINGS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_virtual_iterates_make_plain_steps(name, tau, form, c):
    ps = model()
    base = make_optimizer(name, list(ps.items()), lr=0.02)
    U = updates_of(base, ps)
    optimizer = Delayed(ErrorFeedback(base, tau, form, c), tau)
    x, y = [[p.detach().clone() for p in ps.values()]], []
    for k in range(9):
        gradients(ps, k)
        optimizer.step()
        x.append([t.detach().clone() for t in in_order(optimizer, optimizer.newest(), ps)])
        y.append(in_order(optimizer, optimizer.virtual_parameters(), ps))
    c, lag = optimizer.base.coefficient, optimizer.base.lag
    for i in range(len(ps)):
        torch.testing.assert_close(x[1][i], x[0][i] + U[0][i], rtol=0, atol=1e-13)
        torch.testing.assert_close(y[0][i], x[0][i] + (1 - c * lag) * U[0][i], rtol=0, atol=1e-12)
        for k in range(1, 9):
            torch.testing.assert_close(y[k][i], y[k - 1][i] + U[k][i], rtol=0, atol=1e-12)
            change = U[k][i] - U[max(k - lag, 0)][i]
            torch.testing.assert_close(x[k + 1][i], x[k][i] + U[k][i] + c * change, rtol=0, atol=1e-12)
    wrong = [y[5][i] + U[5][i] for i in range(len(ps))]  # one step off
    assert not all(torch.allclose(y[6][i], wrong[i], rtol=0, atol=1e-9) for i in range(len(ps)))


def test_without_decay_weight_prediction_is_error_feedback_seen_at_y():
    """The same recursion; it differs in U_{-1} = 0, so it is put one plain step ahead here."""
    ps, qs = model(), model()
    feedback = ErrorFeedback(torch.optim.SGD(ps.values(), lr=0.05, momentum=0.5, foreach=False), 1)
    prediction = WeightPrediction(torch.optim.SGD(qs.values(), lr=0.05, momentum=0.5, foreach=False), 1)
    gradients(ps, 0)
    g0 = [p.grad.clone() for p in ps.values()]
    feedback.step()  # x_1 = x_0 + U_0, y_1 = x_0
    with torch.no_grad():  # x^_1 = y_1 + U_0 with y_1 = x_0: what prediction would see had it made U_0 from x_0 - U_0
        for q, g in zip(qs.values(), g0, strict=True):
            q.add_(0.05 * g)
            q.grad = g
    prediction.step()
    for k in range(1, 8):
        for p, q in zip(ps.values(), qs.values(), strict=True):
            torch.testing.assert_close(p, q, rtol=0, atol=1e-13)
        gradients(ps, k)
        gradients(qs, k)
        feedback.step()
        prediction.step()
        pairs = zip(feedback.virtual_parameters(), prediction.solution(), strict=True)
        assert all(torch.allclose(y, z, rtol=0, atol=1e-13) for y, z in pairs)
