"""The messages that a schedule's devices exchange, and whether a way of sending them can block for ever.

Ways of sending:

* ``buffered``: a send never blocks;
* ``paired``: an action's send is posted together with the next action's receive, and the device waits for both;
* ``rendezvous``: receive, compute, send, one after another; each blocks until the peer does the counterpart.

1F1B and AMDP run with the first two and deadlock with the third: two neighbours send to each other first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from pipeline.schedules.base import Action, Schedule

SENDING = ("buffered", "paired", "rendezvous")


class Message(NamedTuple):
    """An activation (``forward``) or the gradient of one (``backward``), addressed to a stage."""

    kind: str
    stage: int
    microbatch: int


class Operation(NamedTuple):
    """``send``, ``receive``, or for copies that share their weights ``tell`` and ``await`` of a reduction."""

    verb: str
    what: tuple[str, int, int]


def incoming(schedule: Schedule, action: Action) -> tuple[int, Message] | None:
    """(source device, message) that ``action`` needs from another device."""
    if action.kind == "forward" and action.stage > 0:
        source = schedule.device_of(action.stage - 1, action.pipeline)
    elif action.kind == "backward" and action.stage < schedule.model_stages - 1:
        source = schedule.device_of(action.stage + 1, action.pipeline)
    else:
        return None
    message = Message(action.kind, action.stage, action.microbatch)
    return None if source == schedule.device_of(*action.copy) else (source, message)


def outgoing(schedule: Schedule, action: Action) -> tuple[int, Message] | None:
    """(target device, message) that ``action`` sends to another device."""
    if action.kind == "forward" and action.stage < schedule.model_stages - 1:
        stage = action.stage + 1
    elif action.kind == "backward" and action.stage > 0:
        stage = action.stage - 1
    else:
        return None
    target = schedule.device_of(stage, action.pipeline)
    message = Message(action.kind, stage, action.microbatch)
    return None if target == schedule.device_of(*action.copy) else (target, message)


def channels_out_of_order(schedule: Schedule, orders: list[list[Action]]) -> Iterator[str]:
    """Ordered pairs of devices whose two sides do not see their messages in the same order, a line each."""
    sent: dict[tuple[int, int], list[Message]] = defaultdict(list)
    received: dict[tuple[int, int], list[Message]] = defaultdict(list)
    for device, order in enumerate(orders):
        for action in order:
            if (out := outgoing(schedule, action)) is not None:
                sent[device, out[0]].append(out[1])
            if (need := incoming(schedule, action)) is not None:
                received[need[0], device].append(need[1])
    for pair in sorted({*sent, *received}):
        if sent[pair] != received[pair]:
            yield f"device {pair[0]} sends to device {pair[1]} in another order than that one receives"


def blocked(schedule: Schedule, orders: list[list[Action]], sending: str) -> str | None:
    """Where the devices block for ever under a way of sending; None if they all finish."""
    groups = [list(_groups(schedule, order, sending)) for order in orders]
    at = [0] * len(groups)
    posted: set[Operation] = set()
    progress = True
    while progress:
        progress = False
        for d, mine in enumerate(groups):
            while at[d] < len(mine):
                posted.update(mine[at[d]])
                if not all(_met(operation, posted, sending) for operation in mine[at[d]]):
                    break
                at[d] += 1
                progress = True
    stuck = [(d, mine[at[d]]) for d, mine in enumerate(groups) if at[d] < len(mine)]
    if not stuck:
        return None
    waits = [
        f"device {d} waits to {operation.verb} the {operation.what[0]} of microbatch {operation.what[2]}"
        for d, group in stuck
        for operation in group
        if not _met(operation, posted, sending)
    ]
    return "; ".join(waits[:3]) + ("; ..." if len(waits) > 3 else "")


def _groups(schedule: Schedule, order: list[Action], sending: str) -> Iterator[list[Operation]]:
    """What a device posts at once and waits for before it goes on."""
    open_sends: list[Operation] = []
    for action in order:
        if action.kind in ("reduce", "step"):
            # Not a pass: it has no receive with which a send could be posted.
            yield from _collective(schedule, action)
            continue
        need, out = incoming(schedule, action), outgoing(schedule, action)
        yield open_sends + ([] if need is None else [Operation("receive", need[1])])
        open_sends = [] if out is None else [Operation("send", out[1])]
        if sending != "paired":
            yield open_sends
            open_sends = []
    yield open_sends


def _collective(schedule: Schedule, action: Action) -> Iterator[list[Operation]]:
    """A copy tells its gradient without waiting; the step waits for all gradients, or for the copy that steps."""
    s, k, p = action.stage, action.step, action.pipeline
    if not schedule.shares_weights:
        return
    if action.kind == "reduce":
        yield [Operation("tell", (f"gradient of copy {p}", s, k))]
    elif p == 0:
        yield [Operation("await", (f"gradient of copy {q}", s, k)) for q in range(schedule.pipelines)]
        yield [Operation("tell", ("new weights", s, k))]
    else:
        yield [Operation("await", ("new weights", s, k))]


_COUNTERPART = {"send": "receive", "receive": "send", "await": "tell"}


def _met(operation: Operation, posted: set[Operation], sending: str) -> bool:
    """Whether the counterpart of ``operation`` is there."""
    if operation.verb == "tell" or (operation.verb == "send" and sending == "buffered"):
        return True
    return Operation(_COUNTERPART[operation.verb], operation.what) in posted
