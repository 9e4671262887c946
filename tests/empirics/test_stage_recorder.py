"""What two real processes record by themselves is what the oracle's recorder sees; and the hook changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from empirics.errors import InputError
from empirics.run_budget import facts_of_run, recorder_of_run
from empirics.stage_recorder import Recorded, gather, recorded
from pipeline.engine.pool import WorkerPool
from pipeline.models.gpt import GPTConfig
from pipeline.optim.lmo import LMO
from pipeline.oracle import largest_difference
from pipeline.run import run_job
from pipeline.training import TrainConfig, train_oracle

TEXT = bytes((i * i + 3 * i) % 251 for i in range(900))
SMALL = GPTConfig(layers=1, width=8, heads=2, context=8)
CONFIG = TrainConfig(steps=7, sequences=2, microbatches=2, optimizer="lmo", model=SMALL)
NAMES = ("step_norm", "momentum_norm", "inner_momentum", "drift_norm", "update_drift")


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(2, device="cpu") as pool:
        yield pool


def oracle_rows(config, every):
    recorder = recorder_of_run(config, facts_of_run(config), None, every)
    result = train_oracle(config, TEXT, recorder)
    recorder.flush()
    return recorder.rows.kept, result


@pytest.mark.processes
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("change", [{}, {"correction": "error-feedback"}, {"dtype": "float64"}])
def test_the_engine_records_what_the_oracle_records(pool, tmp_path, every, change):
    config = replace(CONFIG, **change)
    job = config.job(TEXT)
    ran = run_job(recorded(job, str(tmp_path), every), pool)
    rows, result = oracle_rows(config, every)
    mine = {int(row["k"]): row for row in gather(str(tmp_path))}
    assert largest_difference(ran.snapshots, result.snapshots)[0] == 0.0  # recorded or not
    assert sorted(mine) == list(range(0, 7, every))
    assert len(rows) == len(mine) - ("correction" in change)  # of y, whose steps count from 1
    for row in rows:
        for name in NAMES:
            if name in row:
                # The same numbers a layer; sums over layers are rounded once here, layer by layer there.
                assert mine[int(row["k"])][name] == pytest.approx(row[name], rel=1e-13), (name, row["k"])
        assert mine[int(row["k"])]["step_norm"] == row["step_norm"]
    assert any("drift_norm" in row for row in rows)


def _lmo(named):
    return LMO(named, lr=0.1, alpha=0.5)


def by_hand(folder, parts, scale=1.0, run="one", steps=range(1), every=1, model="abcd"):
    """What stages with these parameters record at those steps, each gradient a constant matrix."""
    for part in parts:
        named = [(name, torch.nn.Parameter(torch.ones(3, 2, dtype=torch.float64))) for name in part]
        optimizer = Recorded(_lmo, str(folder), tuple(model), run, every, steps[0])(named)
        for k in steps:
            for _, p in named:
                p.grad = (scale + k) * torch.ones_like(p)
            optimizer.step()


def test_another_partition_in_the_same_folder_is_refused(tmp_path):
    by_hand(tmp_path, "abcd", scale=100.0, run="first")
    by_hand(tmp_path, ["ab", "cd"], run="second")
    with pytest.raises(InputError, match="recorded-b.jsonl has another run than recorded-a.jsonl"):
        gather(str(tmp_path))
    by_hand(tmp_path / "own", ["ab", "cd"])
    by_hand(tmp_path / "fine", "abcd")
    assert gather(str(tmp_path / "own")) == gather(str(tmp_path / "fine"))


def test_a_stage_that_is_missing_is_seen(tmp_path):
    by_hand(tmp_path, ["ab", "cd"])
    (tmp_path / "recorded-c.jsonl").unlink()
    with pytest.raises(InputError, match=r"no stage has recorded c \(2 missing\)"):
        gather(str(tmp_path))


@pytest.mark.parametrize("start", [3, 4])
def test_a_resumed_run_goes_on_where_its_checkpoint_is(tmp_path, start):
    """Steps after the checkpoint that were made before the end came are made again, and count once."""
    for part in ("ab", "cd"):
        by_hand(tmp_path, [part], steps=range(6), every=2)
        by_hand(tmp_path, [part], steps=range(start, 9), every=2, run="resumed")
    rows = gather(str(tmp_path))
    assert [row["k"] for row in rows] == [0, 2, 4, 6, 8]
    for part in ("ab", "cd"):  # a new folder: from the checkpoint on
        by_hand(tmp_path / "late", [part], steps=range(start, 9), every=2, run="resumed")
    late = gather(str(tmp_path / "late"))
    assert [row["k"] for row in late] == [4, 6, 8] and rows[2:] == late


def test_a_run_that_goes_on_elsewhere_has_no_gap(tmp_path):
    """A checkpoint from after the record's end: what is between was recorded nowhere, so the record starts anew."""
    by_hand(tmp_path, ["abcd"], steps=range(3))
    by_hand(tmp_path, ["abcd"], steps=range(5, 7), run="resumed")
    assert [row["k"] for row in gather(str(tmp_path))] == [5, 6]


def test_the_job_says_what_the_model_has_and_where_it_starts(tmp_path):
    job = recorded(CONFIG.job(TEXT), str(tmp_path), 2, run="mine").optimizer
    names = [f"layers.{i}.{n}" for i, layer in enumerate(CONFIG.make_layers()) for n, _ in layer.named_parameters()]
    assert (list(job.model), job.run, job.every, job.first) == (names, "mine", 2, 0)
    drawn = {recorded(CONFIG.job(TEXT), str(tmp_path)).optimizer.run for _ in range(2)}
    assert len(drawn) == 2


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match="every"):
        Recorded(_lmo, str(tmp_path), (), "one", 0)
    with pytest.raises(InputError, match="no recorded"):
        gather(str(tmp_path))
    with pytest.raises(InputError, match="SGD"):
        Recorded(lambda named: torch.optim.SGD([p for _, p in named], lr=0.1), str(tmp_path), (), "one")(
            [("a", torch.nn.Parameter(torch.ones(2)))]
        )
    by_hand(tmp_path, ["ab", "cd"])
    text = (tmp_path / "recorded-a.jsonl").read_text()
    (tmp_path / "recorded-a.jsonl").write_text(text.replace('"k": 0', '"k": 1'))
    with pytest.raises(InputError, match="other steps"):
        gather(str(tmp_path))
    for wrong in (text[:-9], text.partition("\n")[2], ""):
        (tmp_path / "recorded-a.jsonl").write_text(wrong)
        with pytest.raises(InputError, match="cut off"):
            gather(str(tmp_path))
