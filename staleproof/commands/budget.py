"""`staleproof budget RUN`: what each inequality of a theorem's proof lost on a run, and the bound in three editions."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from pipeline.options import integer
from staleproof.arguments import add_json, check_figure
from staleproof.errors import EXIT_BAD_INPUT, EXIT_CLAIM_FAILED, EXIT_HOLDS, EXIT_RUN_FAILED, InputError
from staleproof.output import emit, emit_json, note

EPILOG = """RUN is run again by the oracle, from its settings alone. Exit codes: 0 done, 1 a certified inequality or an
equality that is no definition is violated, or the oracle's losses are not the run's, 2 bad input or a theorem that is
not about the run, 3 the run diverged or did not end."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add = parser.add_argument
    add("run_folder", metavar="RUN", help="folder of a run of staleproof train --out DIR, optimizer lmo")
    add("--theorem", default="delayed-lmo", metavar="NAME", help="delayed-lmo (default), delayed-lmo-shifted, "
        "delayed-lmo-momentum, delayed-lmo-finite, delayed-lmo-inexact..., error-feedback...; all: every one that is "
        "about the run")  # fmt: skip
    add(
        "--windows",
        type=integer(1, 100_000),
        default=256,
        metavar="N",
        help="most training windows that the objective is the mean of (default: 256); with fewer than all the batches "
        "are not unbiased for it, and only what is pathwise has a number",
    )
    add("--series", action="store_true", help="with --json: the utilisation at each step too")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--latex", action="store_true", help="print the tables in LaTeX (booktabs, longtable, amsmath)")
    add_json(form)
    add("--figure", metavar="FILE", help="draw the waterfall (.png, .pdf or .svg), its CSV beside it")
    parser.epilog = EPILOG


def run(args: argparse.Namespace) -> int:
    """Run again, measure and print."""
    from empirics.budget import OWN
    from empirics.budget_kinds import refuted
    from empirics.run_budget import budgets_of_run
    from pipeline import record
    from pipeline.data.corpus import load_corpus
    from pipeline.options import config_of
    from pipeline.progress import Progress

    if args.figure is not None:
        check_figure(args.figure)
    recorded, summary = _read(args.run_folder)
    config = config_of(argparse.Namespace(**{**recorded, "overwrite": False, "resume": False}))
    corpus = load_corpus(recorded["corpus"])
    if summary["corpus"]["sha256"] != corpus.sha256:
        then = summary["corpus"]["sha256"]
        raise InputError(f"run: the sha256 of its text was {then[:12]}..., now it is {corpus.sha256[:12]}...")
    progress = Progress("budget")
    names = list(OWN) if args.theorem == "all" else [args.theorem]
    budgets, again = budgets_of_run(
        config,
        corpus.text,
        names,
        args.windows,
        args.series,
        lambda k: progress(k / config.steps, f"step {k}/{config.steps}"),
    )
    if (where := record.divergence(_floats(summary))) is not None:
        budgets = [_diverged(b, where) for b in budgets]
    head: dict[str, Any] = {"run": args.run_folder}
    if again is not None:
        progress.finish(f"{config.steps} steps")
        pairs = zip(summary["losses"], again.losses, strict=True)
        head |= {"largest_loss_difference": max(_gap(a, b) for a, b in pairs), "reordered": config.sums_reordered}
    about = [b for b in budgets if b["status"] != "not applicable"]
    shown = about if args.theorem == "all" and about else budgets
    if args.figure is not None and again is not None:
        head["files"] = _draw(shown, args)
    if args.json:
        emit_json(head | ({"theorems": budgets} if args.theorem == "all" else budgets[0]))
    else:
        emit(_latex(shown, args) if args.latex and again is not None else "\n\n".join(map(describe, shown)))
    if not about:
        note(f"staleproof budget: theorem: {args.theorem} is not about this run; {budgets[0]['reasons'][0]}")
        return EXIT_BAD_INPUT
    if lost := [b["reasons"][0] for b in about if b["status"] == "diverged"]:
        note(f"staleproof budget: the run diverged: {lost[0]}")
        return EXIT_RUN_FAILED
    broken = [place for b in about for place in refuted(b["inequalities"])]
    for place in broken[:6]:
        note(f"staleproof budget: claim failed: {place} does not hold at every step")
    allowed = record.REORDERED * max(map(abs, again.losses)) if config.sums_reordered and again else 0.0
    if head["largest_loss_difference"] > allowed:
        note(f"staleproof budget: claim failed: losses differ from the run's by {head['largest_loss_difference']:g}")
        return EXIT_CLAIM_FAILED
    return EXIT_CLAIM_FAILED if broken else EXIT_HOLDS


