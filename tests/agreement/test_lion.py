"""Lion beside the LMO method in the largest entry's norm: which of its averages a theorem knows."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(("betas", "power"), [((0.9, 0.9), 1), ((0.81, 0.9), 2), ((0.9, 0.99), None)])
def test_lion_is_sign_descent_where_its_betas_say_so(betas: tuple[float, float], power: int | None) -> None:
    """beta1 = beta2: signs of the momentum m_{k+1}; beta1 = beta2^2: of Nesterov's (1-alpha) m_{k+1} + alpha g; its own
    betas: of neither.
    """
    lion = pytest.importorskip("pytorch_optimizer").Lion
    draws = torch.Generator().manual_seed(0)
    weights = torch.zeros(50, dtype=torch.float64, requires_grad=True)
    optimizer = lion([weights], lr=1.0, betas=betas, weight_decay=0.0)
    alpha, m = 1 - betas[1], torch.zeros(50, dtype=torch.float64)
    ours = {1: torch.zeros_like(m), 2: torch.zeros_like(m)}
    for _ in range(30):
        g = torch.randn(50, dtype=torch.float64, generator=draws)
        weights.grad = g.clone()
        optimizer.step()
        m = (1 - alpha) * m + alpha * g
        ours[1] -= torch.sign(m)
        ours[2] -= torch.sign((1 - alpha) * m + alpha * g)
    same = [which for which, x in ours.items() if torch.equal(x, weights.detach())]
    assert same == ([] if power is None else [power])
