"""One rank of a training run that somebody else has launched, on one node or several:

    torchrun --nproc-per-node 2 -m pipeline.train --schedule pipedream-2bw --steps 200 --out run --checkpoint-every 50

Rank s is stage s. The options are those of ``staleproof train``, and so is what rank 0 writes. With ``--max-restarts``
on one node a failed attempt is followed by one that goes on from the newest checkpoint in ``--out``, or starts again
where there is none yet. On several nodes start again with ``--resume``; every node must see the folder ``--out``.

Exit codes: 0 done, 1 the oracle disagrees, 2 bad input, 3 the run failed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pipeline.divergence import of_summary
from pipeline.errors import InputError, RunError
from pipeline.options import add_training_options, given_options

if TYPE_CHECKING:
    from pipeline.record import Plan, RunRecord

HOLDS, DISAGREES, BAD_INPUT, RUN_FAILED, INTERRUPTED = 0, 1, 2, 3, 130
TIMEOUT = timedelta(seconds=120)
#: How long a rank that has lost a peer waits for the peer's own words.
EXPLANATION_SECONDS = 2.0
#: Time between two looks at the progress of the others, at least.
REPORT_SECONDS = 0.1


@dataclass(frozen=True)
class Launch:
    """What the launcher says in the environment: rank and number of ranks, here and in all, which attempt it is, and
    who it is, so that an attempt knows the folder of the one before."""

    rank: int
    ranks: int
    local_rank: int
    local_ranks: int
    attempt: int
    launcher: str

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Launch:
        """Raises InputError naming the variable that is missing or not a number."""
        values = []
        for name, default in (
            ("RANK", None),
            ("WORLD_SIZE", None),
            ("LOCAL_RANK", environment.get("RANK")),
            ("LOCAL_WORLD_SIZE", environment.get("WORLD_SIZE")),
            ("TORCHELASTIC_RESTART_COUNT", "0"),
        ):
            text = environment.get(name, default)
            if text is None:
                raise InputError(f"{name} is not set: start with torchrun, or use staleproof train")
            if not text.isdecimal():
                raise InputError(f"{name} = {text!r}: allowed are integers of at least 0")
            values.append(int(text))
        rank, ranks, local_rank, local_ranks, attempt = values
        launcher = f"{environment.get('TORCHELASTIC_RUN_ID', '')}/{os.getppid()}"
        return cls(rank, ranks, local_rank, local_ranks, attempt, launcher)

    @property
    def one_node(self) -> bool:
        """Whether all ranks are on this machine."""
        return self.local_ranks == self.ranks


def main(argv: Sequence[str] | None = None) -> int:
    """Run this process's rank and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="pipeline.train", allow_abbrev=False, description=__doc__.splitlines()[0])
    add_training_options(parser)
    parser.add_argument("--json", action="store_true", help="rank 0 prints JSON only on stdout")
    args = parser.parse_args(words)
    try:
        launch = Launch.read(os.environ)
        if args.stages not in (None, launch.ranks):
            raise InputError(f"stages = {args.stages}: there are {launch.ranks} ranks, one stage each")
        return _run(args, given_options(parser, words), launch)
    except InputError as error:
        print(f"pipeline.train: error: {error}", file=sys.stderr, flush=True)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("pipeline.train: interrupted", file=sys.stderr, flush=True)
        return INTERRUPTED


