"""Every optimizer by name: where it comes from, what it does with which parameters, and what is known to be inexact.

One value per optimizer, from which the recipes, the command line's table and the tests are read. An optimizer that
the papers name and no installed library has is in ABSENT, with the reason; none is written by hand here but LMO.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch.optim import Optimizer

from pipeline.errors import InputError
from pipeline.optim import library_optimizers as library
from pipeline.optim import torch_optimizers as own
from pipeline.optim.parts import Named

SWEEP = "lowest held-out loss of a factor-2 grid: 1F1B, GPT of 135 808 parameters, 150 steps of 512 bytes, one seed"
EARLIER = "chosen for a byte-level GPT of about 1e5 parameters over 200 steps"

_DECAYED = "matrices with decoupled decay 0.1, vectors without"
_MUON_GROUPS = "hidden matrices by its rule; all else by AdamW (0.9, 0.95) at {} of the rate"
_GROUP_STEP = "steps are counted per group, so a parameter whose gradient comes late gets no bias correction of its own"
_BFLOAT16 = "the Newton-Schulz iteration runs in bfloat16 whatever the dtype of the parameter"
_MU_PRODUCT = "mu_product is a float32 number whatever the dtype; torch's own loader casts it, the wrappers' does not"


@dataclass(frozen=True)
class Recipe:
    """An optimizer by name.

    origin: class path; build: (parts of the parameters, learning rate) -> optimizer; lr: default, and lr_from how it
    was found; groups: which parameters go where; settings: hyper-parameters that are set; lr_scale: what the rate is
    multiplied by; reference: author, year, arXiv; buffers: entries of state that stay between steps, per entry of a
    square hidden matrix and of a vector (measured; a row's or a column's worth left out); known: what is inexact or
    surprising.
    """

    name: str
    origin: str
    build: Callable[[Mapping[str, Named], float], Optimizer]
    lr: float
    groups: str
    settings: Mapping[str, Any]
    reference: str
    buffers: tuple[int, int]
    lr_scale: str = "none"
    lr_from: str = SWEEP
    known: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.lr < float("inf"):
            raise InputError(f"lr: {self.lr!r}; allowed is a finite number > 0")

    @property
    def extra(self) -> str | None:
        """The extra of this package that brings the optimizer, if it takes one."""
        return "optimizers" if self.origin.startswith("pytorch_optimizer.") else None

    def describe(self) -> dict[str, Any]:
        """All but the builder, JSON-ready."""
        values = asdict(self) | {"settings": dict(self.settings), "extra": self.extra}
        del values["build"]
        return values


_RECIPES = (
    Recipe(
        "sgd",
        "torch.optim.SGD",
        own.sgd,
        0.1,
        "one group, no decay",
        {"momentum": 0.9},
        "Sutskever et al. 2013",
        (1, 1),
        lr_from=EARLIER,
    ),
    Recipe(
        "adamw",
        "torch.optim.AdamW",
        own.adamw,
        3e-3,
        _DECAYED,
        {"betas": (0.9, 0.95)},
        "Loshchilov and Hutter 2019, arXiv 1711.05101",
        (2, 2),
        lr_from=EARLIER,
    ),
    Recipe(
        "nadam",
        "torch.optim.NAdam",
        own.nadam,
        3e-3,
        _DECAYED,
        {"betas": (0.9, 0.95), "momentum_decay": 4e-3, "decoupled_weight_decay": True},
        "Dozat 2016",
        (2, 2),
        known=(_MU_PRODUCT,),
    ),
    Recipe(
        "asyncpp",
        "torch.optim.NAdam",
        own.asyncpp,
        6e-3,
        _DECAYED,
        {"betas": (0.99, 0.999), "momentum_decay": 4e-3, "decoupled_weight_decay": True},
        "Ajanthan et al. 2025, arXiv 2505.01099: NAdamW with beta1 = 0.99; beta2 and momentum decay are torch's",
        (2, 2),
        known=(_MU_PRODUCT,),
    ),
    Recipe(
        "muon",
        "torch.optim.Muon",
        own.muon,
        0.02,
        _MUON_GROUPS.format("0.15"),
        {"momentum": 0.95, "nesterov": True, "weight_decay": 0.1},
        "Jordan et al. 2024",
        (1, 2),
        lr_scale="sqrt(max(1, rows/columns)) on hidden matrices",
        lr_from=EARLIER,
        known=(_BFLOAT16,),
    ),
    Recipe(
        "lmo",
        "pipeline.optim.lmo.LMO",
        own.lmo,
        0.01,
        "spectral on hidden matrices and kernels, row-l2 on embeddings and heads, sign on vectors; no decay",
        {"alpha": 0.05},
        "Kovalev 2025, arXiv 2503.12645; Pethick et al. 2025, arXiv 2502.07529",
        (1, 1),
        lr_from=EARLIER,
    ),
    Recipe(
        "soap",
        "pytorch_optimizer.SOAP",
        library.soap,
        6e-3,
        f"{_DECAYED}; vectors by Adam, in no rotated basis",
        {"betas": (0.95, 0.95), "precondition_frequency": 10, "max_precondition_dim": 10000},
        "Vyas et al. 2024, arXiv 2409.11321",
        (6, 2),
        known=(
            "the first step only starts the preconditioner: no update and no decay; under error feedback U_0 = 0, so "
            "the first update that moves counts twice",
            "a rows x columns matrix has 2 (rows^2 + columns^2) entries of factors beside two moments",
            "the QR of the eigenbases is taken in float32 for float64 parameters too; the factors have the gradient's "
            "dtype",
            "a gradient that is not finite ends in torch's LinAlgError where a basis is first computed",
            _GROUP_STEP,
        ),
    ),
    Recipe(
        "adan",
        "pytorch_optimizer.Adan",
        library.adan,
        3e-3,
        _DECAYED,
        {"betas": (0.98, 0.92, 0.99), "weight_decouple": True, "max_grad_norm": 0.0},
        "Xie et al. 2022, arXiv 2208.06677",
        (4, 4),
        known=(
            "the step leaves the negated gradient in .grad",
            "max_grad_norm is the constructor's alone, and the norm that of a stage, not of the model: off here",
            _GROUP_STEP,
        ),
    ),
    Recipe(
        "mars",
        "pytorch_optimizer.MARS",
        library.mars,
        3e-3,
        "one group: matrices by MARS with decoupled decay 0.1, vectors by AdamW (0.9, 0.95) at the same rate without",
        {"betas": (0.95, 0.99), "gamma": 0.025, "mars_type": "adamw", "optimize_1d": False},
        "Yuan et al. 2024, arXiv 2411.10438",
        (3, 3),
        known=(
            "the approximate form: the difference is to the previous step's gradient, at other weights and of another "
            "batch",
            "the corrected gradient of each matrix is clipped to norm 1 by itself",
            "lr_1d of a group does nothing after construction: the vectors' rate is lr times lr_1d_factor",
            _GROUP_STEP,
        ),
    ),
    Recipe(
        "lion",
        "pytorch_optimizer.Lion",
        library.lion,
        1.6e-3,
        _DECAYED,
        {"betas": (0.9, 0.99), "weight_decouple": True},
        "Chen et al. 2023, arXiv 2302.06675",
        (1, 1),
    ),
    Recipe(
        "normuon",
        "pytorch_optimizer.NorMuon",
        library.normuon,
        0.02,
        _MUON_GROUPS.format("0.15"),
        {"momentum": 0.95, "beta2": 0.95, "nesterov": True, "update_scale": "preserve_norm"},
        "Li et al. 2025, arXiv 2510.05491",
        (1, 2),
        lr_scale="sqrt(max(1, rows/columns)) on hidden matrices",
        known=(_BFLOAT16, "the step leaves its Nesterov average of a hidden matrix in .grad", _GROUP_STEP),
    ),
    Recipe(
        "adamuon",
        "pytorch_optimizer.AdaMuon",
        library.adamuon,
        5e-3,
        _MUON_GROUPS.format("the whole"),
        {"betas": (0.95, 0.95), "use_adjusted_lr": True},
        "Si et al. 2025, arXiv 2507.11005",
        (2, 2),
        lr_scale="0.2 sqrt(max(rows, columns)) on hidden matrices, whose update has norm sqrt(min(rows, columns))",
        known=(
            _BFLOAT16,
            "the adaptive division of a hidden matrix's update is in bfloat16 too",
            "as in the library, without a sign before the orthogonalisation",
            _GROUP_STEP,
        ),
    ),
)

REGISTRY: dict[str, Recipe] = {recipe.name: recipe for recipe in _RECIPES}

#: Named in papers on delayed training, and not offered: name -> why.
ABSENT: dict[str, str] = {
    "mars-m": "Liu et al. 2025, arXiv 2510.21800: neither library has it. pytorch_optimizer's MARS with mars_type="
    "'shampoo' is near, and another method: its rate is scaled by sqrt(max(1, rows/columns)) instead of 0.2 "
    "sqrt(max(rows, columns)), and it treats embeddings and heads like hidden matrices.",
}


def recipe_of(name: str) -> Recipe:
    """The recipe of this name. Raises InputError, listing the known ones; says why where one is absent."""
    if name in REGISTRY:
        return REGISTRY[name]
    why = " (not in any library that is used here)" if name in ABSENT else ""
    raise InputError(f"optimizer: {name!r}{why}; allowed are {', '.join(sorted(REGISTRY))}")
