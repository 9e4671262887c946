"""One thread in the test process too: the number of threads decides the order of sums."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
