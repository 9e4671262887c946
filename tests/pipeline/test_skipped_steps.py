"""A batch with Inf or NaN in its gradient moves no stage, and nothing of it stays: the run equals the oracle.

The last column of every row is a mark that all layers pass on. A mark of c + 1 makes the gradient of layer c's weight
infinite, -(c + 1) makes it NaN; forwards and the gradients of the other layers stay finite.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pipeline.clock import simulate
from pipeline.divergence import of_summary
from pipeline.engine.checkpoint import folder_of
from pipeline.engine.job import Checkpoints, Job
from pipeline.engine.pool import gather
from pipeline.engine.result import StageResult
from pipeline.errors import InputError, RunError
from pipeline.models.gpt import GPTConfig
from pipeline.optim.corrections import CORRECTIONS, CorrectionOptions, corrected
from pipeline.optim.error_feedback import ErrorFeedback
from pipeline.oracle import largest_difference
from pipeline.oracle_corrections import OracleCorrection
from pipeline.record import describe
from pipeline.run import oracle_of
from pipeline.schedules import make_schedule
from pipeline.training import TrainConfig
from staleproof.cli import main
from tests.pipeline.toys import optimizer, squared

pytestmark = pytest.mark.processes

EQUAL = (0.0, "")
M, STEPS = 4, 9


class Spoil(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(factor)
        return weight.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # type: ignore[override]
        spoiled = gradient.clone()
        spoiled[0, 0] = spoiled[0, 0] * ctx.saved_tensors[0] + (ctx.saved_tensors[0] - ctx.saved_tensors[0])
        return spoiled, None


class Marked(nn.Module):
    """tanh of a linear map of all but the last column, which is passed on."""

    def __init__(self, index: int, weight: nn.Parameter | None = None, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.code = index + 1.0
        self.weight = weight if weight is not None else nn.Parameter(torch.randn(4, 4, dtype=dtype) / 2)

    def forward(self, h: Tensor) -> Tensor:
        x, mark = h[:, :-1], h[:, -1:]
        factor = torch.where(mark[0, 0].abs() == self.code, torch.inf * mark[0, 0].sign(), 1.0)
        factor = torch.where(factor == -torch.inf, torch.nan, factor)
        return torch.cat([(x @ Spoil.apply(self.weight, factor)).tanh(), mark], 1)


def marked_layers(dtype: torch.dtype = torch.float64) -> list[nn.Module]:
    return [Marked(index, dtype=dtype) for index in range(4)]


def tied_layers() -> list[nn.Module]:
    """The first and the last share their weight."""
    layers = marked_layers()
    layers[3] = Marked(3, layers[0].weight)
    return layers


@dataclass(frozen=True)
class Marks:
    """Rows drawn from j; ``at``: (step, mark) of the batches whose second microbatch carries a mark."""

    at: tuple[tuple[int, float], ...] = ()
    infinite: tuple[int, ...] = ()  # steps whose inputs hold Inf themselves

    def microbatch(self, j: int) -> Any:
        x = torch.randn(2, 5, generator=torch.Generator().manual_seed(j), dtype=torch.float64)
        k, within = divmod(j, M)
        x[:, -1] = dict(self.at).get(k, 0.0) if within == 1 else 0.0
        if k in self.infinite and within == 2:
            x[0, 0] = torch.inf
        return x, x[:, :-1].sin()


def unmarked(output: Tensor, target: Tensor) -> Tensor:
    return squared(output[:, :-1], target)


def job_of(at: Any = (), S: int = 2, schedule: str = "pipedream-2bw", **changes: Any) -> Job:
    options = changes.pop("options", {})
    job = Job(
        schedule=make_schedule(schedule, S, M, **options),
        layers=marked_layers,
        optimizer=optimizer("adamw"),
        data=Marks(tuple(at)),
        loss=unmarked,
        steps=STEPS,
        seed=3,
        skip_nonfinite=True,
        snapshot_every=1,
    )
    return replace(job, **changes)


def check(workers: Any, job: Job, skipped: list[int], correction: OracleCorrection | None = None) -> Any:
    """Run it; ``correction``: what the oracle applies itself, around the same recipe."""
    engine = workers(job.schedule.stages).run(job)
    plain = job
    if correction is not None:
        recipe = "sgd" if job.optimizer.func is with_correction else job.optimizer.args[0]
        plain = replace(job, optimizer=optimizer(recipe))
    oracle = oracle_of(plain, correction)
    assert engine.skipped == oracle.skipped == skipped
    assert largest_difference(engine.snapshots, oracle.snapshots) == EQUAL
    assert all(math.isfinite(float(w.sum())) for weights in engine.snapshots.values() for w in weights.values())
    for k in skipped:
        if k:
            assert largest_difference({0: engine.snapshots[k + 1]}, {0: engine.snapshots[k]}) == EQUAL
    trace = sorted((e.kind, e.stage, e.microbatch, e.step, e.version) for e in engine.events)
    clock = simulate(job.schedule, job.steps)
    assert trace == sorted((e.kind, e.stage, e.microbatch, e.step, e.version) for e in clock)  # versions go on
    return engine


def feedback(tau: int, job: Job, form: str = "extrapolate") -> OracleCorrection:
    return OracleCorrection("error-feedback", [tau] * len(job.layers()), form)


#: (step, mark) of a case -> the steps left out.
CASES: dict[str, tuple[tuple[int, float], ...]] = {
    "first stage": ((3, 1.0),),
    "at step 0": ((0, 2.0),),
    "two in a row": ((3, 1.0), (4, 4.0)),
    "NaN in the last stage": ((3, -4.0),),
    "at the last step": ((STEPS - 1, 3.0),),
    "0, 1 and more": ((0, -1.0), (1, 4.0), (4, 2.0), (6, 3.0), (7, -2.0)),
}


@pytest.mark.parametrize(("recipe", "corrected"), [("sgd", True), ("adamw", False), ("adamw", True)])
@pytest.mark.parametrize("S", [2, 4])
@pytest.mark.parametrize("name", CASES)
def test_a_step_is_left_out_by_all_stages(workers, name, S, recipe, corrected):
    correction = "error-feedback" if corrected else "none"
    job = job_of(CASES[name], S, optimizer=optimizer(recipe, correction))
    check(workers, job, [k for k, _ in CASES[name]], feedback(1, job) if corrected else None)


@pytest.mark.parametrize(
    ("schedule", "options"), [("1f1b", {}), ("gpipe", {}), ("uniform", {"tau": 1}), ("uniform", {"tau": 3})]
)
@pytest.mark.parametrize("S", [2, 4])
def test_other_schedules(workers, schedule, options, S):
    job = job_of(CASES["0, 1 and more"], S, schedule, options=options, optimizer=optimizer("sgd"))
    check(workers, job, [0, 1, 4, 6, 7])


def test_a_long_delay_with_both_forms_of_the_history(workers):
    job = job_of(CASES["0, 1 and more"], 2, "uniform", options={"tau": 3})
    check(workers, job, [0, 1, 4, 6, 7])
    check(workers, replace(job, optimizer=optimizer("sgd", "error-feedback", 3)), [0, 1, 4, 6, 7], feedback(3, job))
    telescoped = functools.partial(corrected_by_hand, 3, "telescoped")
    engine = workers(2).run(replace(job, optimizer=telescoped))
    plain = replace(job, optimizer=functools.partial(corrected_by_hand, 0, "telescoped"))
    oracle = oracle_of(plain, feedback(3, job, "telescoped"))
    assert largest_difference(engine.snapshots, oracle.snapshots) == EQUAL


@pytest.mark.parametrize("name", list(CORRECTIONS))
def test_what_remembers_weights_or_gradients_passes_the_step(workers, name):
    """Delay compensation needs the weights of three steps ago whether or not these steps were taken."""
    job = job_of(CASES["0, 1 and more"], 2, "uniform", options={"tau": 3})
    options = CorrectionOptions(anneal_steps=6) if name == "lr-discount" else CorrectionOptions()
    settings = {k: v for k, v in vars(options).items() if v is not None}
    rule = OracleCorrection(name, [3] * len(job.layers()), **settings)
    check(workers, replace(job, optimizer=functools.partial(with_correction, name, options)), [0, 1, 4, 6, 7], rule)


def with_correction(name: str, options: CorrectionOptions, named: Any) -> torch.optim.Optimizer:
    return corrected(optimizer("sgd")(named), name, 3, options)


def corrected_by_hand(tau: int, form: str, named: Any) -> torch.optim.Optimizer:
    return ErrorFeedback(torch.optim.SGD([p for _, p in named], lr=0.05, momentum=0.9), tau, form)


@pytest.mark.parametrize("S", [2, 4])
def test_inf_in_the_data_reaches_every_gradient(workers, S):
    job = job_of(S=S, data=Marks(infinite=(2, 5)))
    engine = check(workers, job, [2, 5])
    assert [k for k, loss in enumerate(engine.losses) if not math.isfinite(loss)] == [2, 5]


@pytest.mark.parametrize("S", [2, 4])
@pytest.mark.parametrize("clip_norm", [math.inf, 2.0])
def test_with_clipping(workers, S, clip_norm):
    job = job_of(CASES["0, 1 and more"], S, clip=0.01, clip_norm=clip_norm)
    skipped = [k for k, _ in CASES["0, 1 and more"]]
    engine, oracle = workers(S).run(job), oracle_of(job)
    assert engine.skipped == oracle.skipped == skipped
    assert largest_difference(engine.snapshots, oracle.snapshots)[0] <= 1e-13  # sums and quotients, to round-off
    assert [k for k, norm in enumerate(engine.norms) if not math.isfinite(norm)] == skipped
    assert engine.norms == pytest.approx(oracle.norms, rel=1e-13, nan_ok=True)


@pytest.mark.parametrize("S", [2, 4])
def test_a_tied_weight_is_looked_at_in_all_its_copies(workers, S):
    for mark in (1.0, 4.0, -4.0):
        job = job_of(((2, mark),), S, layers=tied_layers, optimizer=optimizer("sgd"))
        engine, oracle = workers(S).run(job), oracle_of(job)
        assert engine.skipped == oracle.skipped == [2]
        assert largest_difference(engine.snapshots, oracle.snapshots)[0] <= 1e-13


@pytest.mark.parametrize("S", [2, 4])
def test_bfloat16_on_masters(workers, S):
    layers = functools.partial(marked_layers, torch.float32)
    job = job_of(CASES["0, 1 and more"], S, layers=layers, compute=torch.bfloat16)
    check(workers, job, [0, 1, 4, 6, 7])


def huge(output: Tensor, target: Tensor) -> Tensor:
    return unmarked(output, target) * 1e200


def test_a_norm_that_overflows_is_no_reason(workers):
    # Finite gradients of 1e200: their squares are not.
    job = job_of(loss=huge, clip=0.5, steps=4)
    engine = workers(2).run(job)
    assert engine.skipped == [] and engine.norms[0] == math.inf


def test_the_first_update_comes_one_step_later_and_is_plain(workers):
    # Without the batch at step 0 the correction starts with the second real update, at step 2.
    job = job_of(CASES["at step 0"], optimizer=optimizer("sgd", "error-feedback"))
    plain = replace(job, optimizer=optimizer("sgd"))
    engine, uncorrected = workers(2).run(job), oracle_of(plain)
    assert largest_difference({2: engine.snapshots[2]}, {2: uncorrected.snapshots[2]}) == EQUAL
    assert largest_difference({3: engine.snapshots[3]}, {3: uncorrected.snapshots[3]})[0] > 1e-6
    start = {name: w for name, w in engine.snapshots[1].items()}
    assert largest_difference({2: engine.snapshots[2]}, {2: start})[0] > 1e-6


# -- what the flag is for


def test_without_it_the_weights_are_lost(workers):
    engine = workers(2).run(job_of(((3, 1.0),), skip_nonfinite=False))
    assert engine.skipped == []
    lost = [k for k, weights in engine.snapshots.items() if not all(bool(w.isfinite().all()) for w in weights.values())]
    assert lost == list(range(4, STEPS + 1))


def test_it_changes_nothing_where_all_is_finite(workers):
    for changes in ({}, {"clip": 0.01}, {"compute": torch.bfloat16}):
        off, on = (workers(2).run(job_of(skip_nonfinite=flag, **changes)) for flag in (False, True))
        assert largest_difference(on.snapshots, off.snapshots) == EQUAL
        assert (on.losses, on.norms, on.skipped) == (off.losses, off.norms, [])


class EachForItself(torch.optim.SGD):
    """Leaves out its step where its own stage's gradient is not finite."""

    def step(self, closure: Any = None) -> None:
        grads = [p.grad for group in self.param_groups for p in group["params"]]
        if all(g is None or bool(g.isfinite().all()) for g in grads):
            super().step()


