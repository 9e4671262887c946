"""TEST DATA: result folders in the schema the figures read, sound ones and one with everything that goes wrong.

``python tests/figures/result_folders.py DIR [--size small|quick|hostile]`` writes one to look at.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from empirics_data import empirics
from figure_data import Row, delays, proofs, quadratic
from run_data import certified, training

from figures.results import SECTIONS

HOSTILE_NAME = r"lr_1e-3 95% A&B #1 $x$ a^b ~home back\slash {x} Müller σ≤1 <script>alert('x')</script> 😀"


def claim(
    name: str,
    kind: str,
    outcome: str = "holds",
    value: float | None = 0.0,
    limit: float | None = 0.0,
    **more: Any,
) -> Row:
    """One claim in the schema."""
    return {
        "name": name,
        "kind": kind,
        "statement": f"Statement of {name}.",
        "outcome": outcome,
        "value": value,
        "limit": limit,
        "place": "",
        "evidence": "",
        "gates": kind in ("equality", "certified"),
        **more,
    }


def claims() -> Row:
    """A verdict that holds."""
    found = [
        claim(f"delays {name} S={s}", "equality")
        for name in ("1f1b", "pipedream", "pipedream-2bw")
        for s in range(1, 9)
    ]
    found += [
        claim("descent lemma", "certified", value=0.9981, limit=1.0, evidence="certified.json"),
        claim("joint test", "statistical", value=2.1e-4, limit=1.2e-9, gates=True),
        claim("gap muon", "report", "report", 0.036, None),
    ]
    return {"claims": found, "verdict": "holds"}


def status(**changes: Any) -> Row:
    """A finished run."""
    return {
        "schema": 1,
        "state": "complete",
        "error": None,
        "command": "TEST DATA",
        "preset": "quick",
        "seed": 0,
        "started": "2026-01-01T00:00:00+00:00",
        "finished": "2026-01-01T00:03:20+00:00",
        "wall_seconds": 200.0,
        "versions": {"python": "3.11", "numpy": "2"},
        "machine": {"cores": 2, "gpus": 0},
        "corpus": {"name": "TEST DATA", "bytes": 1000, "sha256": "0" * 64, "note": "no real text"},
        "sections": {name: "complete" for name in SECTIONS},
        **changes,
    }


def put(folder: Path, name: str, content: object) -> None:
    """Write one JSON file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def write(folder: Path, size: str = "small") -> Path:
    """A sound folder; size "small" for tests, "quick" as large as the real quick preset."""
    large = size == "quick"
    put(folder, "status", status())
    put(folder, "claims", claims())
    put(folder, "delays", delays(8 if large else 4))
    put(folder, "quadratic", quadratic(20 if large else 3, 60 if large else 20))
    put(folder, "proofs", proofs())
    put(folder, "certified", certified(12 if large else 4, 600 if large else 25))
    put(folder, "empirics", empirics(216 if large else 12))
    put(folder, "training", training(200 if large else 30))
    return folder


