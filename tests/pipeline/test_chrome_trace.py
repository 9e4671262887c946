"""A trace that Chrome and Perfetto open: every action once, on its device, with times in microseconds."""

from __future__ import annotations

import json

from pipeline.chrome_trace import chrome_trace
from pipeline.clock import Costs, simulate
from pipeline.schedules import make_schedule


def test_every_action_is_a_complete_event_on_its_device():
    events = simulate(make_schedule("amdp", 4, 4), 1, Costs(1, 2))
    trace = json.loads(json.dumps(chrome_trace(events, "amdp")))["traceEvents"]
    actions = [entry for entry in trace if entry["ph"] == "X"]
    assert len(actions) == len(events)
    for entry, event in zip(actions, events, strict=True):
        assert entry["name"] == f"{event.kind} {event.microbatch}"
        assert (entry["tid"], entry["ts"]) == (event.device, 1e6 * event.start)
        assert entry["dur"] == 1e6 * (event.end - event.start)
        assert entry["args"]["version"] == event.version and entry["args"]["stage"] == event.stage
    named = [entry["args"]["name"] for entry in trace if entry["ph"] == "M"]
    assert named == ["amdp", "device 0", "device 1", "device 2", "device 3"]


def test_times_count_from_the_first_event():
    events = [e for e in simulate(make_schedule("1f1b", 2, 2), 1) if e.stage == 1]
    first = min(entry["ts"] for entry in chrome_trace(events)["traceEvents"] if entry["ph"] == "X")
    assert events[0].start == 1 and first == 0
    assert [e for e in chrome_trace([])["traceEvents"] if e["ph"] == "X"] == []
