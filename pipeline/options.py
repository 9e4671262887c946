"""Options of a training run on a command line, the same for every way to start one, and the settings they stand for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.training import TrainConfig

MAX_SEED = 2**31 - 1
#: Longest uniform delay: as many weight versions are kept.
MAX_TAU = 1000
MODELS = ("gpt", "bert")
#: What may differ from the record when a run goes on.
FREE_AT_RESUME = {
    "steps", "stages", "device", "transport", "port", "check_oracle", "newest_loss_every", "checkpoint_every", "json",
    "out", "overwrite", "resume",
}  # fmt: skip


def integer(least: int, most: int | None = None) -> Callable[[str], int]:
    """A whole number from `least` to `most` (without an upper end if None)."""
    allowed = f"an integer >= {least}" if most is None else f"an integer from {least} to {most}"

    def convert(text: str) -> int:
        value = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give {allowed}")
        return value

    return convert


seed = integer(0, MAX_SEED)


def positive(text: str) -> float:
    """A finite number > 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give a finite number > 0")
    return value


def number(text: str) -> float:
    """A finite number >= 0."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give a finite number >= 0")
    return value


def probability(text: str) -> float:
    """A number in [0, 1)."""
    try:
        value = float(text)
    except ValueError:
        value = 1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give a number of at least 0 and below 1")
    return value


def add_policy(parser: argparse.ArgumentParser) -> None:
    """What PipeDream-2BW does with fewer than S - 1 microbatches a step."""
    parser.add_argument(
        "--policy",
        default="refuse",
        metavar="NAME",
        help="pipedream-2bw with m < S - 1: refuse (default), stall (delay 1, idle devices), uniform (longer delay)",
    )


def add_tau(parser: argparse.ArgumentParser) -> None:
    """The delay of the schedule ``uniform``."""
    parser.add_argument(
        "--tau",
        type=integer(0, MAX_TAU),
        metavar="T",
        help="uniform: delay in optimizer steps (default: the least possible)",
    )


def add_sync_start(parser: argparse.ArgumentParser) -> None:
    """Steps without delay at the beginning of an asynchronous run."""
    parser.add_argument(
        "--sync-start",
        type=integer(0),
        default=0,
        metavar="K0",
        help="asynchronous schedules: the first K0 optimizer steps have delay 0 (default: 0)",
    )


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """Schedule, optimizer, model, data, checkpoints and output of a run."""
    add = parser.add_argument
    add("--schedule", default="pipedream-2bw", metavar="NAME", help="gpipe, 1f1b, pipedream, pipedream-vertical-sync, "
        "pipedream-2bw (default), uniform")  # fmt: skip
    add("--stages", type=integer(1), metavar="S", help="pipeline stages, one process each (default: 2; under "
        "torchrun the number of processes)")  # fmt: skip
    add(
        "--microbatches",
        type=integer(1),
        metavar="m",
        help="microbatches per optimizer step (default: 1 for pipedream, S for the others)",
    )
    add_policy(parser)
    add_tau(parser)
    add_sync_start(parser)
    add("--steps", type=integer(1), default=100, metavar="K", help="optimizer steps (default: 100)")
    add("--optimizer", default="adamw", metavar="NAME", help="adamw (default), muon, soap, ...; staleproof optimizers "
        "prints them all")  # fmt: skip
    add("--lr", type=positive, metavar="X", help="learning rate (default: the optimizer's own)")
    add("--correction", default="none", metavar="NAME", help="none (default), error-feedback, weight-prediction, "
        "gradient-extrapolation, delay-compensation, lr-discount")  # fmt: skip
    add("--form", metavar="NAME", help="error-feedback: extrapolate (default) or telescoped; they differ from a delay "
        "of 2 steps on")  # fmt: skip
    add("--coefficient", type=number, metavar="C", help="error-feedback, weight-prediction, gradient-extrapolation: c "
        "(default: the delay of the stage; telescoped: 1)")  # fmt: skip
    add("--strength", type=number, metavar="X", help="delay-compensation: lambda (default: 0.04, adaptive "
        "2)")  # fmt: skip
    add("--adaptive", action="store_true", help="delay-compensation: lambda over the gradients' running size")
    add("--anneal-steps", type=integer(1), metavar="K", help="lr-discount: steps until the rate is whole (default: "
        "all)")  # fmt: skip
    add("--clip", type=positive, metavar="X", help="largest norm of the gradient, over the whole model (default: none)")
    add("--skip-nonfinite", action="store_true", help="no stage steps on a batch with Inf or NaN in any gradient")
    add("--model", default="gpt", metavar="NAME", help="gpt (default) or bert, a masked-language encoder")
    add("--layers", type=integer(1), default=2, metavar="N", help="transformer blocks (default: 2)")
    add("--width", type=integer(1), default=64, metavar="N", help="features (default: 64)")
    add("--heads", type=integer(1), default=4, metavar="N", help="attention heads (default: 4)")
    add("--context", type=integer(1), default=64, metavar="N", help="bytes per sequence (default: 64)")
    add("--tied", action="store_true", help="one weight for the embedding and the head")
    add("--dropout", type=probability, default=0.0, metavar="P", help="in training (default: 0)")
    add("--recompute", action="store_true", help="run layers again in the backward instead of keeping activations")
    add("--sequences", type=integer(1), default=4, metavar="N", help="sequences per microbatch (default: 4)")
    add("--dtype", default="float32", metavar="TYPE", help="float32 (default), float64, bfloat16 (float32 masters)")
    add("--seed", type=seed, default=0, metavar="N", help="of weights, data order and dropout (default: 0)")
    add("--corpus", metavar="PATH", help="file or folder of text to train on (default: Shakespeare)")
    add("--device", default="auto", metavar="NAME", help="auto (default), cpu, cuda")
    add("--transport", default="auto", metavar="NAME", help="auto (default), gloo, nccl")
    add("--check-oracle", action="store_true", help="compare every parameter at every step with the oracle "
        "(with --clip, or --tied on several stages: in float64)")  # fmt: skip
    add("--newest-loss-every", type=integer(1), metavar="N", help="every N steps, the loss at the newest weights too")
    add("--out", metavar="DIR", help="folder for results: run.json, steps.jsonl, events.json, trace.json, weights.pt")
    add("--overwrite", action="store_true", help="empty an earlier result folder first")
    add("--checkpoint-every", type=integer(1), metavar="N", help="save to DIR/checkpoints; the last two stay")
    add("--resume", action="store_true", help="go on from the newest checkpoint in DIR, settings as they were")


def config_of(args: argparse.Namespace) -> TrainConfig:
    """The run that the options describe. Raises InputError, before anything is started, for what cannot run."""
    from pipeline.models.bert import BERTConfig
    from pipeline.models.gpt import GPTConfig
    from pipeline.optim.corrections import CorrectionOptions
    from pipeline.run import check_oracle_knows
    from pipeline.training import TrainConfig

    if args.model not in MODELS:
        raise InputError(f"model = {args.model!r}: allowed are {', '.join(MODELS)}")
    for option in ("overwrite", "checkpoint_every", "resume"):
        if getattr(args, option) and args.out is None:
            raise InputError(f"{option.replace('_', '-')}: needs --out DIR")
    if args.overwrite and args.resume:
        raise InputError("overwrite: not with --resume, which goes on in the folder")
    cls = BERTConfig if args.model == "bert" else GPTConfig
    correction_options = CorrectionOptions(
        args.form, args.coefficient, args.strength, args.adaptive or None, args.anneal_steps
    )
    config = TrainConfig(
        schedule=args.schedule,
        stages=args.stages,
        microbatches=args.microbatches,
        policy=args.policy,
        tau=args.tau,
        synchronous_steps=args.sync_start,
        sequences=args.sequences,
        steps=args.steps,
        optimizer=args.optimizer,
        lr=args.lr,
        correction=args.correction,
        correction_options=correction_options,
        seed=args.seed,
        dtype=args.dtype,
        model=cls(args.layers, args.width, args.heads, args.context, args.tied, args.dropout),
        recompute=args.recompute,
        clip=args.clip,
        skip_nonfinite=args.skip_nonfinite,
        snapshot_every=1 if args.check_oracle else args.newest_loss_every or 0,
    )
    # What depends on the depth where it is not given is part of the record.
    args.microbatches, args.tau = config.plan.microbatches, getattr(config.settled, "tau", None)
    if args.correction == "lr-discount":
        args.anneal_steps = args.anneal_steps or config.steps
    if args.check_oracle:
        check_oracle_knows(args.schedule)
        if config.sums_reordered and config.dtype != "float64":
            raise InputError(
                f"check_oracle: with clipping or tied weights sums are taken in another order, so the comparison is to "
                f"1e-13 in float64; dtype = {args.dtype!r}: allowed is float64"
            )
    return config


def take_over(args: argparse.Namespace, recorded: Mapping[str, Any], given: Collection[str]) -> None:
    """Put the settings of an earlier run into ``args``; ``given``: options that the user named this time.

    Raises InputError, with both values, where one of these differs and may not.
    """
    for name, value in recorded.items():
        if name not in vars(args):
            continue
        if name in given and name not in FREE_AT_RESUME and getattr(args, name) != value:
            theirs = "was started without it" if value is None else f"has {value!r}"
            raise InputError(f"{name} = {getattr(args, name)!r}: the run in {args.out!r} {theirs}; leave it out")
        if name not in given and name not in ("json", "out", "overwrite", "resume", "port"):
            setattr(args, name, value)


def given_options(parser: argparse.ArgumentParser, words: Collection[str]) -> set[str]:
    """Names of the options that stand on a command line."""
    named = {word.split("=", 1)[0] for word in words if word.startswith("--")}
    return {action.dest for action in parser._actions if named & set(action.option_strings)}
