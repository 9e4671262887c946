"""Result files: strictly valid JSON, full precision, never half written."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline import json_io


def strict(text: str) -> object:
    def refuse(name: str) -> float:
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


def test_full_precision_and_no_bare_nan() -> None:
    values = {"a": 0.1 + 0.2, "b": math.nan, "c": [math.inf, -math.inf], "d": 5e-324, "e": 10**30, "f": None}
    back = strict(json_io.dumps(values))
    assert back == {
        "a": 0.30000000000000004,
        "b": "NaN",
        "c": ["Infinity", "-Infinity"],
        "d": 5e-324,
        "e": 10**30,
        "f": None,
    }
    assert math.isnan(float("NaN")) and float("-Infinity") == -math.inf


def test_arrays_scalars_and_paths() -> None:
    values = {
        "n": np.float64(0.1),
        "i": np.int64(3),
        "t": torch.tensor([1.0, math.nan], dtype=torch.float64),
        "m": np.eye(2, dtype=int),
        "b": np.bool_(True),
        "p": Path("a") / "b",
        3: (1, 2),
    }
    assert strict(json_io.dumps(values)) == {
        "n": 0.1,
        "i": 3,
        "t": [1.0, "NaN"],
        "m": [[1, 0], [0, 1]],
        "b": True,
        "p": str(Path("a") / "b"),
        "3": [1, 2],
    }


@pytest.mark.parametrize("value", [object(), {1.5: 1}, {"deep": [1, {2, 3}]}])
def test_what_cannot_be_written_is_named(value: object, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="result"):
        json_io.write_json(tmp_path / "a.json", value)
    assert list(tmp_path.iterdir()) == []


def test_text_is_ascii_whatever_the_locale(tmp_path: Path) -> None:
    json_io.write_json(tmp_path / "a.json", {"sigma": "σ ≤ 1 \udcff"})
    assert (tmp_path / "a.json").read_bytes().isascii()
    assert json_io.read_json(tmp_path / "a.json") == {"sigma": "σ ≤ 1 \udcff"}


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "status.json"
    json_io.write_json(target, {"state": "running"})

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json_io.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        json_io.write_json(target, {"state": "complete"})
    assert json_io.read_json(target) == {"state": "running"}
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]
