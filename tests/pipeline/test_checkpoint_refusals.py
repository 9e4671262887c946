"""Checkpoints that are damaged, foreign or of another run are refused by name before training goes on."""

from __future__ import annotations

import json
import shutil
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pipeline.engine.checkpoint import (
    MANIFEST,
    check_fits,
    complete_checkpoints,
    latest_checkpoint,
    prepare_folder,
    read_manifest,
)
from pipeline.engine.job import Checkpoints, Job
from pipeline.engine.state import decode, encode
from pipeline.errors import InputError, RunError
from tests.pipeline.toys import dense_layers, optimizer, toy_job

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def saved(_two_workers, tmp_path_factory) -> tuple[Path, Job]:
    """A checkpoint after 12 of 20 steps, and the job that goes on from it."""
    root = tmp_path_factory.mktemp("saved")
    job = toy_job(optimizer=optimizer("adamw", "error-feedback"))
    if not _two_workers.pids:
        _two_workers.restart()
    _two_workers.run(replace(job, checkpoints=Checkpoints(str(root), 12)))
    return latest_checkpoint(root), replace(job, steps=20)


@pytest.fixture
def copy(saved, tmp_path) -> Path:
    return Path(shutil.copytree(saved[0], tmp_path / saved[0].name))


def data_file(folder: Path) -> Path:
    return sorted(folder.glob("*.distcp"))[0]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def change_manifest(folder: Path, **changes: object) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | changes))


DAMAGES = {
    "a flipped bit": (lambda f: flip(data_file(f)), r"__0_0\.distcp' is damaged"),
    "a flipped bit in the metadata": (lambda f: flip(f / ".metadata"), r"\.metadata' is damaged"),
    "a truncated file": (lambda f: truncate(data_file(f)), r"__0_0\.distcp' is damaged"),
    "a missing file": (lambda f: data_file(f).unlink(), r"__0_0\.distcp' is missing"),
    "no manifest": (lambda f: (f / MANIFEST).unlink(), r"has no checkpoint\.json: not a complete checkpoint"),
    "half a manifest": (lambda f: truncate(f / MANIFEST), r"checkpoint\.json' cannot be read"),
    "not text": (lambda f: (f / MANIFEST).write_bytes(b"\xff\xfe"), r"checkpoint\.json' cannot be read"),
    "a list": (lambda f: (f / MANIFEST).write_text("[]"), r"checkpoint\.json' is not a checkpoint of schema 1"),
    "another schema": (lambda f: change_manifest(f, schema=2), r"checkpoint\.json' is not a checkpoint of schema 1"),
    "only a schema": (lambda f: (f / MANIFEST).write_text('{"schema": 1}'), r"checkpoint\.json' is not a checkpoint"),
    "files of another kind": (lambda f: change_manifest(f, files=[]), r"checkpoint\.json' is not a checkpoint"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named(copy, damage):
    spoil, message = DAMAGES[damage]
    spoil(copy)
    with pytest.raises(InputError, match=message) as caught:
        read_manifest(copy)
    assert str(copy) in str(caught.value) and "\n" not in str(caught.value)


def test_a_foreign_folder_and_no_folder(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="has no checkpoint.json: not a complete checkpoint"):
            read_manifest(folder)
        with pytest.raises(InputError, match="resume: no complete checkpoint in"):
            latest_checkpoint(folder)
    with pytest.raises(InputError, match="cannot be read"):
        read_manifest(tmp_path / "notes.txt")


def test_a_worker_refuses_damage_before_it_trains(two_workers, saved, copy):
    flip(data_file(copy))
    seen: list[int] = []
    with pytest.raises(InputError, match="is damaged"):
        two_workers.run(replace(saved[1], resume=str(copy)), lambda k, loss: seen.append(k))
    assert seen == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 4}, "seed = 4: the checkpoint was written with 3"),
        ({"clip": 0.5}, "clip = 0.5: the checkpoint was written with None"),
        ({"reduction": "sum"}, "reduction = 'sum': the checkpoint was written with 'mean'"),
        ({"compute": torch.bfloat16}, "compute = 'torch.bfloat16': the checkpoint was written with 'None'"),
        ({"steps": 12}, "steps = 12: the checkpoint has 12 steps done; allowed are more than that"),
        ({"steps": 3}, "steps = 3: the checkpoint has 12 steps done; allowed are more than that"),
        (
            {"schedule": toy_job("1f1b").schedule},
            "schedule = '1f1b': the checkpoint is of pipedream-2bw with 2 stages and schedule = 'pipedream-2bw'",
        ),
        (
            {"schedule": toy_job(m=3).schedule},
            "microbatches = 3: the checkpoint is of pipedream-2bw with 2 stages and microbatches = 2",
        ),
        (
            {"schedule": toy_job("uniform", options={"tau": 2}).schedule},
            "schedule = 'uniform': the checkpoint is of pipedream-2bw",
        ),
    ],
)
def test_another_run_is_refused_with_both_values(saved, changes, message):
    folder, job = saved
    with pytest.raises(InputError) as caught:
        check_fits(read_manifest(folder), replace(job, **changes))
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)


