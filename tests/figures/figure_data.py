"""TEST DATA: the section files the figures read, with numbers from small simulations made here.

Nothing in it is a result of the toolkit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Row = dict[str, Any]


def slots(name: str, stages: int, microbatches: int, steps: int) -> list[Row]:
    """Events of a pipeline with unit forward and backward passes, served one slot at a time."""
    count = steps * microbatches
    synchronous = name == "1f1b"
    done: dict[tuple[str, int, int], int] = {}
    events: list[Row] = []
    forward, backward, version = [0] * stages, [0] * stages, [0] * stages
    used: dict[tuple[int, int], int] = {}
    slot = 0
    while min(backward) < count:
        acts = []
        for s in range(stages):
            b, f = backward[s], forward[s]
            ready_b = b < f and (s == stages - 1 or done.get(("backward", s + 1, b), slot + 1) <= slot)
            ready_f = f < count and f - b < stages - s and (s == 0 or done.get(("forward", s - 1, f), slot + 1) <= slot)
            if synchronous and ready_f and f // microbatches > b // microbatches:
                ready_f = False
            if ready_b and (f - b >= stages - s or not ready_f):
                acts.append(("backward", s, b))
            elif ready_f:
                acts.append(("forward", s, f))
        for kind, s, j in acts:
            if kind == "forward":
                lag = 1 if name == "pipedream-2bw" else 0
                used[s, j] = max(0, j // microbatches - lag) if name != "pipedream" else version[s]
                forward[s] += 1
            else:
                backward[s] += 1
            done[kind, s, j] = slot + 1
            events.append(
                {
                    "kind": kind,
                    "stage": s,
                    "microbatch": j,
                    "step": j // microbatches,
                    "version": used[s, j],
                    "start": slot,
                    "end": slot + 1,
                }
            )
            if kind == "backward" and (j + 1) % microbatches == 0:
                version[s] += 1
                events.append(
                    {
                        "kind": "step",
                        "stage": s,
                        "microbatch": None,
                        "step": j // microbatches,
                        "version": version[s],
                        "start": slot + 1,
                        "end": slot + 1,
                    }
                )
        slot += 1
    return events


def delays(largest: int = 8) -> Row:
    """Closed forms beside a second list of the same numbers, and timelines."""
    schedules, timelines = [], []
    for name in ("1f1b", "pipedream", "pipedream-2bw"):
        for stages in range(1, largest + 1):
            row = {
                "1f1b": [0] * stages,
                "pipedream": [stages - 1 - s for s in range(stages)],
                "pipedream-2bw": [1] * stages,
            }[name]
            schedules.append(
                {
                    "name": name,
                    "stages": stages,
                    "microbatches": stages if name != "pipedream" else 1,
                    "optimizer_step_delay": {
                        "closed_form": row,
                        "enumeration": list(row),
                        "trace": list(row) if stages == 2 else None,
                    },
                }
            )
    for name, stages, microbatches, steps in (
        ("1f1b", 4, 4, 3),
        ("pipedream", largest, 1, 18),
        ("pipedream-2bw", 4, 4, 5),
        ("pipedream-2bw", largest, 8, 4),
    ):
        timelines.append(
            {
                "name": name,
                "stages": stages,
                "microbatches": microbatches,
                "source": "clock",
                "unit": "slot",
                "events": slots(name, stages, microbatches, steps),
            }
        )
    rng = np.random.default_rng(0)
    trace = slots("pipedream-2bw", 2, 2, 6)
    for event in trace:
        start, length = 0.011 * event["start"], 0.011 * (event["end"] - event["start"])
        event["start"] = start + 0.001 * float(rng.random())
        event["end"] = event["start"] + length * (0.8 + 0.1 * float(rng.random()))
    timelines.append(
        {
            "name": "pipedream-2bw",
            "stages": 2,
            "microbatches": 2,
            "source": "trace",
            "unit": "s",
            "events": trace,
        }
    )
    return {"schedules": schedules, "timelines": timelines}


def _predict(tau: int, beta: float, eta: float, lam: float, noise: float, steps: int, c: int) -> np.ndarray:
    """Expected loss of one mode by the recursion of mean and covariance; state (x_k .. x_{k-tau}, m, U_{k-1})."""
    n = tau + 3
    a = np.zeros((n, n))
    a[0, 0] = 1.0
    for i in range(tau):
        a[i + 1, i] = 1.0
    m = n - 2
    a[m, m], a[m, tau] = beta, (1 - beta) * lam
    update = -eta * a[m]
    a[0] += (1 + c) * update
    a[0, n - 1] -= c
    a[n - 1] = update
    b = np.zeros(n)
    b[m] = (1 - beta) * noise
    b[0], b[n - 1] = -(1 + c) * eta * b[m], -eta * b[m]
    second = np.zeros((n, n))
    second[: tau + 1, : tau + 1] = 1.0
    losses = [0.5 * lam * second[0, 0]]
    for _ in range(steps):
        second = a @ second @ a.T + np.outer(b, b)
        losses.append(0.5 * lam * second[0, 0])
    return np.array(losses)


def quadratic(settings: int, steps: int, replicas: int = 400) -> Row:
    """Delayed SGD with EMA momentum on a one-dimensional noisy quadratic, simulated and predicted."""
    rng = np.random.default_rng(1)
    grid = [(tau, beta, eta, c) for tau in (1, 2, 4) for beta in (0.0, 0.9) for eta in (0.05, 0.15) for c in (0, 1)]
    found = []
    for tau, beta, eta, c in (grid * 2)[:settings]:
        lam, noise = 1.0, 0.3
        x = np.ones((replicas, tau + 1))
        m, previous = np.zeros(replicas), np.zeros(replicas)
        measured = [0.5 * lam * x[:, 0] ** 2]
        for _ in range(steps):
            m = beta * m + (1 - beta) * (lam * x[:, tau] + noise * rng.standard_normal(replicas))
            update = -eta * m
            x = np.column_stack([x[:, 0] + (1 + c) * update - c * previous, x[:, :-1]])
            previous = update
            measured.append(0.5 * lam * x[:, 0] ** 2)
        losses = np.array(measured)
        error = losses.std(axis=1, ddof=1) / math.sqrt(replicas)
        predicted, wrong = (_predict(t, beta, eta, lam, noise, steps, c) for t in (tau, tau - 1))
        distance = np.abs(losses.mean(axis=1) - wrong)[1:] / error[1:]
        found.append(
            {
                "name": f"tau{tau}-beta{beta}-eta{eta}-c{c}",
                "tau": tau,
                "beta": beta,
                "dampening": beta,
                "eta": eta,
                "correction": "error-feedback" if c else "none",
                "form": "extrapolate" if c else "",
                "curvatures": [lam],
                "noise_std": noise,
                "replicas": replicas,
                "steps": list(range(steps + 1)),
                "predicted": predicted.tolist(),
                "measured": losses.mean(axis=1).tolist(),
                "standard_error": error.tolist(),
                "off_by_one": {
                    "tau": tau - 1,
                    "predicted": wrong.tolist(),
                    "max_standard_errors": float(distance.max()),
                },
            }
        )
    limit = 2 * math.sin(math.pi / 10)
    return {
        "settings": found,
        "joint": {"pairs": settings * steps, "false_alarm": 1e-6, "smallest_p": 2.1e-4, "threshold": 1.2e-9},
        "stability": [
            {
                "name": "delay 2, no momentum",
                "limit": limit,
                "closed_form": limit,
                "below": {"h": 0.99 * limit, "growth": 0.9989},
                "above": {"h": 1.01 * limit, "growth": 1.0011},
            },
            {
                "name": "delay 4, momentum 0.9",
                "limit": 0.41,
                "closed_form": None,
                "below": {"h": 0.4, "growth": 0.998},
                "above": {"h": 0.42, "growth": 1.002},
            },
        ],
    }


def proofs() -> Row:
    """Two proofs, the second resting on the first."""
    step = {"name": "step", "statement": "a <= b", "proved": True, "seconds": 0.1}
    ledger = {"assumptions": {"smoothness": ["lemma/step"]}, "mathematics": {"norm": ["lemma/step"]}, "definitions": {}}
    common = {"proved": True, "seconds": 0.2, "reason": "", "steps": [step], "ledger": ledger, "counterexamples": 3}
    return {
        "proofs": [
            {"name": "lemma", "title": "A lemma", "rests_on": [], **common},
            {"name": "theorem", "title": "A theorem", "rests_on": ["lemma"], **common},
        ]
    }
