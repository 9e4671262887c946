"""Stages on GPUs: several on one over gloo, one each over nccl. Only the order of sums may differ from the CPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pipeline.engine.checkpoint import folder_of
from pipeline.engine.job import Checkpoints
from pipeline.engine.pool import WorkerPool
from pipeline.models.gpt import GPTConfig
from pipeline.oracle import largest_difference
from pipeline.training import TrainConfig, train_oracle

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.processes,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
]

TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))
MODEL = GPTConfig(layers=2, width=16, heads=2, context=16)
SMALL = TrainConfig(steps=6, sequences=2, dtype="float64", optimizer="sgd", lr=0.01, model=MODEL, snapshot_every=1)
ROUND_OFF = 1e-9  # float64; only the order of sums differs between the devices


@pytest.mark.parametrize(
    "changes", [{}, {"clip": 0.5}, {"model": replace(MODEL, tied=True)}, {"recompute": True}, {"schedule": "1f1b"}]
)
def test_stages_that_share_a_gpu_equal_the_oracle_to_round_off(changes):
    config = replace(SMALL, **changes)
    with WorkerPool(2, device="cuda", transport="gloo") as pool:
        engine = pool.run(config.job(TEXT))
    assert largest_difference(engine.snapshots, train_oracle(config, TEXT).snapshots)[0] < ROUND_OFF


def test_one_stage_on_one_gpu_goes_over_nccl():
    config = replace(SMALL, stages=1, microbatches=2)
    with WorkerPool(1, device="cuda") as pool:
        assert pool.transport == "nccl"
        engine = pool.run(config.job(TEXT))
    assert largest_difference(engine.snapshots, train_oracle(config, TEXT).snapshots)[0] < ROUND_OFF


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_two_stages_on_two_gpus_go_over_nccl():
    with WorkerPool(2, device="cuda") as pool:
        assert pool.transport == "nccl"
        engine = pool.run(replace(SMALL, clip=0.5).job(TEXT))
    assert largest_difference(engine.snapshots, train_oracle(replace(SMALL, clip=0.5), TEXT).snapshots)[0] < ROUND_OFF


def test_a_run_on_a_gpu_goes_on_bit_for_bit(tmp_path):
    config = replace(SMALL, model=replace(MODEL, dropout=0.1), dtype="bfloat16", optimizer="adamw", lr=None)
    with WorkerPool(2, device="cuda", transport="gloo") as pool:
        whole = pool.run(config.job(TEXT, Checkpoints(str(tmp_path), 3)))
        rest = pool.run(config.job(TEXT, resume=str(folder_of(tmp_path, 3))))
    assert largest_difference({6: rest.weights}, {6: whole.weights}) == (0.0, "")