def write_hostile(folder: Path) -> Path:
    """Everything that goes wrong: specials in names, null, NaN, infinities, zeros, negatives, diverged arms."""
    write(folder)
    put(
        folder,
        "status",
        status(
            state="interrupted",
            error=HOSTILE_NAME,
            finished=None,
            preset=HOSTILE_NAME,
            sections={"delays": "complete", "quadratic": "failed", HOSTILE_NAME: "x"},
        ),
    )
    bad = claims()
    bad["claims"] += [
        claim(
            HOSTILE_NAME,
            "certified",
            "fails",
            1.0000000001,
            1.0,
            place=HOSTILE_NAME,
            statement=HOSTILE_NAME,
            evidence="../../etc/passwd",
        ),
        claim("nan claim", "equality", "fails", math.nan, 0.0),
        claim("absent", "equality", "missing", None, None),
        claim("infinite", HOSTILE_NAME, "report", -math.inf, None),
    ]
    bad["verdict"] = "holds"
    put(folder, "claims", bad)
    d = delays(3)
    d["schedules"][2]["optimizer_step_delay"]["enumeration"] = [9, 9, 9]
    d["schedules"].append({"name": HOSTILE_NAME, "stages": None, "optimizer_step_delay": None})
    d["timelines"][0]["name"] = HOSTILE_NAME
    d["timelines"][0]["events"][3]["start"] = None
    d["timelines"][1]["events"][2]["version"] = None
    d["timelines"].append({"name": "empty", "stages": 2, "events": []})
    put(folder, "delays", d)
    q = quadratic(7, 12, replicas=20)
    for setting, edit in zip(
        q["settings"], ("zero", "negative", "nan", "all zero", "all nan", "single", "none"), strict=True
    ):
        setting["name"] = f"{edit} {HOSTILE_NAME}"
        if edit == "zero":
            setting["measured"][4] = 0.0
        if edit == "negative":
            setting["predicted"][5] = -1.0
            setting["standard_error"] = [10.0] * 13
        if edit == "nan":
            setting["measured"][3:6] = [math.nan, math.inf, None]
            setting["off_by_one"]["max_standard_errors"] = math.inf
        if edit == "all zero":
            setting["predicted"] = setting["measured"] = setting["off_by_one"]["predicted"] = [0.0] * 13
        if edit == "all nan":
            setting["predicted"] = setting["measured"] = [None] * 13
            setting["off_by_one"] = None
        if edit == "single":
            for key in ("steps", "predicted", "measured", "standard_error"):
                setting[key] = setting[key][:1]
        if edit == "none":
            for key in ("steps", "predicted", "measured", "standard_error", "off_by_one"):
                setting[key] = None
    put(folder, "quadratic", q)
    c = certified(4, 25)
    run = c["runs"][0]
    run["name"] = HOSTILE_NAME
    run["theorem"]["title"] = HOSTILE_NAME
    run["theorem"]["latex"] = r"\input{/etc/passwd} $x$ %"
    run["theorem"]["metric_latex"] = r"\frac{1"
    run["theorem"]["terms"][0]["value"] = None
    run["theorem"]["terms"][1]["value"] = -0.3
    run["theorem"]["terms"].append({"name": HOSTILE_NAME, "latex": r"\write18{rm}", "value": 0.1})
    run["theorem"]["measured"] = 1e6
    run["inequalities"][0].update({"title": HOSTILE_NAME, "utilisation": [0.5, None, math.nan, 1.4], "max": 1.4})
    run["inequalities"][1].update({"utilisation": [], "min": None, "median": None, "max": None})
    c["runs"][1]["theorem"] = None
    c["tight"].append(
        {
            "lemma": HOSTILE_NAME,
            "instance": HOSTILE_NAME,
            "utilisation": 1.0,
            "mutation": "a & b",
            "mutated_utilisation": 0.9,
            "refuted": False,
        }
    )
    e = empirics()
    e["constants"][0].update(name=HOSTILE_NAME, value=None, truth=math.nan)
    e["budgets"]["theorems"][0].update(title=HOSTILE_NAME, theorem=HOSTILE_NAME)
    e["budgets"]["theorems"][1]["waterfall"][2].update(level=HOSTILE_NAME, value=math.inf)
    e["budgets"]["theorems"].append({"theorem": "no levels", "sigma": 0.0, "waterfall": None})
    e["blocks"]["runs"][0]["checks"][0].update(name=HOSTILE_NAME, holds=False, utilisation=math.nan)
    for i, change in enumerate(({"measured": None}, {"error": 0.0}, {"predicted": -1.0})):
        e["windows"]["rows"][i].update(change)
    put(folder, "empirics", e)
    put(folder, "certified", c)
    t = training(30)
    t["arms"][1].update(
        {"state": "diverged", "final_loss": math.nan, "loss": [*t["arms"][1]["loss"][:9], math.inf, math.nan]}
    )
    t["arms"][2].update({"state": "missing", "final_loss": None, "steps": [], "loss": []})
    t["arms"].append(
        {
            "optimizer": HOSTILE_NAME,
            "schedule": "1f1b",
            "correction": "none",
            "seed": 0,
            "where": HOSTILE_NAME,
            "state": "complete",
            "final_loss": 2.0,
            "steps": [0, 1],
            "loss": [3.0, 2.0],
        }
    )
    t["gaps"][0]["pairs"][1]["gap"] = None
    t["gaps"].append(
        {
            "optimizer": HOSTILE_NAME,
            "gap": {"value": -1.2, "low": -12.3, "high": 9.9, "level": 0.95, "method": "x", "n": 2},
            "gap_corrected": None,
            "share_recovered": {"defined": False, "value": None, "note": HOSTILE_NAME},
            "pairs": None,
        }
    )
    t["oracle_check"][0]["max_abs_diff"] = math.nan
    t["bound"]["constants"][0].update({"latex": r"\def\x{", "symbol": HOSTILE_NAME, "low": math.nan})
    t["bound"]["measured"] = {"value": None}
    put(folder, "training", t)
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=("small", "quick", "hostile"), default="quick")
    options = parser.parse_args()
    if options.size == "hostile":
        write_hostile(options.folder)
    else:
        write(options.folder, options.size)
