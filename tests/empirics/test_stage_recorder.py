"""What two real processes record by themselves is what the oracle's recorder sees; and the hook changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from empirics.errors import InputError
from empirics.run_budget import facts_of_run, recorder_of_run
from empirics.stage_recorder import Recorded, gather
from pipeline.engine.pool import WorkerPool
from pipeline.models.gpt import GPTConfig
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
    recorded = replace(job, optimizer=Recorded(job.optimizer, str(tmp_path), every))
    ran = run_job(recorded, pool)
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


@pytest.mark.mutation
def test_a_stage_that_is_left_out_is_seen(tmp_path):
    """The record of the first stage alone is not that of the model."""
    names = [f"layers.{i}.{n}" for i, layer in enumerate(CONFIG.make_layers()) for n, _ in layer.named_parameters()]
    parameters = [torch.nn.Parameter(torch.ones(3, 2)) for _ in names]
    for part in ("whole", "half"):
        named = list(zip(names, parameters, strict=True))[: None if part == "whole" else len(names) // 2]
        optimizer = Recorded(_lmo, str(tmp_path / part))(named)
        for _, p in named:
            p.grad = torch.ones_like(p)
        optimizer.step()
    whole, half = (gather(str(tmp_path / part))[0] for part in ("whole", "half"))
    assert whole["momentum_norm"] > 1.5 * half["momentum_norm"]


def _lmo(named):
    from pipeline.optim.lmo import LMO

    return LMO(named, lr=0.1, alpha=0.5)


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match="every"):
        Recorded(_lmo, str(tmp_path), 0)
    with pytest.raises(InputError, match="no recorded"):
        gather(str(tmp_path))
    with pytest.raises(InputError, match="SGD"):
        Recorded(lambda named: torch.optim.SGD([p for _, p in named], lr=0.1), str(tmp_path))(
            [("a", torch.nn.Parameter(torch.ones(2)))]
        )
    (tmp_path / "recorded-a.jsonl").write_text('{"k": 0, "layers": []}\n')
    (tmp_path / "recorded-b.jsonl").write_text('{"k": 1, "layers": []}\n')
    with pytest.raises(InputError, match="other steps"):
        gather(str(tmp_path))
