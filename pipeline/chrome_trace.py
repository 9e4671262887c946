"""Events in the trace-event format that chrome://tracing and ui.perfetto.dev open: one track per device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.events import Event

MICROSECONDS = 1_000_000


def chrome_trace(events: Sequence[Event], title: str = "") -> dict[str, Any]:
    """The events as a JSON-ready object; their times are seconds, on the clock one slot is shown as a second.

    Each action is a complete event ("X") on the track of its device, named by kind and microbatch, with its stage,
    optimizer step, weight version and pipeline as arguments.
    """
    devices = sorted({event.device for event in events})
    names = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": device, "args": {"name": f"device {device}"}}
        for device in devices
    ]
    first = min((event.start for event in events), default=0)
    actions = [
        {
            "ph": "X",
            "cat": event.kind,
            "name": f"{event.kind} {event.microbatch}",
            "pid": 0,
            "tid": event.device,
            "ts": float(event.start - first) * MICROSECONDS,
            "dur": float(event.end - event.start) * MICROSECONDS,
            "args": {
                "microbatch": event.microbatch,
                "stage": event.stage,
                "step": event.step,
                "version": event.version,
                "pipeline": event.pipeline,
            },
        }
        for event in events
    ]
    process = {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": title or "pipeline"}}
    return {"displayTimeUnit": "ms", "traceEvents": [process, *names, *actions]}
