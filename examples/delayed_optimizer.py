"""What one step of delay costs an optimizer, and what error feedback gives back: no pipeline, any training loop."""

import torch
from torch import nn

from pipeline.optim import Delayed, ErrorFeedback


def train(tau, correct):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    base = torch.optim.AdamW(model.parameters(), lr=0.02)
    optimizer = Delayed(ErrorFeedback(base, tau) if correct else base, tau)  # step k: the gradient at x_{k - tau}
    for _ in range(300):
        x = torch.randn(64, 8)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), x.sin().sum(1, keepdim=True)).backward()
        optimizer.step()
    with optimizer.solution_weights():  # outside, the model has the weights where the next gradient is taken
        x = torch.randn(4096, 8)
        return nn.functional.mse_loss(model(x), x.sin().sum(1, keepdim=True)).item()


for tau in (0, 1, 4):
    print(f"delay {tau}: {train(tau, False):.4f}, with error feedback {train(tau, True):.4f}")
