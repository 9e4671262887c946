"""TEST DATA: the part of a result folder that measurements make, and a budget of the training run."""

from __future__ import annotations

from typing import Any

import numpy as np

Row = dict[str, Any]


def budget(theorem: str = "delayed-lmo", worst: float | None = 4.0, **more: Any) -> Row:
    """A waterfall of five levels and two inequalities; worst None: no constant that holds everywhere is known."""
    values = [1.0, 1.5, 2.5, 3.5, worst]
    names = ["measured average", "momentum's errors as they were", "measured terms", "trajectory constants"]
    numbers = {"steps": 20, "worst_step": 3, "min": 0.1, "median": 0.4, "max": 0.9}
    inequality = {"statement": "a <= b*eta", "latex": r"a \le b \eta", **numbers}
    return {
        "name": "delay 2, noise-free",
        "theorem": theorem,
        "title": "Theorem 1: delayed LMO method, gradient at the iterate",
        "status": "complete",
        "sigma": 0.0,
        "waterfall": [
            {"level": level, "value": value, "added": None, "how": "pathwise"}
            for level, value in zip([*names, "worst-case constants"], values, strict=True)
        ],
        "editions": {"measured": {"value": 2.5, "terms": {}, "kind": "certified"}},
        "inequalities": [
            {"name": "delay", "place": "theorem delay", "kind": "certified", "violations": 0, **inequality},
            {"name": "walk", "place": "delay: one step more", "kind": "certified", "violations": 0, **inequality,
             "evidence": False},
            {"name": "recursion", "place": "momentum: recursion", "kind": "equality", "violations": 0, **inequality},
            {"name": "length", "place": "delay: length", "kind": "definition", "violations": 0, **inequality},
        ],
        "counts": {"rows": 4, "evidence": 2, "certified": 2, "equality": 1, "by construction": 0, "definition": 1},
        **more,
    }  # fmt: skip


def empirics(pairs: int = 12) -> Row:
    """Two budgets, two runs of old blocks, known constants and pairs of losses."""
    rng = np.random.default_rng(0)
    predicted = np.geomspace(0.01, 1.0, pairs)
    check = {"name": "rpd-b", "kind": "certified", "utilisation": 0.4, "holds": True}
    return {
        "constants": [
            {"norm": "spectral", "truth": 1.0, "name": "L", "value": 0.999, "how": "estimated", "low": 0.999,
             "high": 5.5, "method": "norm power method"},
            {"norm": "spectral", "truth": 0.1, "name": "sigma", "value": 0.1, "how": "exact", "low": 0.1, "high": 0.1,
             "method": "all 16 samples"},
        ],
        "budgets": {"theorems": [budget(), budget("error-feedback", 9.0)], "grid": [], "planted": []},
        "blocks": {"runs": [{"name": "uniform delays", "checks": [check, {**check, "name": "window"}]}], "tuned": []},
        "windows": {
            "level": 1e-6,
            "rows": [
                {"name": "0.1 of the limit", "tau": 1, "beta": 0.9, "correction": "none", "eta": 0.1, "replicas": 400,
                 "first": 1 if i % 2 else 61, "last": 60 if i % 2 else 100, "predicted": float(p),
                 "measured": float(p * (1 + 0.01 * z)), "error": float(0.01 * p)}
                for i, (p, z) in enumerate(zip(predicted, rng.standard_normal(pairs), strict=True))
            ],
        },
    }  # fmt: skip