def each_for_itself(named: Any) -> torch.optim.Optimizer:
    return EachForItself([p for _, p in named], lr=0.05)


def plain_sgd(named: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for _, p in named], lr=0.05)


def test_stages_that_decide_for_themselves_are_seen(workers):
    job = job_of(((3, 4.0),), optimizer=plain_sgd)
    alone = workers(2).run(replace(job, optimizer=each_for_itself, skip_nonfinite=False))
    oracle = oracle_of(job)
    assert largest_difference(workers(2).run(job).snapshots, oracle.snapshots) == EQUAL
    difference, place = largest_difference(alone.snapshots, oracle.snapshots)
    assert difference > 1e-4 and math.isfinite(difference), place
    moved = {name for name, w in alone.snapshots[4].items() if not torch.equal(w, alone.snapshots[3][name])}
    assert moved == {"layers.0.weight", "layers.1.weight"}  # the stage that saw nothing


def test_stages_that_left_out_different_steps_are_an_error():
    stages = [StageResult(s, skipped=[4] * s, snapshots={1: {str(s): torch.ones(1)}}) for s in (0, 1)]
    with pytest.raises(RunError, match=r"^stage 0 left out the steps \[\], the last \[4\]$"):
        gather(stages)


# -- refusals


def test_where_a_step_cannot_wait_it_is_refused():
    rest = "allowed where a microbatch reads one weight version at every stage; pipedream would have to drain"
    with pytest.raises(InputError, match=f"^skip_nonfinite = True: {rest}"):
        job_of(schedule="pipedream")
    assert job_of(S=1, schedule="pipedream").skip_nonfinite
    with pytest.raises(InputError, match="^skip_nonfinite = 1: allowed are True and False$"):
        job_of(skip_nonfinite=1)
    with pytest.raises(InputError, match="^driver = 'torch': allowed without skip_nonfinite$"):
        job_of(schedule="1f1b", driver="torch")


