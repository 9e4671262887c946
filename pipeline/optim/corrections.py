"""What can be done about a delay at the optimizer, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from torch.optim import Optimizer

from pipeline.errors import InputError
from pipeline.optim.delay_compensation import DelayCompensation
from pipeline.optim.error_feedback import ErrorFeedback
from pipeline.optim.gradient_extrapolation import GradientExtrapolation
from pipeline.optim.lr_discount import LRDiscount
from pipeline.optim.weight_prediction import WeightPrediction


@dataclass(frozen=True)
class CorrectionOptions:
    """Settings of a correction; None: its own. Which correction has which: `CORRECTIONS`."""

    form: str | None = None
    coefficient: float | None = None
    strength: float | None = None
    adaptive: bool | None = None
    anneal_steps: int | None = None


@dataclass(frozen=True)
class Correction:
    """build: (optimizer, tau, **options) -> wrapped optimizer; options: the names it takes; reference: author, year,
    identifier. What it keeps between steps: `pipeline.correction_buffers`."""

    build: Callable[..., Optimizer]
    options: tuple[str, ...]
    summary: str
    reference: str


CORRECTIONS: dict[str, Correction] = {
    "error-feedback": Correction(
        ErrorFeedback,
        ("form", "coefficient"),
        "U_k + c (U_k - U_{k-lag})",
        "arXiv 2606.30634",
    ),
    "weight-prediction": Correction(
        WeightPrediction,
        ("coefficient",),
        "gradients at y + tau U",
        "SpecTrain, Chen et al. 2018, arXiv 1809.02839; XPipe, Guan et al. 2019, arXiv 1911.04610",
    ),
    "gradient-extrapolation": Correction(
        GradientExtrapolation,
        ("coefficient",),
        "g_k + tau (g_k - g_{k-1})",
        "gradient-level counterpart of arXiv 2606.30634; Popov 1980",
    ),
    "delay-compensation": Correction(
        DelayCompensation,
        ("strength", "adaptive"),
        "g + lambda g g (x_k - x_{k-tau})",
        "DC-ASGD, Zheng et al. 2017, arXiv 1609.08326",
    ),
    "lr-discount": Correction(
        LRDiscount,
        ("anneal_steps",),
        "lr / tau^(1 - min(k/K, 1))",
        "PipeMare, Yang et al. 2021, arXiv 1910.05124",
    ),
}


def check_correction(name: str, options: CorrectionOptions) -> None:
    """Raises InputError for an unknown name, and for an option that the correction does not have."""
    if name != "none" and name not in CORRECTIONS:
        raise InputError(f"correction: {name!r}; allowed are none, {', '.join(CORRECTIONS)}")
    takes = CORRECTIONS[name].options if name != "none" else ()
    for field in fields(options):
        if getattr(options, field.name) is not None and field.name not in takes:
            who = [other for other, correction in CORRECTIONS.items() if field.name in correction.options]
            raise InputError(
                f"{field.name}: {getattr(options, field.name)!r} with correction {name!r}; "
                f"allowed with {', '.join(who)}"
            )


def corrected(
    base: Optimizer, name: str, tau: int, options: CorrectionOptions | None = None, **settings: Any
) -> Optimizer:
    """``base`` with the correction of that name for a delay of tau steps around it; ``none`` is ``base`` itself.

    Raises InputError as the corrections do.
    """
    options = options or CorrectionOptions()
    check_correction(name, options)
    if name == "none":
        return base
    given = {field: getattr(options, field) for field in CORRECTIONS[name].options}
    chosen = {field: value for field, value in given.items() if value is not None}
    return CORRECTIONS[name].build(base, tau, **chosen, **settings)
