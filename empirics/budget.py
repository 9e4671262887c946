"""The error budget of a run: what each inequality of a theorem's proof lost, and three editions of the bound.

    waterfall   measured average
                <= progress and the errors that the momentum had           (pathwise)
                <= those errors in the norms of their parts, as measured   (pathwise; "measured terms")
                -> constants of the trajectory in the theorem              (noise by its bound in expectation)
                -> constants that hold everywhere                          (worst case)
Constants of the trajectory: L is the largest smoothness that any step of the proof used on this path, so every pathwise
step holds with it by construction; sigma the root mean square of the noise; f_* the last objective. Kinds: `certified`
where L is exact, the statement pathwise and every step recorded, or the theorem itself where there is no noise either;
else `report only`. One noisy run is one sample of a theorem in expectation: never certified. A run that has diverged
has no averages, and a theorem whose assumptions it breaks no numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from empirics.applicability import RunFacts, reasons
from empirics.budget_steps import Scales, facts_of, use
from empirics.errors import InputError
from empirics.lmo_recorder import LMORecorder
from empirics.statistics import student_interval
from theory.bound import Bound
from theory.errors import InputError as TheoryInputError
from theory.lmo.inexact import INEXACT, INEXACT_NESTEROV
from theory.lmo.nesterov import NESTEROV_BOUNDS
from theory.proofs import PROOFS
from theory.registry import get_bound

OWN = {
    "delayed-lmo": "grad_norm",
    "delayed-lmo-finite": "grad_norm",
    "delayed-lmo-shifted": "taken_norm",
    "delayed-lmo-momentum": "momentum_norm",
    "error-feedback": "grad_norm",
    "error-feedback-any-delay": "grad_norm",
    "error-feedback-at-x": "grad_norm_at_x",
} | {bound.name: {"": "grad_norm", "-shifted": "taken_norm", "-momentum": "momentum_norm"}.get(form, "")
     for form, bound in INEXACT.items() if form != "-median"} | {
    bound.name: {"": "grad_norm", "-shifted": "taken_norm", "-momentum": "called_norm"}[form]
    for bounds in (NESTEROV_BOUNDS, INEXACT_NESTEROV) for form, bound in bounds.items() if form != "-median"
}  # fmt: skip


@dataclass(frozen=True)
class Constants:
    """Constants that hold everywhere, as far as they are known, each with how: L, sigma, f_star."""

    values: Mapping[str, float] = field(default_factory=dict)
    how: Mapping[str, str] = field(default_factory=dict)
    exact: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            if name not in ("L", "sigma", "f_star") or not math.isfinite(value):
                raise InputError(f"constants: {name} = {value!r}; allowed are finite L, sigma, f_star")


def budget(
    theorem: str,
    recorder: LMORecorder,
    facts: RunFacts,
    constants: Constants = Constants(),
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
    if why := reasons(bound, facts):
        return head | {"status": "not applicable", "reasons": why}
    if not recorder.complete:
        raise InputError("recorder: every step with full gradients is needed; allowed is every = 1 with an objective")
    if "nesterov" in bound.assumptions and not recorder.nesterov:
        raise InputError(f"recorder: nesterov = False; allowed is True for {theorem}")
    recorder.flush()
    if (lost := _lost(recorder)) is not None:
        return head | {"status": "diverged", "reasons": [f"not finite at step {lost}"]}
    run = _Run(bound, recorder, facts, constants)
    L = "L" in constants.exact
    values = run.columns | run.numbers | {"L": constants.values["L"] if L else run.trajectory["L"]}
    scales = Scales(run.f_scale, run.grad_scale, run.x_scale, recorder.eta, eps)
    kind = "certified" if L else "report only"
    used = [(fact, use(fact, values, scales)) for fact in facts_of(PROOFS[theorem])]
    return head | {
        "steps": run.K,
        "stride": recorder.rows.stride,
        "constants": run.described(),
        "inequalities": [u.summary(kind, series) for _, u in used if u is not None],
        "not_recorded": [fact.place for fact, u in used if u is None],
        "violations": sum(u.violations for _, u in used if u is not None),
        "smoothness_used": "exact" if L else "largest used on the trajectory",
        "editions": run.editions(),
        "waterfall": run.waterfall(),
    }


def _lost(recorder: LMORecorder) -> int | None:
    """A step whose objective or norms are not finite, the first that was kept; None if there is none."""
    names = ("f_now", "f_next", "grad_norm", "momentum_norm", "step_norm")
    totals = recorder.rows.totals
    if all(math.isfinite(totals[name].low) and math.isfinite(totals[name].high) for name in names):
        return None
    rows = [*recorder.rows.kept, recorder.rows.last]
    return next((int(r["k"]) for r in rows if not all(math.isfinite(r[n]) for n in names)), recorder.steps - 1)


class _Run:
    """What the editions of a bound need from a recorded run."""

    def __init__(self, bound: Bound, recorder: LMORecorder, facts: RunFacts, constants: Constants) -> None:
        self.bound, self.rows, self.constants = bound, recorder.rows, constants
        self.columns: dict[str, Any] = {name: recorder.rows.column(name) for name in recorder.rows.totals}
        k, alpha = self.columns["k"], recorder.alpha
        self.first = recorder.feedback is not None
        self.K, tau = recorder.rows.seen, facts.tau
        f_first, f_last = recorder.rows.kept[0]["f_now"], recorder.rows.last["f_next"]
        self.gap = f_first - f_last
        self.columns["delay_age"] = _delay_age(k, alpha, tau)
        self.columns["noise_growth"] = 1 - (1 - alpha) ** (2 * k + 2)
        self.columns["noise_growth_root"] = np.sqrt(self.columns["noise_growth"])
        mean = recorder.rows.mean
        totals = recorder.rows.totals
        self.numbers: dict[str, float] = {
            "eta": recorder.eta, "alpha": alpha, "tau": float(tau), "K": float(self.K), "t": 1.0,
            "E0": recorder.once["E0"], "rho": recorder.once["rho"],
            "r_lo": min(1.0, totals["oracle_quality"].low), "r_hi": max(1.0, totals["direction_norm"].high),
            "f_first": f_first, "f_last": f_last, "extra": float(tau - 1),
        }  # fmt: skip
        self.numbers["longest_step"] = recorder.eta * self.numbers["r_hi"]
        self.called = "called_" if "nesterov" in bound.assumptions else ""
        means = (
            "grad_norm", "error_norm", "momentum_norm", "taken_norm", "shifted_error_norm", "grad_norm_at_x",
            "called_norm", "called_error_norm", "called_shifted_error_norm",
        )  # fmt: skip
        self.numbers |= {f"mean_{name}": mean(name) for name in means if name in totals}
        for name in ("start_gap_norm", "start_change", "first_direction_norm"):
            if name in recorder.once:
                self.numbers[name] = recorder.once[name]
        if self.first:
            self.numbers["dbar"] = mean("delta")
        self.f_scale = max(abs(totals["f_now"].high), abs(totals["f_now"].low), abs(f_last))
        sizes = ("grad_norm", "momentum_norm", "taken_norm", "noise_norm", "called_norm")
        self.grad_scale = max(totals[n].high for n in sizes if n in totals)
        self.x_scale = recorder.once["x_scale"] + recorder.eta * recorder.steps * self.numbers["r_hi"]
        once = recorder.once
        at_start = [once["start_change"] / once["start_gap_norm"]] if once.get("start_gap_norm", 0.0) > 0 else []
        self.trajectory = {
            "L": max(totals["smoothness_used"].high, *at_start, 0.0),
            "sigma": math.sqrt(max(mean("sample_square"), 0.0)),
            "f_star": f_last,
        }
        self._means = {
            "segment": mean("segment_mean") / recorder.eta,
            **{name: mean(f"measured_{name}") for name in ("start", "lag", "delay", "shifted_lag")},
            **{name: mean(name) for name in ("noise_norm", "return_change")},
        }
        if self.called:  # c_k - grad f = (1-alpha) (the momentum's lag) + alpha (bias of the delay) + its own noise
            lagged = {name: (1 - alpha) * self._means[name] for name in ("start", "lag", "delay", "shifted_lag")}
            lagged["delay"] += alpha * mean("delay_bias")
            self._means |= {**lagged, "noise_norm": mean("called_noise_norm")}
        self.f_start = f_first if self.first else recorder.once["f_start"]

    def described(self) -> list[dict[str, Any]]:
        """Every constant with how it is known."""
        c, how = self.constants, self.constants.how
        exact = "setting of the run"
        rows = [(n, self.numbers[n], exact) for n in ("eta", "alpha", "tau", "K")]
        rows += [(n, self.numbers[n], "exact, from full gradients and shapes") for n in ("rho", "E0")]
        rows += [(n, v, how.get(n, "given")) for n, v in c.values.items()]
        rows += [
            ("L", self.trajectory["L"], "largest that a step of the proof used on the trajectory; a lower bound for L"),
            ("sigma", self.trajectory["sigma"], "root mean square of the noise along the trajectory"),
            ("f_star", self.trajectory["f_star"], "last objective of the trajectory"),
        ]
        inexact = "inexact-lmo" in self.bound.assumptions
        rows += [(n, self.numbers[n], "measured over the run") for n in ("r_lo", "r_hi") if inexact]
        rows += [("dbar", self.numbers["dbar"], "measured over the run")] if self.first else []
        return [{"name": name, "value": value, "how": words} for name, value, words in rows]

    def _terms(self, given: Mapping[str, float], bound: Bound | None = None) -> dict[str, float]:
        """The bound's terms with L, sigma, f_star of `given`. Raises InputError for what is missing or refused."""
        bound = self.bound if bound is None else bound
        gap = self.f_start - given["f_star"] if "f_star" in given else math.nan
        values = {**self.numbers, **given, "Delta0": gap, "Delta1": gap}
        missing = [n for n in bound.symbols if n not in values or not math.isfinite(values[n])]
        if missing:
            names = ["f_star" if name.startswith("Delta") else name for name in missing]
            raise InputError(f"not known: {', '.join(names)}")
        terms = bound.evaluate_terms(**{name: values[name] for name in bound.symbols})
        return {name: float(value) for name, value in terms.items()}

    @property
    def _counts(self) -> tuple[float, float, float]:
        """How often the error against z_k and that against the gradient taken count, and r_lo."""
        inexact = "inexact-lmo" in self.bound.assumptions
        q = self.numbers["r_hi"] / self.numbers["r_lo"] if inexact else 1.0
        r_lo = self.numbers["r_lo"] if inexact else 1.0
        own = OWN[self.bound.name]
        if own == "taken_norm":
            return q, 1.0, r_lo
        return (q, 0.0, r_lo) if own in ("momentum_norm", "called_norm") else (1.0 + q, 0.0, r_lo)

    def _measured(self) -> dict[str, float]:
        """The bound's terms in the norms that the run had."""
        at_z, at_taken, r_lo = self._counts
        m = self._means
        terms = {
            "initial": self.gap / (self.numbers["eta"] * self.K) / r_lo,
            "step": m["segment"] / r_lo,
            "momentum_lag": at_z * m["lag"] + (at_taken * m["shifted_lag"] if at_taken else 0.0),
            "delay": at_z * m["delay"],
            "noise": (at_z + at_taken) * m["noise_norm"],
            "start": (at_z + at_taken) * m["start"],
        }
        return terms | ({"return": m["return_change"]} if "return" in self.bound.terms else {})

    def editions(self) -> dict[str, dict[str, Any]]:
        """Three editions: constants that hold everywhere, constants of the trajectory, measured terms."""
        quiet = self.constants.values.get("sigma") == 0.0 and self.trajectory["sigma"] == 0.0
        exact = {"L", "sigma", "f_star"} <= self.constants.exact and quiet
        out: dict[str, dict[str, Any]] = {}
        for name, given in (("worst-case", self.constants.values), ("trajectory", self.trajectory)):
            try:
                terms = self._terms(given)
                kind = "certified" if name == "worst-case" and exact else "report only"
                out[name] = {"value": sum(terms.values()), "terms": terms, "kind": kind}
            except (InputError, TheoryInputError) as error:
                out[name] = {"value": None, "terms": None, "kind": "not applicable", "reason": str(error)}
        measured = self._measured()
        kind = "certified" if self.constants.exact >= {"L"} else "report only"
        out["measured"] = {"value": sum(measured.values()), "terms": measured, "kind": kind}
        return out

    def waterfall(self) -> list[dict[str, Any]]:
        """From the measured average to the worst case; each level with what it adds to the one before."""
        at_z, at_taken, r_lo = self._counts
        editions, n = self.editions(), self.numbers
        own = self.rows.mean(OWN[self.bound.name])
        measured = editions["measured"]["terms"]
        kept = {name: measured[name] for name in ("initial", "step", "return") if name in measured}
        error = at_z * n[f"mean_{self.called}error_norm"]
        error += at_taken * n[f"mean_{self.called}shifted_error_norm"] if at_taken else 0.0
        levels: list[tuple[str, float | None, str]] = [
            ("measured average", own, "what the theorem bounds"),
            ("momentum's errors as they were", sum(kept.values()) + error, "pathwise: progress and triangle"),
            ("measured terms", editions["measured"]["value"], "pathwise: the errors in the norms of their parts"),
        ]
        if self.bound.name == "delayed-lmo":
            try:
                finite: float | None = sum(self._terms(self.trajectory, get_bound("delayed-lmo-finite")).values())
            except (InputError, TheoryInputError):
                finite = None
            levels.append(("trajectory constants, finite sums", finite, "L of the trajectory; noise in expectation"))
        levels += [
            ("trajectory constants", editions["trajectory"]["value"], "the theorem, these constants in it"),
            ("worst-case constants", editions["worst-case"]["value"], "the theorem, constants that hold everywhere"),
        ]
        out: list[dict[str, Any]] = []
        before: float | None = None
        for name, value, how in levels:
            added = None if value is None or before is None else value - before
            out.append({"level": name, "value": value, "added": added, "how": how})
            before = value if value is not None else before
        return out


def _delay_age(k: np.ndarray, alpha: float, tau: int) -> np.ndarray:
    """alpha sum_{i=1..k} (1-alpha)^{k-i} min(i, tau), by its recursion, at the steps k."""
    found, total = {}, 0.0
    for i in range(int(k[-1]) + 1):
        total = (1 - alpha) * total + alpha * min(i, tau)
        found[i] = total
    return np.array([found[int(i)] for i in k])


def average_over_runs(budgets: Sequence[Mapping[str, Any]], level: float = 0.95) -> dict[str, Any]:
    """The measured average over runs of several seeds, with Student's interval, and the bound's smallest edition.

    Runs that diverged or that the theorem is not about are named and never averaged in. Raises InputError for fewer
    than two that are left.
    """
    left = [b for b in budgets if b["status"] == "complete"]
    out = [{"run": i, "status": b["status"], "reasons": b["reasons"]} for i, b in enumerate(budgets) if b not in left]
    if len(left) < 2:
        raise InputError(f"runs: {len(left)} complete of {len(budgets)}; allowed are at least 2")
    measured = student_interval([b["waterfall"][0]["value"] for b in left], level)
    return {"kind": "statistical", "measured": measured.as_dict(), "runs": len(left), "left_out": out}
