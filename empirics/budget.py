"""The error budget of a run: what each inequality of a theorem's proof lost, and three editions of the bound.

    waterfall   measured average
                <= progress and the errors that the momentum had           (pathwise)
                <= those errors in the norms of their parts, as measured   (pathwise; "measured terms")
                -> constants of the trajectory in the theorem              (noise by its bound in expectation)
                -> constants that hold everywhere                          (worst case)
What a row of a proof can say, its kind, is decided for each by `budget_kinds`; the editions are `budget_editions`.
An edition is `certified` where L is exact and it is pathwise, or the theorem itself where there is no noise either;
else `report only`. One noisy run is one sample of a theorem in expectation: never certified. A run that has diverged
has no averages, and a theorem whose assumptions it breaks no numbers.
"""

from __future__ import annotations

import math
from typing import Any

from empirics.applicability import RunFacts, reasons
from empirics.budget_editions import Constants, Editions
from empirics.budget_kinds import counts
from empirics.budget_names import OWN
from empirics.budget_steps import Scales, facts_of, use
from empirics.errors import InputError
from empirics.lmo_recorder import LMORecorder
from empirics.reference_recording import too_old
from theory.assumptions import ASSUMPTIONS
from theory.bound import Bound
from theory.proofs import PROOFS
from theory.registry import get_bound

__all__ = ["OWN", "Constants", "budget"]
NONE_KNOWN = Constants()


def budget(
    theorem: str,
    recorder: LMORecorder,
    facts: RunFacts,
    constants: Constants = NONE_KNOWN,
    eps: float = 2.0**-52,
    series: bool = False,
) -> dict[str, Any]:
    """The budget of one recorded run under a theorem of `OWN`, JSON-ready; ``eps``: of the run's own precision.

    series: with the utilisation at each step. Raises InputError for a theorem that it cannot take apart, and for a
    recorder that has not seen every step with full gradients.
    """
    if theorem not in OWN:
        raise InputError(f"theorem: {theorem!r}; allowed are {', '.join(OWN)}")
    bound = get_bound(theorem)
    head: dict[str, Any] = {"theorem": theorem, "title": bound.title, "status": "complete", "reasons": []}
    s = recorder.reference
    if why := reasons(bound, facts) or (too_old(bound, facts) if s is None else []):
        return head | {"status": "not applicable", "reasons": why}
    if not recorder.complete:
        raise InputError("recorder: every step with full gradients is needed; allowed is every = 1 with an objective")
    if "nesterov" in bound.assumptions and not recorder.nesterov:
        raise InputError(f"recorder: nesterov = False; allowed is True for {theorem}")
    if "s" in bound.optional and s is None:
        raise InputError(f"recorder: reference = None; allowed is the age s of {theorem}")
    recorder.flush()
    if (lost := _lost(recorder)) is not None:
        return head | {"status": "diverged", "reasons": [f"not finite at step {lost}"]}
    if (against := _uphill(bound, recorder)) is not None:
        return head | {"status": "not applicable", "reasons": [against]}
    if OWN[theorem] == "grad_norm_tau_back" and recorder.rows.seen <= facts.tau:
        why = [f"K: the run has {recorder.rows.seen} steps; the theorem needs more than the delay of {facts.tau}"]
        return head | {"status": "not applicable", "reasons": why}
    run = Editions(bound, recorder, facts, constants)
    L = "L" in constants.exact
    values = run.columns | run.numbers | {"L": constants.values["L"] if L else run.trajectory["L"]}
    scales = Scales(run.f_scale, run.grad_scale, run.x_scale, recorder.eta, eps)
    used = [(fact, use(fact, values, scales)) for fact in facts_of(PROOFS[theorem])]
    rows = [u.summary(L, series) for _, u in used if u is not None]
    return head | {
        "steps": run.of,
        "stride": recorder.rows.stride,
        "settings": _settings(facts, recorder, run),
        "constants": run.described(),
        "inequalities": rows,
        "counts": counts(rows),
        "not_recorded": [fact.place for fact, u in used if u is None],
        "violations": sum(row["violations"] for row in rows),
        "smoothness_used": "exact" if L else "largest used on the trajectory",
        "editions": run.editions(),
        "waterfall": run.waterfall(),
    }


def _settings(facts: RunFacts, recorder: LMORecorder, run: Editions) -> dict[str, Any]:
    """What runs that differ in their seed alone have in common; E0 and f at the start may depend on it."""
    return {
        **{name: run.numbers[name] for name in ("eta", "alpha", "tau", "K", "rho")},
        "norms": sorted({norm for norm, _ in recorder.norm.layers.values()}),
        "nesterov": recorder.nesterov,
        "reference": recorder.reference,
        **{name: getattr(facts, name) for name in ("optimizer", "correction", "form", "coefficient", "whole")},
        "constants": dict(run.constants.values),
    }


def _lost(recorder: LMORecorder) -> int | None:
    """A step whose objective or norms are not finite, the first that was kept; None if there is none."""
    names = ("f_now", "f_next", "grad_norm", "momentum_norm", "step_norm")
    totals = recorder.rows.totals
    if all(math.isfinite(totals[name].low) and math.isfinite(totals[name].high) for name in names):
        return None
    rows = [*recorder.rows.kept, recorder.rows.last]
    return next((int(r["k"]) for r in rows if not all(math.isfinite(r[n]) for n in names)), recorder.steps - 1)


def _uphill(bound: Bound, recorder: LMORecorder) -> str | None:
    """Why no r_lo > 0 is that of the run: a direction that has nothing, or less, along what the oracle is called at."""
    low = recorder.rows.totals["oracle_quality"].low
    if "inexact-lmo" not in bound.assumptions or low > 0:
        return None
    at = next((f" at step {int(row['k'])}" for row in recorder.rows.kept if row["oracle_quality"] == low), "")
    return f"inexact-lmo: r_lo is {low:.3g}{at}, not above 0; it assumes that {ASSUMPTIONS['inexact-lmo']}"