def wider_layers():
    return dense_layers(4, 5)


def more_layers():
    return dense_layers(5)


CHANGED = [
    ({"layers": wider_layers}, r"layers\.\d\.0\.weight has shape \(4, 4\) in the checkpoint and \(5, 5\) here"),
    ({"layers": more_layers}, r"the checkpoint has no weights of layers\.4\.0\.weight; the model has changed"),
    ({"optimizer": optimizer("adamw")}, "the checkpoint's optimizer has error_feedback wrappers, this one none"),
    ({"optimizer": optimizer("adamw", "error-feedback", 2)}, "tau: saved with 1, this one has 2"),
    ({"optimizer": optimizer("sgd", "error-feedback")}, r"the checkpoint's optimizer has .*betas"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "message"), CHANGED)
def test_another_model_or_optimizer_is_refused(two_workers, saved, changes, message):
    from tests.pipeline.toys import Rows

    data = Rows(width=5) if changes.get("layers") is wider_layers else saved[1].data
    with pytest.raises(InputError, match=message):
        two_workers.run(replace(saved[1], resume=str(saved[0]), data=data, **changes))


def test_a_folder_that_cannot_be_written_is_refused(two_workers, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    for folder, reason in ((file, "File exists"), (file / "below", "Not a directory")):
        with pytest.raises(InputError, match=rf"checkpoints: cannot write to '.*' \({reason}\); give a writable"):
            two_workers.run(toy_job(checkpoints=Checkpoints(str(folder), 1)))
    assert file.read_text() == "mine"


def test_what_an_interrupted_save_left_is_removed_and_nothing_else(tmp_path):
    for name in ("step-00000005.tmp", "step-00000004", "mine.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "content").write_text("")
    prepare_folder(Checkpoints(str(tmp_path), 1), None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.tmp", "step-00000004"]
    assert complete_checkpoints(tmp_path) == []


@pytest.mark.parametrize("field", ["every", "keep"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_impossible_numbers_are_refused(field, value):
    with pytest.raises(InputError, match=f"= {value!r}: allowed are integers of at least 1"):
        Checkpoints("somewhere", **({"every": 1} | {field: value}))


@pytest.mark.parametrize(
    "value",
    [{0: 1.0}, {1, 2}, object, torch.Size([1, 2]), {"a": OrderedDict(b=1)}, {"tuple": [1]}],
    ids=["integer keys", "set", "class", "named tuple", "nested mapping", "what stands for a tuple"],
)
def test_state_that_would_come_back_as_something_else_is_refused(value):
    with pytest.raises(RunError, match="state/w/x = .*: a checkpoint keeps tensors and plain values"):
        encode({"state/w/x": value})


PLAIN = [0.1, float("inf"), float("nan"), True, None, "text", [1, [2.5, None]], {"a": {"b": 1}}, (1, ((2,), [(3,)]))]


@pytest.mark.parametrize("value", PLAIN, ids=str)
def test_plain_state_comes_back_as_it_is(value):
    assert repr(decode(encode({"state/w/x": value}))) == repr({"state/w/x": value})
