"""Three editions of a bound on a recorded run, and the waterfall between them.

Constants of the trajectory: L is the largest smoothness that any step of the proof used on this path; sigma the root
mean square of the noise; f_* the last objective. Where f is not what the batches are drawn from, the gradients are not
unbiased for it: then what is pathwise stands, and the editions that take the noise in expectation have no number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from empirics.applicability import RunFacts
from empirics.budget_names import OTHER, OWN
from empirics.errors import InputError
from empirics.lmo_recorder import LMORecorder
from empirics.pathwise import discounted
from theory.bound import Bound
from theory.errors import InputError as TheoryInputError
from theory.registry import get_bound

#: Why a theorem in expectation says nothing of a run whose f is another function than that of its batches.
PART = "unbiased: f is a part of what the batches are drawn from, so their gradients are not unbiased for grad f"


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


class Editions:
    """What the editions of a bound need from a recorded run."""

    def __init__(self, bound: Bound, recorder: LMORecorder, facts: RunFacts, constants: Constants) -> None:
        self.bound, self.rows, self.constants, self.whole = bound, recorder.rows, constants, facts.whole
        self.columns: dict[str, Any] = {name: recorder.rows.column(name) for name in recorder.rows.totals}
        k, alpha = self.columns["k"], recorder.alpha
        self.first = recorder.feedback is not None
        self.K, tau = recorder.rows.seen, facts.tau
        self.of = self.K - (tau if OWN[bound.name] == "grad_norm_tau_back" else 0)  # the K of the bound
        f_first, f_last = recorder.rows.kept[0]["f_now"], recorder.rows.last["f_next"]
        self.gap = f_first - f_last
        ages = np.minimum(np.arange(int(k[-1]) + 1), tau).astype(float)
        self.columns["delay_age"] = discounted(ages, alpha, alpha)[k.astype(int)]
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
        if recorder.reference is not None:
            self.numbers["s"] = float(recorder.reference)
        self.numbers["longest_step"] = recorder.eta * self.numbers["r_hi"]
        self.called = "called_" if "nesterov" in bound.assumptions else ""
        means = (
            "grad_norm", "error_norm", "momentum_norm", "taken_norm", "shifted_error_norm", "grad_norm_at_x",
            "called_norm", "called_error_norm", "called_shifted_error_norm", "reference_error_norm",
            "called_reference_error_norm",
        )  # fmt: skip
        self.numbers |= {f"mean_{name}": mean(name) for name in means if name in totals}
        for name in ("start_gap_norm", "start_change", "first_direction_norm"):
            if name in recorder.once:
                self.numbers[name] = recorder.once[name]
        if self.first:
            self.numbers["dbar"] = mean("delta")
        self._scales(recorder, f_last)
        used = ["smoothness_used"] + ["reference_smoothness"] * (OWN[bound.name] == "reference_norm")
        self.trajectory = {
            # from x_0 to y_1 too: the first gradient at y_1 was taken at x_0
            "L": max(totals[name].high for name in used),
            "sigma": math.sqrt(max(mean("sample_square"), 0.0)),
            "f_star": f_last,
        }
        self._set_means(recorder)
        self.f_start = f_first if self.first else recorder.once["f_start"]

    def _scales(self, recorder: LMORecorder, f_last: float) -> None:
        """The largest numbers that the run's were computed from."""
        totals = recorder.rows.totals
        self.f_scale = max(abs(totals["f_now"].high), abs(totals["f_now"].low), abs(f_last))
        sizes = ("grad_norm", "momentum_norm", "taken_norm", "noise_norm", "called_norm")
        self.grad_scale = max(totals[n].high for n in sizes if n in totals)
        self.x_scale = recorder.once["x_scale"] + recorder.eta * recorder.steps * self.numbers["r_hi"]

    def _set_means(self, recorder: LMORecorder) -> None:
        """Averages of what the terms of a bound stand for."""
        mean, alpha = recorder.rows.mean, recorder.alpha
        self._means = {
            "segment": mean("segment_mean") / recorder.eta,
            **{name: mean(f"measured_{name}") for name in ("start", "lag", "delay", "shifted_lag", "reference")},
            **{name: mean(name) for name in ("noise_norm", "return_change")},
        }
        if self.called:  # c_k - grad f = (1-alpha) (the momentum's lag) + alpha (bias of the delay) + its own noise
            lagged = {name: (1 - alpha) * self._means[name] for name in ("start", "lag", "delay", "shifted_lag")}
            lagged["delay"] += alpha * mean("delay_bias")
            lagged["reference"] = (1 - alpha) * self._means["reference"] + alpha * mean("reference_bias")
            self._means |= {**lagged, "noise_norm": mean("called_noise_norm")}

    def described(self) -> list[dict[str, Any]]:
        """Every constant with how it is known."""
        c, how = self.constants, self.constants.how
        exact = "setting of the run"
        rows = [(n, self.numbers[n], exact) for n in ("eta", "alpha", "tau")]
        ran_on = f"the run's {self.K} steps but the last tau, by which it ran on"
        rows.append(("K", float(self.of), exact if self.of == self.K else ran_on))
        rows += [(n, self.numbers[n], "exact, from full gradients and shapes") for n in ("rho", "E0")]
        rows += [(n, v, how.get(n, "given")) for n, v in c.values.items()]
        rows += [
            ("L", self.trajectory["L"], "largest that a step of the proof used on the trajectory; a lower bound for L"),
            ("sigma", self.trajectory["sigma"], "root mean square of the noise along the trajectory"),
            ("f_star", self.trajectory["f_star"], "last objective of the trajectory"),
        ]
        if "s" in self.bound.symbols:
            rows.append(("s", self.numbers["s"], "age of the reference that was recorded"))
        inexact = "inexact-lmo" in self.bound.assumptions
        rows += [(n, self.numbers[n], "measured over the run") for n in ("r_lo", "r_hi") if inexact]
        rows += [("dbar", self.numbers["dbar"], "measured over the run")] if self.first else []
        return [{"name": name, "value": value, "how": words} for name, value, words in rows]

    def _terms(self, given: Mapping[str, float], bound: Bound | None = None) -> dict[str, float]:
        """The bound's terms with L, sigma, f_star of `given`.

        Raises InputError for what is missing or refused, and where f is only a part of what is sampled.
        """
        if not self.whole:
            raise InputError(PART)
        bound = self.bound if bound is None else bound
        gap = self.f_start - given["f_star"] if "f_star" in given else math.nan
        values = {**self.numbers, **given, "Delta0": gap, "Delta1": gap, "K": float(self.of)}
        missing = [n for n in bound.symbols if n not in values or not math.isfinite(values[n])]
        if missing:
            names = ["f_star" if name.startswith("Delta") else name for name in missing]
            raise InputError(f"not known: {', '.join(names)}")
        terms = bound.evaluate_terms(**{name: values[name] for name in bound.symbols})
        return {name: float(value) for name, value in terms.items()}

    @property
    def _counts(self) -> tuple[float, float, float]:
        """How often the error against z_k and that of OTHER count, and r_lo."""
        inexact = "inexact-lmo" in self.bound.assumptions
        q = self.numbers["r_hi"] / self.numbers["r_lo"] if inexact else 1.0
        r_lo = self.numbers["r_lo"] if inexact else 1.0
        own = OWN[self.bound.name]
        if own in OTHER:
            return q, 1.0, r_lo
        return (q, 0.0, r_lo) if own in ("momentum_norm", "called_norm") else (1.0 + q, 0.0, r_lo)

    def _measured(self) -> dict[str, float]:
        """The bound's terms in the norms that the run had."""
        at_z, other, r_lo = self._counts
        m, at_reference = self._means, "reference" in self.bound.terms
        terms = {
            "initial": self.gap / (self.numbers["eta"] * self.K) / r_lo,
            "step": m["segment"] / r_lo,
            "momentum_lag": at_z * m["lag"] + (other * m["shifted_lag"] if other and not at_reference else 0.0),
            "delay": at_z * m["delay"],
            "noise": (at_z + other) * m["noise_norm"],
            "start": (at_z + other) * m["start"],
        }
        extra = {"return": m["return_change"], "reference": m["reference"]}
        terms |= {name: value for name, value in extra.items() if name in self.bound.terms}
        return {name: value * self.K / self.of for name, value in terms.items()}

    def editions(self) -> dict[str, dict[str, Any]]:
        """Three editions: constants that hold everywhere, constants of the trajectory, measured terms."""
        quiet = self.constants.values.get("sigma") == 0.0 and self.trajectory["sigma"] == 0.0
        known = {"L", "sigma", "f_star"} <= self.constants.exact
        out: dict[str, dict[str, Any]] = {}
        for name, given in (("worst-case", self.constants.values), ("trajectory", self.trajectory)):
            try:
                terms = self._terms(given)
                kind = "certified" if name == "worst-case" and known and quiet else "report only"
                out[name] = {"value": sum(terms.values()), "terms": terms, "kind": kind}
            except (InputError, TheoryInputError) as error:
                out[name] = {"value": None, "terms": None, "kind": "not applicable", "reason": str(error)}
        out["worst-case"]["exact"] = known
        measured = self._measured()
        kind = "certified" if self.constants.exact >= {"L"} else "report only"
        out["measured"] = {"value": sum(measured.values()), "terms": measured, "kind": kind}
        return out

    def waterfall(self) -> list[dict[str, Any]]:
        """From the measured average to the worst case; each level with what it adds to the one before."""
        at_z, other, r_lo = self._counts
        editions, n = self.editions(), self.numbers
        own = OWN[self.bound.name]
        measured = editions["measured"]["terms"]
        kept = {name: measured[name] for name in ("initial", "step", "return") if name in measured}
        error = at_z * n[f"mean_{self.called}error_norm"]
        error += other * n[f"mean_{self.called}{OTHER[own]}_error_norm"] if other else 0.0
        error *= self.K / self.of
        levels: list[tuple[str, float | None, str]] = [
            ("measured average", self.rows.mean(own), "what the theorem bounds"),
            ("momentum's errors as they were", sum(kept.values()) + error, "pathwise: progress and triangle"),
            ("measured terms", editions["measured"]["value"], "pathwise: the errors in the norms of their parts"),
        ]
        if self.bound.name == "delayed-lmo":
            try:
                finite: float | None = sum(self._terms(self.trajectory, get_bound("delayed-lmo-finite")).values())
            except (InputError, TheoryInputError):
                finite = None
            how = "L of the trajectory; noise in expectation" if self.whole else PART
            levels.append(("trajectory constants, finite sums", finite, how))
        for name, how in (
            ("trajectory", "the theorem, these constants in it"),
            ("worst-case", "the theorem, constants that hold everywhere"),
        ):
            levels.append((f"{name} constants", editions[name]["value"], editions[name].get("reason", how)))
        out: list[dict[str, Any]] = []
        before: float | None = None
        for name, value, how in levels:
            added = None if value is None or before is None else value - before
            out.append({"level": name, "value": value, "added": added, "how": how})
            before = value if value is not None else before
        return out
