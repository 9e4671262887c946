"""One thread in the test process too: the number of threads decides the order of sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture
def alone() -> Iterator[Callable[[Any], Any]]:
    """Run a job of one stage in this process, by what a worker process runs: here parts can be replaced."""
    import torch.distributed as dist

    from pipeline.engine.pool import gather
    from pipeline.engine.run_stage import Groups, run_stage

    timeout = timedelta(seconds=60)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=timeout)
    groups, state = Groups.make(timeout), torch.get_rng_state()

    def run(job: Any) -> Any:
        return gather([run_stage(job, 0, torch.device("cpu"), False, groups, lambda k, loss, busy: None)])

    yield run
    torch.set_rng_state(state)
    dist.destroy_process_group()
