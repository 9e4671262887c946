"""`staleproof budget RUN`: what each inequality of a theorem's proof lost on a run, and the bound in three editions."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from pipeline.options import integer
from staleproof.arguments import WholeNames, add_json, check_figure
from staleproof.errors import EXIT_BAD_INPUT, EXIT_CLAIM_FAILED, EXIT_HOLDS, EXIT_RUN_FAILED, InputError
from staleproof.output import emit, emit_json, note

EPILOG = """RUN is run again by the oracle, from its settings alone. Exit codes: 0 done, 1 a certified inequality or an
equality that is no definition is violated, or the oracle's losses are not the run's, 2 bad input or a theorem that is
not about the run, 3 the run diverged (docs/budget.md says when that is)."""
#: Theorems that have a budget, `empirics.budget.OWN`, without importing it for --help.
THEOREMS = (
    "delayed-lmo", "delayed-lmo-finite", "delayed-lmo-shifted", "delayed-lmo-median", "delayed-lmo-iterate",
    "delayed-lmo-momentum", "error-feedback", "error-feedback-any-delay", "error-feedback-at-x",
    "delayed-lmo-inexact", "delayed-lmo-inexact-shifted", "delayed-lmo-inexact-median",
    "delayed-lmo-inexact-momentum", "delayed-lmo-nesterov", "delayed-lmo-nesterov-shifted",
    "delayed-lmo-nesterov-median", "delayed-lmo-nesterov-momentum", "delayed-lmo-inexact-nesterov",
    "delayed-lmo-inexact-nesterov-shifted", "delayed-lmo-inexact-nesterov-median",
    "delayed-lmo-inexact-nesterov-momentum",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add = parser.add_argument
    add("run_folder", metavar="RUN", help="folder of a run of staleproof train --out DIR, optimizer lmo")
    add("--theorem", default=THEOREMS[0], metavar="NAME", help=f"{', '.join(THEOREMS)}; all: every one that is about "
        f"the run (default: {THEOREMS[0]})")  # fmt: skip
    add("--statements", action="store_true", help="print what each inequality and equality says under the table")
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
    parser.epilog, parser.formatter_class = EPILOG, WholeNames


def run(args: argparse.Namespace) -> int:
    """Run again, measure and print."""
    from empirics.budget import OWN
    from empirics.budget_kinds import refuted
    from empirics.budget_names import check_has_budget
    from empirics.run_budget import budgets_of_run
    from empirics.run_folder import read_run
    from pipeline import record
    from pipeline.data.corpus import load_corpus
    from pipeline.options import config_of
    from pipeline.progress import Progress

    if args.figure is not None:
        check_figure(args.figure)
    found = read_run(args.run_folder)
    recorded, summary = found.settings, found.summary
    config = config_of(argparse.Namespace(**{**recorded, "overwrite": False, "resume": False}))
    corpus = load_corpus(recorded["corpus"])
    if summary["corpus"]["sha256"] != corpus.sha256:
        then = summary["corpus"]["sha256"]
        raise InputError(f"run: the sha256 of its text was {then[:12]}..., now it is {corpus.sha256[:12]}...")
    names = list(OWN) if args.theorem == "all" else [args.theorem]
    for name in names:
        check_has_budget(name)
    progress = Progress("budget")
    budgets, again = budgets_of_run(
        config,
        corpus.text,
        names,
        args.windows,
        args.series,
        lambda k: progress(k / config.steps, f"step {k}/{config.steps}"),
        None if found.lost is None else found.lost.reason,
    )
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
        emit(_latex(shown, args) if args.latex and again is not None else _words(shown, budgets, args))
    if not about:
        note(f"staleproof budget: theorem: {_not_about(budgets, args.json)}")
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


def _gap(a: Any, b: float) -> float:
    a = float(a)
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) if math.isfinite(a - b) else math.inf


def _not_about(budgets: list[dict[str, Any]], as_json: bool) -> str:
    """In one line, without what stdout has said in words."""
    name, first = budgets[0]["theorem"], budgets[0]["reasons"][0]
    if len(budgets) > 1:
        return f"all: none is about this run{f'; {name}: {first}' if as_json else ''}"
    return f"{name} is not about this run{f'; {first}' if as_json else ', for the reason above'}"


def _words(shown: list[dict[str, Any]], budgets: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """The budgets, and the theorems of all that are left out since they are not about the run."""
    out = [describe(b, args.statements) for b in shown]
    if hidden := [b["theorem"] for b in budgets if b not in shown]:
        out.append(f"not about this run: {', '.join(hidden)} (--theorem NAME gives the reason)")
    return "\n\n".join(out)


def describe(found: dict[str, Any], statements: bool = False) -> str:
    """The budget in words; statements: with what each fact says."""
    lines = [f"{found['title']}: {found['status']}"]
    if found["status"] == "diverged":
        return lines[0]  # stderr has the reason, with the exit code
    if found["status"] != "complete":
        return "\n".join([*lines, *(f"  {reason}" for reason in found["reasons"])])
    objective = found["objective"]
    lines.append(f"{found['steps']} steps; f is the mean over {objective['windows']} windows ({objective['what']})")
    lines.append("\nconstants")
    lines += [f"  {c['name']:<7} {_number(c['value'])}  {c['how']}{_in_edition(c)}" for c in found["constants"]]
    lines.append(f"\nused of the right side, least, median and most over the steps; L is {found['smoothness_used']}")
    width = max(len(i["place"]) for i in found["inequalities"])
    for i in found["inequalities"]:
        if i["kind"] not in ("equality", "definition"):
            kind = i["kind"] if i["evidence"] or i["kind"] != "certified" else "certified, of any vectors"
            wrong = f"  VIOLATED at {i['violations']}" if i["violations"] else ""
            lines.append(f"  {i['place']:<{width}} {i['min']:8.4f} {i['median']:8.4f} {i['max']:8.4f}  {kind}{wrong}")
    lines += _equalities(found)
    lines += _notes(found["inequalities"], statements)
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


def _in_edition(constant: dict[str, Any]) -> str:
    edition = constant.get("edition", "all")
    if edition == "all":
        return ""
    return f"; {'Delta0 of the' if constant['name'] == 'f_star' else 'of the'} {edition} edition"


def _notes(facts: list[dict[str, Any]], statements: bool) -> list[str]:
    """What a negative number means, where there is one, and what every row says, if that is asked for."""
    out = []
    if any(i["min"] < 0 for i in facts):
        out.append(
            "below 0: what can have either sign (a change of f, an inner product) stands on the left and was in favour "
            "of the inequality, which used nothing of its right side there"
        )
    return out + (["\nwhat they say", *(f"  {i['place']}: {i['statement']}" for i in facts)] if statements else [])


def _number(value: float | None, sign: str = "") -> str:
    return f"{'-':>11}" if value is None else f"{value:{sign}11.5g}"