def _run(args: argparse.Namespace, given: set[str], launch: Launch) -> int:
    import torch
    import torch.distributed as dist

    from pipeline import record
    from pipeline.engine.checkpoint import complete_checkpoints
    from pipeline.engine.transport import choose_placement

    torch.set_num_threads(1)
    if launch.attempt > 0 and not launch.one_node:
        raise InputError("restarts on several nodes: not done by itself; start again with --resume")
    if args.out is not None and launch.attempt > 0 and record.launcher_of(args.out) == launch.launcher:
        # An attempt before has written this folder: go on from its last checkpoint, or start again.
        args.resume = bool(complete_checkpoints(record.checkpoint_folder(args.out)))
        args.overwrite = not args.resume
    made = record.plan(args, given, launch.ranks)
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    placement = choose_placement(
        gpus, launch.local_ranks, launch.local_rank, record.device_of(args), args.transport
    )
    if launch.one_node:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    device = torch.device(placement.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    signal.signal(signal.SIGTERM, _terminated)
    rendezvous, _, _ = next(dist.rendezvous("env://", timeout=TIMEOUT))
    # Attempts share the launcher's store: keys of an earlier one must not be found.
    store = dist.PrefixStore(f"attempt-{launch.attempt}", rendezvous)
    peers = _Peers(store, launch)
    with ExitStack() as stack:
        kept = None
        if launch.rank == 0:
            peers.report_input(lambda: _open(stack, args, made, peers, launch))
            kept = peers.opened
        else:
            peers.wait_for_rank_0()
        mine = _same_everywhere(made, args)
        if (other := peers.differing("job", mine)) is not None:
            whom = other.rpartition(" ")[0]
            raise InputError(f"rank {launch.rank} has other settings, text, torch or checkpoint than {whom}")
        if (other := peers.differing("placement", f"{placement.backend} on {device.type}")) is not None:
            raise InputError(f"transport: rank {launch.rank} would use {placement.backend}, {other}; force it")
        try:
            dist.init_process_group(
                placement.backend, store=store, rank=launch.rank, world_size=launch.ranks, timeout=TIMEOUT
            )
            result, seconds = _train(made.job, launch, device, placement.staged, peers, kept)
        except (InputError, KeyboardInterrupt):
            raise
        except BaseException as error:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a few words are left to say
            line = peers.explain(error)
            print(f"pipeline.train: error: {line}", file=sys.stderr, flush=True)
            if launch.rank == 0 and kept is not None:
                kept.fail(line)
            os._exit(RUN_FAILED)  # other threads may be stuck in a message
        if result is None or kept is None:
            return HOLDS
        summary = record.summarise(made, result, seconds, args)
        summary |= {"device": device.type, "transport": placement.backend, "restarts": launch.attempt}
        kept.finish(summary, result)
    return _print(args, summary)


def _same_everywhere(made: Plan, args: argparse.Namespace) -> str:
    """Digest of all that must be the same on every rank."""
    import torch

    from pipeline.record import settings_of

    settings = settings_of(args) | {"overwrite": None, "resume": made.job.resume}  # rank 0 alone touches the folder
    text = json.dumps([settings, made.corpus.sha256, torch.__version__], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Terminated(RunError):
    """The launcher ends this process."""


def _terminated(number: int, frame: Any) -> None:
    raise Terminated("ended by the launcher, since another rank failed or it was stopped itself")


def _open(stack: ExitStack, args: argparse.Namespace, made: Plan, peers: _Peers, launch: Launch) -> RunRecord:
    from pipeline.engine.checkpoint import prepare_folder
    from pipeline.record import RunRecord

    kept = RunRecord(stack, args, made, "pipeline.train", peers.bubble, launch.launcher)
    if made.job.checkpoints is not None:
        prepare_folder(made.job.checkpoints, made.job.resume)
    return kept


def _train(job: Any, launch: Launch, device: Any, staged: bool, peers: _Peers, kept: Any) -> tuple[Any, float]:
    """Run the stage; rank 0 gets the result of all."""
    import torch.distributed as dist

    from pipeline.engine.pool import gather
    from pipeline.engine.run_stage import Groups, run_stage

    groups = Groups.make(TIMEOUT)
    dist.barrier(group=groups.control)
    begin = peers.began = time.perf_counter()
    if kept is not None:
        kept.begin()

    rows = _Rows(peers, kept)
    result = run_stage(job, launch.rank, device, staged, groups, rows, peers.at_step)
    rows.finish()
    seconds = time.perf_counter() - begin
    if not launch.one_node:  # each node has a clock of its own: count from the common barrier
        result.shift(-begin)
    everyone: list[Any] | None = [None] * launch.ranks if launch.rank == 0 else None
    dist.gather_object(result, everyone, dst=0, group=groups.control)
    dist.barrier(group=groups.control)
    dist.destroy_process_group()
    return (gather(everyone) if everyone is not None else None), seconds


class _Peers:
    """What the ranks tell each other through the launcher's store: readiness, refusals and first errors."""

    def __init__(self, store: Any, launch: Launch) -> None:
        self.store = store
        self.launch = launch
        self.opened: Any = None
        self.step = -1
        self.busy = 0.0
        self.began = time.perf_counter()

    def at_step(self, k: int) -> None:
        self.step = k

    def bubble(self) -> float:
        """Share of this rank's time without a forward or backward."""
        return 1 - self.busy / max(time.perf_counter() - self.began, 1e-9)

    def report_input(self, action: Any) -> None:
        """Rank 0: do what only one rank does before the start, and tell the others whether it may go on."""
        try:
            self.opened = action()
        except InputError:
            self.store.set("start", "refused")
            raise
        self.store.set("start", "go")

    def wait_for_rank_0(self) -> None:
        """The other ranks: raises InputError where rank 0 has refused."""
        if self.store.get("start") != b"go":
            raise InputError("rank 0 has refused its input, see there")

    def differing(self, what: str, mine: str) -> str | None:
        """Where another rank chose differently from ``mine``, in words."""
        self.store.set(f"{what}/{self.launch.rank}", mine)
        for rank in range(self.launch.ranks):
            theirs = self.store.get(f"{what}/{rank}").decode()
            if theirs != mine:
                return f"rank {rank} {theirs}"
        return None

    def explain(self, error: BaseException) -> str:
        """One line about a failure; second-hand news waits for the words of the rank that failed first."""
        from pipeline.engine.worker import first_cause, is_transport_error

        root = first_cause(error)
        line = (
            f"stage {self.launch.rank} of {self.launch.ranks}, step {self.step}: {type(root).__name__}: "
            f"{' '.join(str(root).split())}"
        )
        try:
            if isinstance(root, Terminated):
                return line
            if not is_transport_error(root):
                traceback.print_exc()
                self.store.compare_set("error", "", line)  # the first one stays
                return line
            self.store.wait(["error"], timedelta(seconds=EXPLANATION_SECONDS))
            return f"stopped, since another rank failed: {self.store.get('error').decode()}"
        except Exception:  # noqa: BLE001 - the store may be gone too
            sign = re.search(r"Connection (closed|reset)[\w ]*|[Tt]imed out", str(root))
            where = f"stage {self.launch.rank} of {self.launch.ranks}, step {self.step}"
            return f"{where}: another rank is gone without a word ({sign[0] if sign else type(root).__name__})"


class _Rows:
    """Steps as they are done: the last stage knows the loss, rank 0 writes it down. Nobody waits before the end."""

    def __init__(self, peers: _Peers, kept: Any) -> None:
        self.peers = peers
        self.kept = kept
        self.number = 0  # of the next message
        self._rows: list[tuple[int, float]] = []
        self._looked = time.monotonic()

    def __call__(self, k: int, loss: float | None, busy: float) -> None:
        self.peers.busy = busy
        if loss is not None:
            self._rows.append((k, loss))
        if time.monotonic() - self._looked > REPORT_SECONDS:
            self._look()

    def _look(self) -> None:
        self._looked = time.monotonic()
        store = self.peers.store
        if self._rows and self.kept is None:
            store.set(f"rows/{self.number}", json.dumps(self._rows))
            self.number += 1
        elif self.kept is not None:
            while store.check([f"rows/{self.number}"]):
                self._take()
            for k, loss in self._rows:  # rank 0 is the last stage itself
                self.kept.step(k, loss)
        self._rows = []

    def _take(self) -> None:
        key = f"rows/{self.number}"
        for k, loss in json.loads(self.peers.store.get(key)):
            self.kept.step(k, loss)
        self.peers.store.delete_key(key)
        self.number += 1

    def finish(self) -> None:
        """The run is over: rank 0 gets what is left."""
        self._look()
        launch, store = self.peers.launch, self.peers.store
        if launch.rank == launch.ranks - 1:
            store.set("rows-end", str(self.number))
        if self.kept is not None and launch.ranks > 1:
            end = int(store.get("rows-end"))
            while self.number < end:
                self._take()


def _print(args: argparse.Namespace, summary: dict[str, Any]) -> int:
    from pipeline import record
    from pipeline.json_io import dumps

    print(dumps(summary) if args.json else record.describe(summary), flush=True)
    if (lost := of_summary(summary)) is not None:
        print(f"pipeline.train: the run diverged: {lost.reason}", file=sys.stderr, flush=True)
        return RUN_FAILED
    if not record.difference_is_allowed(summary):
        line = f"pipeline.train: claim failed: engine and oracle differ by {summary['max_abs_diff']:g}"
        print(line, file=sys.stderr, flush=True)
        return DISAGREES
    return HOLDS


if __name__ == "__main__":
    sys.exit(main())
