"""Time per optimizer step on two processes: this engine's schedules against torch's own Schedule1F1B.

    python benchmarks/engine.py [steps] [repeats]

The same GPT, microbatches, data and optimizer (AdamW) everywhere, two stages, two microbatches a step, one thread a
process. Contestants take turns, so that a slow minute of the machine hits all; printed are medians of time per step
over the repeats, and ratios of these medians within the run. Run it on an idle machine with two cores or more.
"""

from __future__ import annotations

import functools
import multiprocessing
import statistics
import sys
import time
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist

from pipeline.engine.pool import WorkerPool
from pipeline.engine.worker import start_quietly
from pipeline.models.gpt import cross_entropy
from pipeline.models.stack import LayerStack
from pipeline.training import TrainConfig, train

TEXT = bytes((i * i + 3 * i) % 251 for i in range(100_000))
CONFIG = TrainConfig(stages=2, microbatches=2, optimizer="adamw")
WARM_UP = 3


def rival(rank: int, port: int, config: TrainConfig, pipe: Any) -> None:
    """One rank of torch's Schedule1F1B: flush, then an optimizer step; serves one timing per message."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    start_quietly()
    store = dist.TCPStore("127.0.0.1", port, config.stages + 1, is_master=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=config.stages)
    layers = config.make_layers()
    module = LayerStack({i: layers[i] for i in config.parts[rank]})
    stage = PipelineStage(module, rank, config.stages, torch.device("cpu"))
    m = config.plan.microbatches
    schedule = Schedule1F1B(stage, n_microbatches=m, loss_fn=cross_entropy)
    optimizer = config.make_optimizer(list(module.named_parameters()))
    data = config.batches(TEXT)
    while (steps := pipe.recv()) is not None:
        for k in range(steps + WARM_UP):
            if k == WARM_UP:
                start = time.perf_counter()
            inputs, targets = (
                torch.cat(part) for part in zip(*(data.microbatch(k * m + i) for i in range(m)), strict=True)
            )
            optimizer.zero_grad()
            if rank == 0:
                schedule.step(inputs)
            else:
                schedule.step(target=targets, losses=[])
            optimizer.step()
        pipe.send((time.perf_counter() - start) / steps)
    dist.destroy_process_group()


def time_rival(pipes: list[Any], steps: int) -> float:
    """Seconds per step of the slowest rank."""
    for pipe in pipes:
        pipe.send(steps)
    return max(pipe.recv() for pipe in pipes)


def time_engine(pool: WorkerPool, config: TrainConfig, steps: int) -> float:
    """Seconds per step from the end of the warm-up steps to the last step, by the trace."""
    result = train(replace(config, steps=steps + WARM_UP), TEXT, pool)
    ends = sorted(e.end for e in result.events if e.kind == "step" and e.stage == config.stages - 1)
    return (ends[-1] - ends[WARM_UP - 1]) / steps


def main() -> None:
    """All contestants in turn."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    context = multiprocessing.get_context("spawn")
    store = dist.TCPStore("127.0.0.1", 0, CONFIG.stages + 1, is_master=True, wait_for_workers=False)
    ours, theirs = zip(*(context.Pipe() for _ in range(CONFIG.stages)), strict=True)
    sync = replace(CONFIG, schedule="1f1b")
    processes = [
        context.Process(target=rival, args=(rank, store.port, sync, theirs[rank]), daemon=True)
        for rank in range(CONFIG.stages)
    ]
    for process in processes:
        process.start()
    times: dict[str, list[float]] = {}
    with WorkerPool(CONFIG.stages, device="cpu") as pool:
        contestants = {
            "torch Schedule1F1B": functools.partial(time_rival, list(ours), steps),
            "staleproof 1f1b": functools.partial(time_engine, pool, sync, steps),
            "staleproof pipedream-2bw": functools.partial(time_engine, pool, CONFIG, steps),
        }
        for _ in range(repeats):
            for name, contestant in contestants.items():
                times.setdefault(name, []).append(contestant())
    for pipe in ours:
        pipe.send(None)
    for process in processes:
        process.join(10)
    base = statistics.median(times["torch Schedule1F1B"])
    for name, values in times.items():
        median = statistics.median(values)
        spread = f"({min(values) * 1e3:.1f} to {max(values) * 1e3:.1f})"
        print(f"{name:<26} {median * 1e3:7.1f} ms a step {spread:<18} {base / median:5.2f} x torch's speed")


if __name__ == "__main__":
    main()
