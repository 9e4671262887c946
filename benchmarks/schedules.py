"""Speed and size of what is read from schedules: delays, the clock, and PipeDream's recursion.

    python benchmarks/schedules.py

Rivals in the same run: the clock against a plain polling loop over a heap of times, and the recursion against the
replay of the timeline, which must give the same numbers. Ends with exit 1 if a limit is passed. Run it on an idle
machine.
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
    """The rival: a plain discrete-event loop, a heap of (time, device) that polls until inputs are there."""
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


def report(what: str, value: float, unit: str, limit: float, least: bool = False) -> bool:
    """Print a line; True if the limit is kept."""
    kept = value >= limit if least else value <= limit
    word = "at least" if least else "at most"
    print(f"{what:<52} {value:10.3g} {unit:<14} {word} {limit:g}{'' if kept else '  MISSED'}")
    return kept


def main() -> int:
    """All measurements; 1 if a limit is missed."""
    kept = [report("all delay matrices, S = 1..16, four conventions", timed(all_matrices)[0], "s", 1)]
    seconds, _ = timed(deep)
    kept.append(report("every delay, S = 128, 50 microbatches", seconds, "s", 5))
    kept.append(report("peak memory so far", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB", 1000))
    for name in SCHEDULES:
        schedule = make_schedule(name, 8, SCHEDULES[name].default_microbatches or 32)
        steps = 32 * 20 // schedule.microbatches
        seconds, events = timed(lambda s=schedule, k=steps: simulate(s, k, Costs(1, 2)))
        kept.append(report(f"clock, {name}", len(events) / seconds, "actions/s", 1e5, least=True))
        if schedule.runs_on_engine:
            slow, other = timed(lambda s=schedule, k=steps: heap_clock(s, k, 1, 2))
            assert max(event.end for event in other) == max(event.end for event in events)
            print(f"{'':<8}{slow / seconds:.2f} times as fast as a heap of times")
    seconds, slow, gap = recursion()
    kept.append(report("recursion, n = 512, S = 16, 1000 microbatches", seconds, "s", 1))
    print(f"{'':<8}{slow / seconds:.1f} times as fast as the replay of the timeline")
    kept.append(report("largest difference of recursion and replay", gap, "", 1e-12))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
