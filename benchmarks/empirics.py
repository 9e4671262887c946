"""What recording costs beside a step, against its limits.

    python benchmarks/empirics.py [--write] [--turns N]

Least squares: 600 steps of delayed LMO on 12 x 16 matrices, all that the proof of `delayed-lmo` needs recorded at every
step with exact full gradients, against the bare loop of gradient and step. GPT: a step of LMO by the oracle,
with the default sampling (every 10th step, no full gradients), against the same step unrecorded. One thread;
contestants take turns; the ratio is the median over turns. Seconds are processor time of this process. With --write
this part of ``benchmarks/results.md`` is replaced, or added at its end.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from benchmarks.optimizers import keep_memory, machine
from benchmarks.parts import RESULTS, write_part
from empirics.least_squares_run import record_run, recorder_of
from empirics.lmo_path import Setting, build
from empirics.problems.matrix_least_squares import random_problem
from empirics.run_budget import facts_of_run, recorder_of_run
from pipeline.training import TrainConfig, train_oracle

STEPS, GPT_STEPS = 600, 40
TEXT = bytes((i * i + 3 * i) % 251 for i in range(100_000))
LEAST_SQUARES = "least squares 12 x 16, 600 steps, every step with full gradients"
HEADINGS = ["what", "recorded, s", "plain, s", "ratio", "target", ""]


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def least_squares() -> tuple[Callable[[], object], Callable[[], object]]:
    """(recorded, plain) runs of 600 steps."""
    problem = random_problem(12, 16)
    setting = Setting("run", 1, 0.01, 0.1, STEPS, 0.3)
    noise = problem.noise(0.3, STEPS, 0)

    def plain() -> None:
        p = torch.nn.Parameter(torch.zeros(12, 16, dtype=torch.float64))
        optimizer, _ = build([p], setting)
        for k in range(STEPS):
            p.grad = torch.from_numpy(problem.grad(p.detach().numpy()) + noise[k])
            optimizer.step()

    return lambda: record_run(problem, setting, noise, recorder=recorder_of(problem, setting, shifted=False)), plain


def gpt() -> tuple[Callable[[], object], Callable[[], object]]:
    """(recorded, plain) runs of the default GPT by the oracle, in which an observer that does nothing looks on too."""
    config = TrainConfig(optimizer="lmo", steps=GPT_STEPS)
    facts = facts_of_run(config)

    def recorded() -> None:
        recorder = recorder_of_run(config, facts, None, every=10)
        train_oracle(config, TEXT, recorder)
        recorder.flush()

    return recorded, lambda: train_oracle(config, TEXT, lambda state: None)


def row(name: str, pair: tuple[Callable[[], object], Callable[[], object]], turns: int, limit: float) -> list[str]:
    """A line of the table; the limit is on the ratio."""
    for work in pair:
        work()  # imports, caches
    times = [(seconds(pair[0]), seconds(pair[1])) for _ in range(turns)]
    ratio = statistics.median(a / b for a, b in times)
    ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    verdict = "met" if ratio <= limit else "missed"
    return [name, f"{ours:.3f}", f"{theirs:.3f}", f"{ratio:.3f}", f"at most {limit:g}", verdict]


def main() -> int:
    """All measurements; 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"replace this file's part of {RESULTS.name}")
    parser.add_argument("--turns", type=int, default=7, help="turns of each contestant (default: %(default)s)")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    torch.set_num_threads(1)
    keep_memory()
    rows = [
        row(f"{LEAST_SQUARES}, shifted=False", least_squares(), options.turns, 2.5),
        row(f"GPT, {GPT_STEPS} steps, every 10th step without full gradients", gpt(), options.turns, 1.1),
    ]
    in_time = float(rows[0][1]) < 2
    rows.append([rows[0][0], rows[0][1], "", "", "under 2 s", "met" if in_time else "missed"])
    for line in rows:
        print("  ".join(line), flush=True)
    if options.write:
        table = "\n".join(f"| {' | '.join(line)} |" for line in [HEADINGS, ["---"] * len(HEADINGS), *rows])
        command = f"python benchmarks/empirics.py --write --turns {options.turns}"
        write_part("empirics", f"""# Cost of recording

{datetime.datetime.now(datetime.UTC).date()}, `{command}`. {machine()}.

{table}

Seconds of processor time, medians over {options.turns} turns; the ratio is the median of the ratios within a turn. The
load average was {load:.1f} when the run began and {os.getloadavg()[0]:.1f} when it ended.
""")
    return 0 if all(line[-1] == "met" for line in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
