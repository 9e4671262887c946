"""Options for durations and sizes, the same in every command that puts a schedule on the clock."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from pipeline.options import integer
from staleproof.errors import InputError

Duration = int | Fraction
#: Bytes of the whole model where nothing is given: a billion fp32 parameters with AdamW.
DEFAULT_BYTES = {"weight": 4e9, "gradient": 4e9, "optimizer": 8e9, "activation": 4e9, "boundary": 16e6}
SMALLEST, LARGEST = 1e-12, 1e15
RANGE = f"a number from {SMALLEST:g} to {LARGEST:g}"


def duration(text: str) -> Duration:
    """0 or a number from 1e-12 to 1e15, kept exactly: 2, 0.5, 1e-3 or 1/3."""
    try:
        parts = [float(part) for part in text.split("/")]
        rough = parts[0] / parts[1] if len(parts) == 2 else parts[0]
        if len(parts) > 2 or not (rough == 0 or SMALLEST <= rough <= LARGEST) or not text.isascii():
            raise ValueError
        exact = Fraction(text) if rough > 0 else Fraction(0)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give 0 or {RANGE}") from None
    return exact.numerator if exact.denominator == 1 else exact


def durations(text: str) -> Duration | list[Duration]:
    """One duration, or one for each stage, separated by commas."""
    return each(text, duration) if "," in text else duration(text)


def each(text: str, convert: Callable[[str], Any]) -> list[Any]:
    """The parts between commas, converted; a part that is refused shows the whole text."""
    try:
        return [convert(part) for part in text.split(",")]
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"in {text!r}: {error}") from None


def positive_duration(text: str) -> Duration:
    """A number > 0, kept exactly."""
    try:
        if (value := duration(text)) > 0:
            return value
    except argparse.ArgumentTypeError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give {RANGE}")


def sizes(text: str) -> float | list[float]:
    """Bytes of the whole model, or of each stage, separated by commas."""
    return each(text, float_bytes) if "," in text else float_bytes(text)


def add_costs(parser: argparse.ArgumentParser) -> None:
    """Durations in any one unit, for an S-th of the model or, separated by commas, for each stage."""
    group = parser.add_argument_group(
        "durations, in any one unit (per stage: separate with commas; chunks count as stages)"
    )
    add = group.add_argument
    add("--forward", type=durations, default=1, metavar="F", help="forward of a microbatch on an S-th of the model (1)")
    add("--backward", type=durations, default=2, metavar="B", help="its whole backward (2)")
    add("--weight", type=durations, metavar="W", help="the weight gradient's part of B, for zb-h1 (half of it)")
    add("--hop", type=duration, default=0, metavar="T", help="latency of a message (0)")
    add("--bandwidth", type=positive_duration, metavar="X", help="bytes per unit of time of a link (unlimited)")
    add("--optimizer", type=durations, default=0, metavar="T", help="optimizer step on an S-th of the model (0)")
    add("--reduce", type=duration, default=0, metavar="T", help="sum or mean over a stage's copies, messages too (0)")
    add("--tokens", type=integer(1), metavar="N", help="tokens of a microbatch, to print tokens per unit of time")


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """Bytes, by default :data:`DEFAULT_BYTES`, and what a correction keeps."""
    group = parser.add_argument_group("bytes of the whole model (per stage: separate with commas)")
    add = group.add_argument
    for name, what in (
        ("weight", "one version of the weights"),
        ("gradient", "one buffer of gradients"),
        ("optimizer", "optimizer state"),
        ("activation", "activations of a microbatch"),
        ("boundary", "a message between two stages"),
    ):
        convert: Callable[[str], Any] = float_bytes if name == "boundary" else sizes
        default = DEFAULT_BYTES[name]
        add(f"--{name}-bytes", type=convert, default=default, metavar="N", help=f"{what} ({default:g})")
    add("--correction", default="none", metavar="NAME", help="none (default) or what train takes: count the buffers it "
        "keeps, as large as the weights")  # fmt: skip
    add("--form", metavar="NAME", help="of error-feedback: extrapolate (default), one buffer; telescoped, as many as "
        "the stage's delay")  # fmt: skip
    add("--adaptive", action="store_true", help="of delay-compensation: one buffer more")
    add(
        "--recompute",
        action="store_true",
        help="keep stage inputs only; every backward runs its forward again first and takes F more",
    )


def float_bytes(text: str) -> float:
    """A number of bytes >= 0."""
    return float(duration(text))


def costs_of(args: argparse.Namespace) -> Any:
    """pipeline's Costs from the options."""
    from pipeline.clock import Costs

    message = Fraction(args.boundary_bytes) if args.bandwidth is not None else 0
    return Costs(
        args.forward,
        args.backward,
        args.weight,
        args.hop,
        args.bandwidth,
        message,
        args.optimizer,
        args.reduce,
        args.recompute,
    )


def describe_costs(args: argparse.Namespace) -> str:
    """The durations that were given, in words: "F = 1, B = 2"."""
    given = [("F", args.forward), ("B", args.backward), ("W", args.weight)]
    given += [(name, getattr(args, name) or None) for name in ("hop", "bandwidth", "optimizer", "reduce")]
    words = [f"{name} = {_words(value)}" for name, value in given if value is not None]
    return ", ".join([*words, *(["with recomputation"] if args.recompute else [])])


def describe_sizes(args: argparse.Namespace) -> str:
    """The bytes of the whole model in words."""
    words = [f"{name} {_words(getattr(args, f'{name}_bytes'))}" for name in DEFAULT_BYTES]
    kept = kept_of(args)
    if kept is not None:
        more = [kept.form] if kept.name == "error-feedback" else ["adaptive"] * kept.adaptive
        words = [*words, f"with what {' '.join([kept.name, *(f'({word})' for word in more)])} keeps"]
    return ", ".join(words)


def describe_defaults() -> str:
    """The same where no option is given."""
    return ", ".join(f"{name} {_words(value)}" for name, value in DEFAULT_BYTES.items())


def _words(value: Any) -> str:
    if isinstance(value, list):
        return "(" + ", ".join(map(_words, value)) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)


def sizes_of(args: argparse.Namespace) -> Any:
    """pipeline's Sizes from the options."""
    from pipeline.memory import Sizes

    return Sizes(**{f"{name}_bytes": getattr(args, f"{name}_bytes") for name in DEFAULT_BYTES})


def default_sizes() -> Any:
    """pipeline's Sizes where no option is given."""
    from pipeline.memory import Sizes

    return Sizes(**{f"{name}_bytes": value for name, value in DEFAULT_BYTES.items()})


def kept_of(args: argparse.Namespace) -> Any:
    """pipeline's CorrectionBuffers, or None. Raises InputError for what is not allowed."""
    from pipeline.correction_buffers import CorrectionBuffers

    if args.correction != "none":
        return CorrectionBuffers(args.correction, args.form or "extrapolate", args.adaptive)
    for name in ("form", "adaptive"):
        if value := getattr(args, name):
            raise InputError(f"{name}: {value!r} is not allowed without a --correction that has it")
    return None


def readable_bytes(value: float) -> str:
    """Bytes with three significant digits and a decimal prefix."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} B"
