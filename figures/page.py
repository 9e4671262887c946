"""The HTML page: one file, no script, nothing loaded from anywhere.

The content security policy in its head forbids every request, so the page shows the same on a machine without
network and in ten years.
"""

from __future__ import annotations

import base64
import math
from pathlib import Path
from urllib.parse import quote

from figures import style
from figures.formula import formula_html
from figures.page_style import CSS
from figures.results import SECTIONS, Results, Row, child, number, rows, text, whole
from figures.style import Drawing
from figures.table import Table, table_html
from figures.tables import claims, outcome_cell, value_and_limit
from figures.text import html, html_interval, html_number

PARTS: dict[str, tuple[str, str]] = {
    "delays": (
        "Delays of the schedules",
        "How old is a gradient when it is used? Three independent witnesses must agree: the closed form, the "
        "enumeration of the schedule, and, where one was made, the trace of a run on real processes.",
    ),
    "quadratic": (
        "Exact theory on noisy quadratics",
        "On a quadratic the whole expected loss curve of a delayed method can be predicted. The real optimizer code "
        "must follow it within sampling error, and a delay that is wrong by one must show.",
    ),
    "proofs": (
        "Proofs",
        "Each theorem is proved step by step by a solver, for all values of its symbols; each constant a few per cent "
        "sharper, and each axiom less, is refuted by a counterexample.",
    ),
    "certified": (
        "Certified inequalities",
        "On matrix least squares every constant is known exactly, so each inequality of the proofs can be checked at "
        "every step, and small instances show that the constants cannot be made smaller.",
    ),
    "empirics": (
        "Measurements where the truth is known",
        "Estimators against closed forms; each theorem taken apart on a run, so that every step of its proof shows "
        "what it gave away; every inequality about old blocks with exact expectations; losses predicted and measured.",
    ),
    "training": (
        "Real training",
        "A small language model trained by the asynchronous pipeline against the same training without delay: the "
        "loss gap, what error feedback wins back, and the bound with constants measured on this very run.",
    ),
}
PART_TABLES: dict[str, tuple[str, ...]] = {
    "delays": ("delays", "systems"),
    "quadratic": ("quadratic", "stability"),
    "proofs": ("proofs", "ledger"),
    "certified": ("certified", "lemmas", "theorems", "enumeration", "tight"),
    "empirics": ("known_constants", "budget_levels", "blocks"),
    "training": ("gap", "oracle", "diagnostics", "constants", "slack", "used"),
}


def theorem_of(results: Results) -> Row:
    """The theorem to state at the top: the training run's, else the first certified run's; empty if none."""
    bound = child(results.section("training"), "bound")
    if text(bound, "latex"):
        return {**bound, "bound": bound.get("value")}
    for run in rows(results.section("certified"), "runs"):
        if text(child(run, "theorem"), "latex"):
            return child(run, "theorem")
    return {}


def verdict_of(results: Results) -> tuple[str, str, str]:
    """Tone, headline and one sentence: fails beats incomplete beats holds; claims are counted, not believed."""
    found = rows(results.claims, "claims")
    gating = [claim for claim in found if claim.get("gates") is True]
    failed = [claim for claim in gating if text(claim, "outcome") == "fails"]
    missing = [claim for claim in gating if text(claim, "outcome") == "missing"]
    held = sum(text(claim, "outcome") == "holds" for claim in gating)
    state, said = text(results.status, "state", "unknown"), text(results.claims, "verdict")
    if failed or said == "fails":
        count = len(failed)
        names = (
            f"{count} of {len(gating)} gating claims {'fails' if count == 1 else 'fail'}"
            if count
            else "See claims.json"
        )
        unfinished = "" if results.finished else f" The run itself is unfinished (state: {state})."
        return "bad", "Verdict: fails", names + "." + unfinished
    if not results.finished or missing or said == "incomplete" or not found:
        why = [f"state of the run: {state}"] if not results.finished else []
        why += [f"{len(missing)} gating claims are missing"] if missing else []
        why += ["no claims were recorded"] if not found else []
        why += [f"the claims file says {said}"] if said == "incomplete" and not why else []
        return "warn", "Unfinished result", f"{held} gating claims hold so far; {'; '.join(why)}."
    return "good", "Verdict: holds", f"All {held} gating claims hold."