# -- going on


@pytest.mark.parametrize("correction", ["none", "error-feedback"])
def test_going_on_before_and_after_a_step_that_was_left_out(workers, tmp_path, correction):
    at = ((0, 1.0), (4, 4.0), (7, 2.0))
    job = job_of(at, optimizer=optimizer("adamw", correction))
    whole = workers(2).run(replace(job, checkpoints=Checkpoints(str(tmp_path), 1, keep=20)))
    assert whole.skipped == [0, 4, 7]
    assert largest_difference(whole.snapshots, workers(2).run(job).snapshots) == EQUAL
    for done in (1, 4, 5):
        rest = workers(2).run(replace(job, resume=str(folder_of(tmp_path, done))))
        later = {k: weights for k, weights in whole.snapshots.items() if k > done}
        assert largest_difference(rest.snapshots, later) == EQUAL
        assert rest.skipped == whole.skipped
    with pytest.raises(InputError, match="skip_nonfinite = False: the checkpoint was written with True"):
        workers(2).run(replace(job, skip_nonfinite=False, resume=str(folder_of(tmp_path, 4))))


# -- the command


def test_the_summary_has_the_steps(capsys):
    words = "train --schedule 1f1b --steps 2 --layers 1 --width 8 --heads 1 --context 8 --skip-nonfinite --json"
    assert main([*words.split(), "--check-oracle"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["skip_nonfinite"], summary["skipped_steps"], summary["max_abs_diff"]) == (True, [], 0)
    assert "left out" not in describe(summary)
    skipped = summary | {"skipped_steps": [1], "losses": [6.0, math.nan]}
    assert "steps left out for Inf or NaN in a gradient: 1 of 2 (k = 1, from 0)" in describe(skipped)
    assert of_summary(skipped) is None and of_summary(skipped | {"skipped_steps": []}).step == 2


def test_a_configuration_refuses_it_too():
    small = GPTConfig(layers=1, width=8, heads=1, context=8)
    config = TrainConfig(schedule="pipedream", model=small, skip_nonfinite=True)
    with pytest.raises(InputError, match="^skip_nonfinite = True: "):
        config.job(b"abcdefgh" * 100)
