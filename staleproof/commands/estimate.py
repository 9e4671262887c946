"""`staleproof estimate`: the constants of a problem or of a finished run, each with how it is known."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pipeline.options import integer, seed
from staleproof.arguments import add_json
from staleproof.errors import EXIT_HOLDS, EXIT_RUN_FAILED, InputError
from staleproof.output import emit, emit_json, note

DEFAULT = "L,sigma,rho"
#: Samples of a gradient, at most.
MOST_BATCH = 100_000
EPILOG = """Exit codes: 0 done, also where a constant is not applicable; 2 bad input; 3 the run diverged: what does not
need its weights is printed, the rest is not applicable; 130 interrupted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add = parser.add_argument
    add(
        "target",
        metavar="PROBLEM_OR_RUN",
        nargs="?",
        help="least-squares, quadratic, logistic, mlp, gpt, or a folder of staleproof train --out",
    )
    add("--constants", default=DEFAULT, metavar="NAMES", help=f"separated by commas, or all (default: {DEFAULT})")
    add("--norm", metavar="NAME", help="spectral, sign, row-l2, frobenius, layers (default: the problem's own)")
    add("--set", metavar="OPTION=VALUE", nargs="+", action="extend", default=[], help="options of the problem")
    add("--batch", type=integer(1, MOST_BATCH), default=1, metavar="N", help="problem: samples a gradient, at most "
        f"{MOST_BATCH}; times --draws at most 1000000 (default: 1)")  # fmt: skip
    add("--draws", type=integer(3, 100_000), metavar="N", help="gradients drawn (default: 64, of a run 32)")
    add("--seed", type=seed, default=0, metavar="N", help="of the draws and of Lanczos' start (default: 0)")
    add("--windows", type=integer(1, 100_000), metavar="N",
        help="run: most training windows that a full gradient is made of (default: 256)")  # fmt: skip
    add("--level", type=_level, default=0.95, metavar="P", help="of intervals (default: 0.95)")
    add("--list", action="store_true", help="print the problems with their options, and the estimators")
    add_json(parser)
    parser.epilog = EPILOG


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    if args.list:
        return _list(args.json)
    if not args.target:
        raise InputError("target: not given; give a problem (--list prints them) or the folder of a run")
    names = args.constants.split(",")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"constants: {twice!r} is given twice; give each name once")
    found, norm, lost = _of_run(args, names) if Path(args.target).is_dir() else _of_problem(args, names)
    result = {
        "target": args.target,
        "norm": norm,
        "seed": args.seed,
        "diverged": None if lost is None else {"step": lost.step, "reason": lost.reason},
        "constants": [constant.as_dict() for constant in found],
    }
    if args.json:
        emit_json(result)
    else:
        emit("\n".join([f"{args.target}, norm: {norm}", *(_line(constant) for constant in found)]))
    if lost is None:
        return EXIT_HOLDS
    note(f"staleproof estimate: the run diverged: {lost.reason}")
    return EXIT_RUN_FAILED


def _of_problem(args: argparse.Namespace, names: list[str]) -> tuple[list[Any], str, None]:
    from empirics.problem_constants import NAMES, ProblemConstants, problem_constants
    from empirics.problems.registry import NORM_OF, PROBLEMS, make_problem
    from empirics.run_constants import NAMES as OF_RUNS
    from pipeline.progress import Progress

    if args.windows is not None:
        raise InputError("windows: for runs only; a problem has its own samples")
    if args.target not in PROBLEMS:
        allowed = ", ".join(PROBLEMS)
        raise InputError(f"target: {args.target!r} is neither a folder nor one of {allowed}")
    if (of_a_run := next((name for name in names if name in OF_RUNS and name not in NAMES), None)) is not None:
        raise InputError(f"constants: {of_a_run!r} is of a run only; of a problem allowed are {', '.join(NAMES)}")
    options = dict(_assignment(text) for text in args.set)
    if len(options) != len(args.set):
        raise InputError("set: an option is given twice; give each once")
    norm = args.norm or NORM_OF[args.target]
    problem = make_problem(args.target, options)
    setting = ProblemConstants(problem, norm, args.batch, args.draws or 64, args.seed, args.level)
    progress = Progress("estimate")
    found = problem_constants(setting, list(NAMES) if names == ["all"] else names, progress)
    progress.finish(f"{len(found)} constants")
    return found, norm, None


def _of_run(args: argparse.Namespace, names: list[str]) -> tuple[list[Any], str, Any]:
    from empirics.run_constants import NAMES, RunConstants, run_constants
    from pipeline.progress import Progress

    if args.set or args.batch != 1:
        raise InputError("set, batch: for problems only; a run has its own")
    setting = RunConstants(Path(args.target), args.norm, args.draws or 32, args.level, args.windows or 256)
    own = setting.config.optimizer == "lmo"
    if own and args.norm is not None:
        raise InputError(f"norm: {args.norm!r}; a run of lmo has its own norm")
    progress = Progress("estimate")
    found = run_constants(setting, list(NAMES) if names == ["all"] else names, progress)
    progress.finish(f"{len(found)} constants")
    return found, setting.norm_words, setting.lost


def _list(as_json: bool) -> int:
    from empirics.elsewhere import ELSEWHERE
    from empirics.estimators import ESTIMATORS
    from empirics.problem_constants import NAMES
    from empirics.problems.registry import PROBLEMS, options_of
    from empirics.run_constants import NAMES as OF_RUNS

    problems = {name: options_of(name) for name in PROBLEMS}
    if as_json:
        estimators = {name: vars(estimator) for name, estimator in ESTIMATORS.items()}
        here = {"problem": NAMES, "run": OF_RUNS}
        emit_json({"problems": problems, "estimators": estimators, "constants": here, "elsewhere": ELSEWHERE})
        return EXIT_HOLDS
    lines = [f"{name:<14} {' '.join(f'{key}={value}' for key, value in problems[name].items())}" for name in problems]
    for name, estimator in ESTIMATORS.items():
        lines.append(f"{name:<18} {', '.join(estimator.measures)}: {estimator.interval}")
    lines.append(f"\n--constants of a problem: {', '.join(NAMES)}\n--constants of a run: {', '.join(OF_RUNS)}")
    lines.append("not here, but from")
    lines += [f"  {name:<20} {where}" for name, where in ELSEWHERE.items()]
    emit("\n".join(lines))
    return EXIT_HOLDS


def _line(constant: Any) -> str:
    if constant.value is None:
        return f"{constant.name:<13} not applicable: {constant.reason}"
    words = f"{constant.name:<13} {constant.value:.6g}"
    if constant.low is not None and (constant.low, constant.high) != (constant.value, constant.value):
        words += f" [{constant.low:.6g}, {constant.high:.6g}]"
        words += "" if constant.level is None else f" at {100 * constant.level:g} %"
    words += f"  {constant.how}; {constant.where}"
    return words + (f"; {constant.note}" if constant.note else "")


def _assignment(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise InputError(f"set: {text!r} is not allowed; give OPTION=VALUE, e.g. rows=4")
    return name.strip(), value


def _level(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give a number between 0 and 1")
    return value
