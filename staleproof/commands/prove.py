"""`staleproof prove [NAME]`: check proofs step by step; print the ledger of the axioms they rest on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from staleproof.arguments import add_json
from staleproof.bound_words import words_of
from staleproof.errors import EXIT_CLAIM_FAILED, EXIT_HOLDS
from staleproof.output import count, emit, emit_json, note

if TYPE_CHECKING:
    from theory.certificates.check import Checked
    from theory.checkers.check import ProofResult, StepResult

CERTIFICATES = "certificates"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="theorem, lemma or 'certificates' (default: all)")
    parser.add_argument("--steps", action="store_true", help="print every step with the counterexamples, too")
    parser.add_argument("--list", action="store_true", help="print the names and titles of what has a proof")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check and print."""
    from staleproof import certificates
    from theory.certificates.check import check_all as check_certificates
    from theory.checkers.check import check_all
    from theory.proofs import PROOFS, get_proof

    if args.list:
        titles = {name: proof.theorem.title for name, proof in PROOFS.items()}
        rest = {CERTIFICATES: certificates.TITLE}
        width = max(map(len, titles))
        text = "\n".join(f"{name:<{width}}  {title}" for name, title in (titles | rest).items())
        emit_json({"proofs": titles, **rest}) if args.json else emit(text)
        return EXIT_HOLDS
    checked = check_certificates() if args.name in (None, CERTIFICATES) else []
    if args.name == CERTIFICATES:
        chosen = []
    else:
        chosen = list(PROOFS.values()) if args.name is None else [get_proof(args.name)]
    results = check_all(chosen) if chosen else {}
    proved = all(result.proved for result in results.values()) and all(result.proved for result in checked)
    if args.json:
        emit_json(as_dict(results, checked))
    elif args.name == CERTIFICATES:
        emit("\n".join([*map(certificate_line, checked), certificates.line(checked)]))
    else:
        shown = list(results.values()) if args.name is None else [results[args.name]]
        emit("\n\n".join(proof_text(result, args.steps, words=args.name is not None) for result in shown))
        steps = len({id(step) for result in results.values() for step in result.steps})
        words = "all proved" if proved else "NOT all proved"
        if checked:
            emit(f"\n{certificates.line(checked)}")
        emit(f"\n{count(len(results), 'proof')}, {count(steps, 'step')}: {words}")
        if args.name is None:
            emit(unproved_line())
    for result in results.values():
        if not result.proved:
            note(f"staleproof prove: claim failed: {result.name}: {result.reason}")
    for certified in checked:
        if not certified.proved:
            note(f"staleproof prove: claim failed: {certified.name}: {certified.reason}")
    return EXIT_HOLDS if proved else EXIT_CLAIM_FAILED


def as_dict(results: dict[str, ProofResult], checked: list[Checked]) -> dict[str, Any]:
    """The results ready for JSON."""
    from staleproof import certificates

    rest, reported = not_machine_proved()
    found: dict[str, Any] = {
        "all_proved": all(r.proved for r in results.values()) and all(r.proved for r in checked),
        "not_machine_proved": rest,
        "not_machine_proved_as_reported": reported,
        "proofs": {name: result.as_dict() for name, result in results.items()},
    }
    if checked:
        found[CERTIFICATES] = certificates.as_dict(checked)
    return found


def not_machine_proved() -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The registered bounds without a proof value: (those that we or a paper state, those given as reported)."""
    from theory.proofs import PROOFS
    from theory.registry import BOUNDS

    rest = [bound for name, bound in BOUNDS.items() if name not in PROOFS]
    rows = [{"name": bound.name, "origin": bound.origin, "kind": bound.kind} for bound in rest]
    reported = [row for row in rows if row["origin"] == "as reported"]
    return [row for row in rows if row not in reported], reported


def unproved_line() -> str:
    """Which bounds no proof of these is about: their proofs are words in their modules, tested on runs."""
    rest, reported = not_machine_proved()
    names = ", ".join(row["name"] for row in rest) or "none"
    told = f"; as reported: {', '.join(row['name'] for row in reported)}" if reported else ""
    return f"not proved by machine, {count(len(rest) + len(reported), 'bound')}: {names}{told}"


def certificate_line(result: Checked) -> str:
    """One certificate: problem, both sides, verdict."""
    certificate = result.certificate
    sides = f"{float(certificate.lower.value):.7f} to {float(certificate.upper.value):.7f}"
    return f"{result.name}: {sides}, {'proved' if result.proved else 'NOT PROVED: ' + str(result.reason)}"


def proof_text(result: ProofResult, steps: bool, words: bool = False) -> str:
    """One proof: verdict, ledger, what its assumptions say and its steps where asked for."""
    lines = [f"{result.name}: {result.title}", f"  {'proved' if result.proved else 'NOT PROVED: ' + result.reason}"]
    lines[-1] += f", {count(len(result.steps), 'step')}"
    if result.rests_on:
        lines[-1] += f", resting on {', '.join(result.rests_on)}"
    book = result.ledger
    for title, uses in (("assumes", book.assumptions), ("requires", book.conditions), ("uses", book.mathematics)):
        if title == "requires" and not uses:
            continue
        width = max(map(len, uses), default=0)
        lines.append(f"  {title}")
        lines += [f"    {name:<{width}}  {places[0]}{_more(places)}" for name, places in uses.items()]
    if words:
        said = words_of(book.assumptions)
        lines += ["  in words", *(f"    {name}: {sentence}" for name, sentence in said.items())]
    if steps:
        lines.append("  steps")
        for step in result.steps:
            lines += [f"    {line}" for line in step_lines(step)]
    return "\n".join(lines)


def step_lines(step: StepResult) -> list[str]:
    """One step with the counterexamples to everything sharper and to everything with a premise less."""
    from theory.checkers.outcome import show

    lines = [f"{step.name}: {step.statement}"]
    if not step.proved:
        lines.append(f"  NOT PROVED: {step.reason}")
    for title, found in (("sharper", step.mutants), ("without", step.premises)):
        for what, values in found.items():
            lines.append(f"  {title} {what}: {'no counterexample' if values is None else 'false at ' + show(values)}")
    return lines


def _more(places: tuple[str, ...]) -> str:
    return "" if len(places) == 1 else f" and {len(places) - 1} more"