def _figure(drawing: Drawing, png: bytes) -> str:
    data = base64.b64encode(png).decode("ascii")
    files = " · ".join(f"<a href='figures/{drawing.name}.{end}'>{end.upper()}</a>" for end in ("pdf", "png", "csv"))
    width = round(drawing.figure.get_figwidth() * 135)
    return (
        f"<figure id='figure-{drawing.name}'><img src='data:image/png;base64,{data}' style='width:{width}px' "
        f"alt='{html(drawing.title)}. {html(drawing.words)}'><figcaption><b>{html(drawing.title)}.</b> "
        f"{html(drawing.words)} <span class='quiet'>{files}</span></figcaption></figure>"
    )


def _theorem(results: Results) -> str:
    theorem = theorem_of(results)
    if not theorem:
        return "<p class='absent'>No theorem is recorded in the result files yet.</p>"
    metric, terms = text(theorem, "metric_latex"), rows(theorem, "terms")
    colours = [style.term_colour(text(term, "name", "?"), i) for i, term in enumerate(terms)]
    sources = [text(term, "latex") for term in terms]
    if terms and all(style.parses(source) for source in (metric, *sources)):
        pieces = [
            f"<span class='term' style='border-color:{colour}'>{formula_html(source, display=True)}</span>"
            for source, colour in zip(sources, colours, strict=True)
        ]
        statement = f"{formula_html(metric, display=True)} ≤ " + " + ".join(pieces)
    else:
        statement = formula_html(text(theorem, "latex"), display=True)
    items = [
        f"<li><span class='swatch' style='background:{colour}'></span>"
        f"{html(style.TERM_NAMES.get(text(term, 'name'), text(term, 'name', '?')))} "
        f"{html_number(number(term.get('value')))}</li>"
        for term, colour in zip(terms, colours, strict=True)
    ]
    measured = theorem.get("measured")
    if isinstance(measured, dict):
        shown = html_interval(*(number(measured.get(key)) for key in ("value", "low", "high")))
    else:
        shown = html_number(number(measured))
    title = text(theorem, "title", text(theorem, "theorem", text(theorem, "name")))
    numbers = f"<p>On this run: measured {shown}, bound {html_number(number(theorem.get('bound')))}.</p>"
    note = f"<p class='meta'>{html(text(theorem, 'note'))}</p>" if text(theorem, "note") else ""
    return (
        f"<div class='theorem'><h3>{html(title)}</h3><div class='statement'>{statement}</div>"
        f"<ul class='terms'>{''.join(items)}</ul>{numbers}{note}</div>"
    )


def _evidence(results: Results, claim: Row) -> str:
    evidence = text(claim, "evidence")
    if not evidence:
        return ""
    try:
        target = (results.folder / evidence).resolve()
        inside = target.is_file() and target.is_relative_to(results.folder.resolve())
    except (OSError, ValueError):
        inside = False
    if inside and not Path(evidence).is_absolute():
        return f" Evidence: <a href='./{quote(evidence)}'>{html(evidence)}</a>."
    return f" Evidence: {html(evidence)}."


