"""Speed and size of what is read from schedules: delays, the clock, and PipeDream's recursion.

    python benchmarks/schedules.py

Rivals in the same run: the clock against a plain replay of the same actions through a heap of times, and the recursion
against the replay of the timeline, which must give the same numbers. Run it on an idle machine.
"""

from __future__ import annotations

import heapq
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from empirics.block_sgd import pipedream_recursion, replay
from pipeline.block_delays import CONVENTIONS, block_delays, block_update_delay
from pipeline.clock import Costs, simulate
from pipeline.events import Event
from pipeline.schedules import SCHEDULES, make_schedule
from pipeline.schedules.base import Schedule


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result of one call."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def all_matrices() -> None:
    """The delay matrices of S = 1..16 under every convention."""
    for S in range(1, 17):
        events = simulate(make_schedule("pipedream", S), 6 * S)
        for convention in CONVENTIONS:
            block_update_delay(events, S, convention)


def deep() -> np.ndarray:
    """Every block-update delay of 50 microbatches through 128 stages."""
    return block_delays(simulate(make_schedule("pipedream", 128), 50), 128)


def heap_clock(schedule: Schedule, steps: int, F: int, B: int) -> list[Event]:
    """The rival: a textbook discrete-event loop, a heap of (time, device), polling until inputs are there."""
    orders = [list(schedule.actions(d, steps)) for d in range(schedule.devices)]
    at = [0] * len(orders)
    done: dict[tuple[str, int, int], float] = {}
    heap = [(0.0, d) for d in range(len(orders))]
    last = schedule.model_stages - 1
    events = []
    while heap:
        now, d = heapq.heappop(heap)
        if at[d] == len(orders[d]):
            continue
        action = orders[d][at[d]]
        kind, j, _, s = action[:4]
        need = ("forward", s - 1, j) if kind == "forward" and s else ("backward", s + 1, j) if s < last else None
        if kind == "backward" and s == last:
            need = ("forward", s, j)
        if kind == "forward" and s == 0 or kind == "step":
            need = None
        if need is not None and done.get(need, float("inf")) > now:
            heapq.heappush(heap, (done.get(need, now + 1), d))
            continue
        now += {"forward": F, "backward": B}.get(kind, 0)
        begin = now - {"forward": F, "backward": B}.get(kind, 0)
        events.append(Event(kind, s, j, action.step, action.version, begin, now, 0, d))
        done[kind, s, j] = now
        at[d] += 1
        heapq.heappush(heap, (now, d))
    return sorted(events, key=lambda event: (event.start, event.device))


def recursion() -> tuple[float, float, float]:
    """Seconds of recursion and replay on a 512-dimensional quadratic, S = 16, 1000 microbatches; largest difference."""
    n, S, M = 512, 16, 1000
    rng = np.random.default_rng(0)
    H = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1) + 0.01 * np.eye(n)
    noise = rng.standard_normal((M, n))
    x0 = rng.standard_normal(n)

    def gradient(j: int, x: np.ndarray) -> np.ndarray:
        return H @ x + noise[j]

    seconds, y = timed(lambda: pipedream_recursion(gradient, x0, S, 0.01, M))
    events = simulate(make_schedule("pipedream", S), M, Costs(1, 2))
    slow, z = timed(lambda: replay(events, gradient, x0, S, 0.01))
    return seconds, slow, float(np.abs(y - z).max())


def main() -> None:
    """All measurements."""
    print(f"all delay matrices, S = 1..16, four conventions   {timed(all_matrices)[0]:8.3f} s   (limit 1 s)")
    seconds, _ = timed(deep)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"S = 128, 50 microbatches                          {seconds:8.3f} s   (limit 5 s), peak {peak:.0f} MB")
    for name in SCHEDULES:
        schedule = make_schedule(name, 8, 1 if name == "pipedream" else 32)
        steps = 32 * 20 // schedule.microbatches
        seconds, events = timed(lambda s=schedule, k=steps: simulate(s, k, Costs(1, 2)))
        line = f"clock, {name:<24} {len(events):>6} actions   {len(events) / seconds / 1e3:8.0f} thousand a second"
        if schedule.runs_on_engine:
            slow, other = timed(lambda s=schedule, k=steps: heap_clock(s, k, 1, 2))
            assert max(event.end for event in other) == max(event.end for event in events)
            line += f", {slow / seconds:.2f} x a heap of times"
        print(line)
    seconds, slow, gap = recursion()
    print(f"recursion, n = 512, S = 16, 1000 microbatches     {seconds:8.3f} s   (limit 1 s)")
    print(f"replay of the timeline                            {slow:8.3f} s   ({slow / seconds:.1f} x)")
    print(f"largest difference of the two                     {gap:8.1e}     (limit 1e-12)")


if __name__ == "__main__":
    main()
