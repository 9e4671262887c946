"""A model with one parameter of every kind that the recipes tell apart."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(7, 4)
        self.conv = nn.Conv2d(2, 3, 3)
        self.norm = nn.LayerNorm(4)
        self.inner = nn.Linear(4, 6)
        self.frozen = nn.Linear(4, 4, bias=False).requires_grad_(False)
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.wte.weight  # tied