def _failures(results: Results) -> str:
    found = [claim for claim in claims(results) if text(claim, "outcome") == "fails"]
    if not found:
        return ""
    items = []
    for claim in found:
        digits = [getattr(c, "value", math.nan) for c in value_and_limit(claim)]
        pair = [html_number(x, getattr(c, "digits", 4)) for x, c in zip(digits, value_and_limit(claim), strict=True)]
        gate = "" if claim.get("gates") is True else " <span class='quiet'>(does not gate)</span>"
        place = f"; place: {html(text(claim, 'place'))}" if text(claim, "place") else ""
        items.append(
            f"<li><span class='bad'>{html(text(claim, 'name'))}</span> [{html(text(claim, 'kind'))}]{gate}: "
            f"{html(text(claim, 'statement'))}<br>value {pair[0]}, limit {pair[1]}{place}."
            f"{_evidence(results, claim)}</li>"
        )
    return f"<div class='failures' id='failures'><h3>Failing claims</h3><ul>{''.join(items)}</ul></div>"


def _joint(results: Results) -> str:
    joint = child(results.section("quadratic"), "joint")
    if not joint:
        return ""
    smallest, threshold = number(joint.get("smallest_p")), number(joint.get("threshold"))
    held = smallest >= threshold
    word = "<span class='good'>not rejected</span>" if held else "<span class='bad'>rejected</span>"
    return (
        f"<p>One joint test over {whole(joint, 'pairs')} pairs of prediction and measurement, false alarm at most "
        f"{html_number(number(joint.get('false_alarm')))}: smallest p {html_number(smallest)}, threshold "
        f"{html_number(threshold)}, {word}.</p>"
    )


def _model(results: Results) -> str:
    training = results.section("training")
    model = child(training, "model")
    if not model:
        return ""
    arms = rows(training, "arms")
    where: dict[str, int] = {}
    for arm in arms:
        where[text(arm, "where", "?")] = where.get(text(arm, "where", "?"), 0) + 1
    states = [text(arm, "state") for arm in arms]
    unfinished = sum(state != "complete" for state in states)
    counts = ", ".join(f"{count} in {html(name)}" for name, count in where.items())
    lost = f" <span class='warn'>{unfinished} of them diverged or are missing.</span>" if unfinished else ""
    return (
        f"<p>Model: {whole(model, 'parameters'):,} parameters, {whole(model, 'layers')} layers, width "
        f"{whole(model, 'width')}, {whole(model, 'heads')} heads, context {whole(model, 'context')}; "
        f"{whole(training, 'stages')} stages, {whole(training, 'microbatches')} microbatches a step, "
        f"{whole(training, 'steps')} steps of {whole(training, 'tokens_per_step')} tokens. {len(arms)} arms: "
        f"{counts}.{lost}</p>"
    )


def _part(results: Results, name: str, drawn: list[tuple[Drawing, bytes]], tables: dict[str, Table]) -> str:
    title, words = PARTS[name]
    state = text(child(results.status, "sections"), name)
    parts = [f"<section id='{name}'><h2>{title}</h2><p>{words}</p>"]
    if f"{name}.json" in results.unreadable:
        reason = html(results.unreadable[f"{name}.json"])
        parts.append(f"<p class='absent'>Not available: {name}.json cannot be read ({reason}).</p></section>")
        return "".join(parts)
    if name not in results.sections:
        why = f" State of this part: {html(state)}." if state else ""
        parts.append(f"<p class='absent'>Not available: there is no {name}.json.{why}</p></section>")
        return "".join(parts)
    if state and state != "complete":
        parts.append(f"<p class='banner warn'>This part is marked {html(state)}; what follows may be partial.</p>")
    parts.append({"quadratic": _joint, "training": _model}.get(name, lambda _: "")(results))
    parts += [_figure(drawing, png) for drawing, png in drawn]
    for table_name in PART_TABLES[name]:
        if table_name in tables:
            parts.append(table_html(tables[table_name], formula_html))
    if not drawn and not any(table_name in tables for table_name in PART_TABLES[name]):
        parts.append(f"<p class='absent'>{name}.json has nothing to show.</p>")
    return "".join(parts) + "</section>"


