"""Time of the optimizers against named rivals: the exact polar factor, a Newton-Schulz step, error feedback.

    python benchmarks/optimizers.py [--write] [--turns N]

The exact polar factor against torch.linalg.svd(full_matrices=False) of the same matrix, which alone gives no polar
factor yet; a step of LMO with Newton-Schulz against one of torch.optim.Muon on the same matrices (momentum 0.95,
Nesterov); what error feedback adds to a step of foreach AdamW and of Muon. One thread. Contestants take turns of a few
calls, so that a slow moment of the machine hits both; the ratio is the median over the turns. Seconds are processor
time of this process. With --write this part of ``benchmarks/results.md`` is replaced, or added at its end. Run it
on an idle machine.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from torch import nn
from torch.optim import AdamW, Muon, Optimizer

from benchmarks.parts import RESULTS, machine, write_part
from pipeline.optim import LMO, ErrorFeedback, lmo_direction

HEADINGS = ["what", "ours, ms", "rival, ms", "ratio", "target", ""]
SIZES = [(64, 64), (256, 256), (512, 512), (1024, 256), (256, 1024), (64, 256)]
#: Seconds that a contestant gets in a turn, at least; many calls are made of a short one.
TURN = 0.02


@dataclass(frozen=True)
class Row:
    """A line of the table: medians in milliseconds, the ratio that has a target, and its upper limit."""

    name: str
    ours: float
    rival: float
    ratio: float
    limit: float

    @property
    def met(self) -> bool:
        return self.ratio <= self.limit

    @property
    def cells(self) -> list[str]:
        figures = [f"{self.ours:.3g}", f"{self.rival:.3g}", f"{self.ratio:.3f}", f"at most {self.limit:g}"]
        return [self.name, *figures, "met" if self.met else "missed"]


def compare(name: str, ours: Callable[[], object], rival: Callable[[], object], turns: int, limit: float) -> Row:
    """Ours over the rival's time, in turns."""
    return Row(name, *medians(ours, rival, turns), limit)


def medians(ours: Callable[[], object], rival: Callable[[], object], turns: int) -> tuple[float, float, float]:
    """Milliseconds of ours and of the rival, and the median ratio within a turn."""
    calls = []
    for work in (ours, rival):
        work()
        calls.append(max(1, round(TURN / seconds(work, 1))))
    pairs = [(seconds(ours, calls[0]), seconds(rival, calls[1])) for _ in range(turns)]
    mine, theirs = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
    return mine, theirs, statistics.median(a / b for a, b in pairs)


def seconds(work: Callable[[], object], calls: int) -> float:
    """Processor seconds of one call, over several."""
    start = time.process_time()
    for _ in range(calls):
        work()
    return max((time.process_time() - start) / calls, 1e-9)


def polar_rows(turns: int) -> Iterator[Row]:
    """lmo_direction with the exact polar factor, all that it does, against the bare SVD: Gaussian matrices."""
    for dtype in (torch.float32, torch.float64):
        for shape in SIZES:
            matrices = [torch.randn(shape, generator=torch.Generator().manual_seed(k), dtype=dtype) for k in range(5)]

            def ours(matrices: list[torch.Tensor] = matrices) -> None:
                for m in matrices:
                    lmo_direction(m, "spectral")

            def rival(matrices: list[torch.Tensor] = matrices) -> None:
                for m in matrices:
                    torch.linalg.svd(m, full_matrices=False)

            name = f"five exact polar factors against torch.linalg.svd, {shape[0]} x {shape[1]}, {str(dtype)[6:]}"
            yield compare(name, ours, rival, turns, 1.0)


def ten_million() -> list[nn.Parameter]:
    """Ten million weights in the matrices of two blocks of a transformer, with gradients."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(1920, 640), (640, 640), (2560, 640), (640, 2560)] * 2
    parameters = [nn.Parameter(torch.randn(shape, generator=generator) / 30) for shape in shapes]
    for p in parameters:
        p.grad = torch.randn(p.shape, generator=generator)
    return parameters


def muon(parameters: list[nn.Parameter]) -> Optimizer:
    return Muon(parameters, lr=1e-4, momentum=0.95, nesterov=True, weight_decay=0.1)


def adamw(parameters: list[nn.Parameter]) -> Optimizer:
    return AdamW(parameters, lr=1e-4, foreach=True)


def lmo(parameters: list[nn.Parameter]) -> Optimizer:
    return LMO(parameters, lr=1e-4, alpha=0.05, nesterov=True, polar="newton-schulz")


def newton_schulz_rows(turns: int) -> Iterator[Row]:
    """The whole step: momentum, direction, update."""
    name = "LMO with Newton-Schulz against torch.optim.Muon, one step, 10 M weights"
    yield compare(name, lmo(ten_million()).step, muon(ten_million()).step, turns, 1.05)


def error_feedback_rows(turns: int) -> Iterator[Row]:
    """What the correction adds to a step, as a share of the step without it."""
    for name, make, limit in (("foreach AdamW", adamw, 0.35), ("Muon", muon, 0.05)):
        corrected, plain = ErrorFeedback(make(ten_million())), make(ten_million())
        with_it, without, ratio = medians(corrected.step, plain.step, turns)
        yield Row(f"error feedback, share of a step of {name}, 10 M weights", with_it, without, ratio - 1, limit)


def as_markdown(rows: list[Row], load: float, turns: int) -> str:
    """The part of ``results.md`` that this file owns."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *(row.cells for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    missed = [row.name for row in rows if not row.met]
    return f"""# Time of the optimizers

{datetime.datetime.now(datetime.UTC).date()}, `python benchmarks/optimizers.py --write --turns {turns}`. {machine()}.

{table}

Milliseconds of processor time: medians over {turns} turns. The ratio is ours over the rival's, the median of the ratios
within a turn; for error feedback it is that less 1, with the corrected step on the left and the plain one on the right.
The load average was {load:.1f} when the run began and {os.getloadavg()[0]:.1f} when it ended.
{f"Missed: {'; '.join(missed)}." if missed else "No target was missed."}
"""


def keep_memory() -> None:
    """Let the C library keep what is freed, as it does in a process that trains; faults of fresh pages cost more than
    the arithmetic of a step, and which contestant has them is chance."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD
        libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD


def main() -> None:
    """All measurements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"replace this file's part of {RESULTS.name}")
    parser.add_argument("--turns", type=int, default=15, help="turns of each contestant (default: %(default)s)")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    torch.set_num_threads(1)
    keep_memory()
    print(machine())
    rows = []
    for measure in (polar_rows, newton_schulz_rows, error_feedback_rows):
        for row in measure(options.turns):
            rows.append(row)
            name, ours, rival, ratio, limit, verdict = row.cells
            print(f"{name}\n    {ours} ms, rival {rival} ms: {ratio}  {limit}  {verdict}", flush=True)
    missed = [row.name for row in rows if not row.met]
    print("\n".join(["", "MISSED:", *missed]) if missed else "\nevery target met")
    if options.write:
        write_part("optimizers", as_markdown(rows, load, options.turns))


if __name__ == "__main__":
    main()
