"""Worker processes are started once and shared by the tests that only run jobs on them."""

from __future__ import annotations

import pytest
import torch

from pipeline.engine.pool import WorkerPool

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def two_workers():
    with WorkerPool(2, device="cpu") as pool:
        yield pool