def _provenance(results: Results) -> str:
    status = results.status
    corpus, machine, versions = (child(status, key) for key in ("corpus", "machine", "versions"))
    seconds = number(status.get("wall_seconds"))
    entries = {
        "command": text(status, "command"),
        "preset": text(status, "preset"),
        "seed": text(status, "seed"),
        "state": text(status, "state", "unknown"),
        "error": text(status, "error"),
        "started": text(status, "started"),
        "finished": text(status, "finished", "not finished"),
        "wall time": f"{seconds:.1f} s" if math.isfinite(seconds) else "",
        "machine": ", ".join(f"{key} {machine[key]}" for key in machine),
        "versions": ", ".join(f"{key} {versions[key]}" for key in versions),
        "corpus": ", ".join(f"{key} {corpus[key]}" for key in corpus if corpus[key] not in (None, "")),
    }
    items = "".join(f"<dt>{name}</dt><dd>{html(value)}</dd>" for name, value in entries.items() if value)
    return f"<section id='provenance'><h2>How this was made</h2><dl>{items}</dl>"


def build(
    results: Results,
    drawn: dict[str, list[tuple[Drawing, bytes]]],
    tables: dict[str, Table],
    files: list[str],
) -> str:
    """The whole page.

    Args:
        drawn: section name -> its figures with their PNG; tables: by name; files: relative paths written beside.
    """
    tone, headline, sentence = verdict_of(results)
    status = results.status
    title = "Verification report"
    error = f"<p>Error: {html(text(status, 'error'))}</p>" if text(status, "error") else ""
    claims_file = ""
    if "claims.json" in results.unreadable:
        claims_file = f"<p>claims.json cannot be read ({html(results.unreadable['claims.json'])}).</p>"
    links = "".join(f"<a href='#{name}'>{name.capitalize()}</a>" for name in SECTIONS)
    table = {name: table_html(value, formula_html) for name, value in tables.items()}
    listing = "".join(f"<li><a href='./{quote(path)}'>{html(path)}</a></li>" for path in files)
    missing = [claim for claim in claims(results) if text(claim, "outcome") == "missing"]
    missing_list = "".join(
        f"<li>{html(text(claim, 'name'))}: {html(text(claim, 'statement'))} "
        f"<span class='warn'>{html(outcome_cell(claim).word)}</span></li>"
        for claim in missing
    )
    return "".join(
        [
            "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>",
            "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; img-src data:; "
            "style-src 'unsafe-inline'\">",
            "<meta name='viewport' content='width=device-width,initial-scale=1'>",
            f"<title>{title}: {html(headline)}</title><style>{CSS}</style></head><body>",
            f"<header class='top'><h1>{title}</h1><p class='meta'>preset {html(text(status, 'preset', '?'))}, seed "
            f"{html(text(status, 'seed', '?'))}, started {html(text(status, 'started', '?'))}</p>",
            f"<div class='banner {tone}' id='verdict'><b>{headline}</b><p>{html(sentence)}</p>{error}{claims_file}",
            "</div>",
            "</header><nav><div><a href='#verdict'>Verdict</a><a href='#theorem'>Theorem</a>",
            links,
            "<a href='#all-claims'>All claims</a><a href='#provenance'>Provenance</a></div></nav><main>",
            _failures(results),
            "<h2 id='theorem'>The theorem</h2>",
            _theorem(results),
            "<h2>The verdict</h2>",
            table.get("verdict", "<p class='absent'>No claims are recorded yet.</p>"),
            f"<h3>Missing claims</h3><ul>{missing_list}</ul>" if missing else "",
            *(_part(results, name, drawn.get(name, []), tables) for name in SECTIONS),
            "<section id='all-claims'><h2>All claims</h2>",
            f"<details><summary>{len(rows(results.claims, 'claims'))} claims</summary>{table['claims']}</details>"
            if "claims" in table
            else "<p class='absent'>No claims are recorded yet.</p>",
            "</section>",
            _provenance(results),
            f"<details><summary>Files of this report</summary><ul class='files'>{listing}</ul></details></section>",
            "</main></body></html>\n",
        ]
    )