def _draw(shown: list[dict[str, Any]], args: argparse.Namespace) -> list[str]:
    from figures import style, waterfall

    with style.context():
        drawings = waterfall.draw_budgets(shown, args.run_folder, waterfall.NAME)
        return [str(path) for drawing in drawings for path in style.save_as(drawing, Path(args.figure))]


def _latex(shown: list[dict[str, Any]], args: argparse.Namespace) -> str:
    from figures.table import table_latex
    from figures.tables_empirics import levels_table, used_table

    run = Path(args.run_folder).name
    tables = [levels_table([(b, run) for b in shown]), *(used_table(b, f"used-{b['theorem']}") for b in shown)]
    return "\n".join(table_latex(table) for table in tables if table is not None)


def _diverged(found: dict[str, Any], where: str) -> dict[str, Any]:
    """The budget of a run whose own loss has stopped being finite: none."""
    if found["status"] != "complete":
        return found
    kept = {name: found[name] for name in ("theorem", "title")}
    return kept | {"status": "diverged", "reasons": [f"the loss is not finite {where}"]}


def _read(folder: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and summary of a run that has come to its end."""
    from pipeline.json_io import read_json

    if not Path(folder).is_dir():
        raise InputError(f"run: {folder!r} is no folder; give one of staleproof train --out DIR")
    try:
        status = read_json(Path(folder) / "status.json")
        state, settings = status["state"], status["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"run: {folder!r} has no status.json of a training run") from None
    if state != "complete":
        raise InputError(f"run: {folder!r} is {state}, not complete; a run that stopped has no budget")
    try:
        summary = read_json(Path(folder) / "run.json")
        settings["steps"], summary["losses"], summary["corpus"]["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"run: {folder!r} has no run.json of staleproof train") from None
    return settings, summary


def _floats(summary: dict[str, Any]) -> dict[str, Any]:
    """Words that stand for numbers in JSON as numbers."""
    return summary | {
        "losses": [float(loss) for loss in summary["losses"]],
        "held_out_loss": float(summary["held_out_loss"]),
    }


def _gap(a: Any, b: float) -> float:
    a = float(a)
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) if math.isfinite(a - b) else math.inf


def describe(found: dict[str, Any]) -> str:
    """The budget in words."""
    lines = [f"{found['title']}: {found['status']}"]
    if found["status"] != "complete":
        return "\n".join([*lines, *(f"  {reason}" for reason in found["reasons"])])
    objective = found["objective"]
    lines.append(f"{found['steps']} steps; f is the mean over {objective['windows']} windows ({objective['what']})")
    lines.append("\nconstants")
    lines += [f"  {c['name']:<7} {_number(c['value'])}  {c['how']}" for c in found["constants"]]
    lines.append(f"\nused of the right side, least, median and most over the steps; L is {found['smoothness_used']}")
    width = max(len(i["place"]) for i in found["inequalities"])
    for i in found["inequalities"]:
        if i["kind"] not in ("equality", "definition"):
            kind = i["kind"] if i["evidence"] or i["kind"] != "certified" else "certified, of any vectors"
            wrong = f"  VIOLATED at {i['violations']}" if i["violations"] else ""
            lines.append(f"  {i['place']:<{width}} {i['min']:8.4f} {i['median']:8.4f} {i['max']:8.4f}  {kind}{wrong}")
    lines += _equalities(found)
    lines.append("\nwaterfall")
    lines += [
        f"  {w['level']:<34} {_number(w['value'])} {_number(w['added'], '+')}  {w['how']}" for w in found["waterfall"]
    ]
    lines.append("\nthe bound's terms")
    editions = found["editions"]
    names = list(editions["measured"]["terms"])
    lines.append("  " + " " * 14 + "".join(f"{name:>14}" for name in editions))
    for name in names:
        cells = (_number(e["terms"][name] if e["terms"] else None) for e in editions.values())
        lines.append(f"  {name:<14}" + "".join(f"{cell:>14}" for cell in cells))
    lines += [f"  {name}: {e['reason']}" for name, e in editions.items() if "reason" in e]
    return "\n".join(lines)


def _equalities(found: dict[str, Any]) -> list[str]:
    """Equalities and definitions in words, and how much of all rows is evidence."""
    lines, n = [], found["counts"]
    for kind, words in (("equality", "equalities"), ("definition", "definitions, which cannot fail")):
        mine = [i for i in found["inequalities"] if i["kind"] == kind]
        broken = ", ".join(i["place"] for i in mine if i["violations"])
        lines.append(f"{words}: {len(mine)}, broken: {broken or 'none'}")
    return [
        *lines,
        f"evidence: {n['evidence']} of {n['rows']} rows; the others hold by construction ({n['by construction']}), by "
        f"definition ({n['definition']}) or of any vectors ({n['certified'] + n['equality'] - n['evidence']})",
    ]


def _number(value: float | None, sign: str = "") -> str:
    return f"{'-':>11}" if value is None else f"{value:{sign}11.5g}"
