"""Hessian-vector products of a loss, and the check that there is a Hessian to multiply with.

Products by differentiating <gradient, v>. Where a parameter is unused, frozen, or enters linearly, its block is 0.
Attention runs in its plain form inside: the fused kernels have no second derivative.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from empirics.errors import InputError
from empirics.estimators.weights import Weights, check_finite


def hessian_product(loss: Tensor, parameters: Mapping[str, Tensor], v: Weights) -> dict[str, Tensor]:
    """Hessian of a scalar loss times v, by name; the loss must have been made inside :func:`second_derivatives`.

    Leaves the .grad fields alone.
    """
    asked = {name: p for name, p in parameters.items() if p.requires_grad}
    zero = {name: torch.zeros_like(p) for name, p in parameters.items()}
    if not asked or not loss.requires_grad:
        return zero
    first = torch.autograd.grad(loss, list(asked.values()), create_graph=True, allow_unused=True)
    product = sum(
        ((g * v[name].detach().to(g.dtype)).sum() for name, g in zip(asked, first, strict=True) if g is not None),
        torch.zeros((), dtype=loss.dtype),
    )
    if not isinstance(product, Tensor) or not product.requires_grad:
        return zero  # the gradient is constant
    second = torch.autograd.grad(product, list(asked.values()), allow_unused=True)
    return zero | {name: h.detach() for name, h in zip(asked, second, strict=True) if h is not None}


@contextmanager
def second_derivatives() -> Iterator[None]:
    """Inside, attention is computed in a form that can be differentiated twice, on every device."""
    with sdpa_kernel(SDPBackend.MATH):
        yield


def refuse_random_layers(modules: Iterable[nn.Module], what: str = "loss") -> None:
    """Raises InputError where a layer is in training mode whose output is random or depends on the batch's company."""
    for root in modules:
        for name, layer in root.named_modules():
            if not layer.training:
                continue
            kind = type(layer).__name__
            if isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p > 0:
                raise InputError(f"{what}: {name or kind!r} ({kind}) is in training mode; allowed is eval mode")
            if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                raise InputError(
                    f"{what}: {name or kind!r} ({kind}) is in training mode, so a sample's loss depends on its batch; "
                    f"allowed is eval mode"
                )


@dataclass
class HessianOperator:
    """v -> H v of a loss that is a pure function of its parameters.

    loss: gives the scalar at the present values of `parameters`, each call the same; modules: looked through for
    layers whose output is random. Evaluates the loss and its gradient twice at first: InputError where the two differ
    (dropout, a loader that shuffles). Training flags, buffers, random state and .grad fields are as before afterwards.
    products: so many were made.
    """

    loss: Callable[[], Tensor]
    parameters: Mapping[str, Tensor]
    modules: Iterable[nn.Module] = ()
    products: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.modules = tuple(self.modules)
        refuse_random_layers(self.modules)
        with _untouched(self.modules) as changed:
            one, two = self._value_and_gradient(), self._value_and_gradient()
            for a, b in zip(one, two, strict=True):
                if not torch.equal(a, b) and bool(torch.isfinite(a).all()):
                    raise InputError(
                        f"loss: {one[0]:.6g} and then {two[0]:.6g} at the same weights; allowed is a loss without "
                        f"randomness (eval mode, a fixed batch)"
                    )
            if buffer := changed():
                raise InputError(f"loss: it changes the buffer {buffer!r}; allowed is eval mode")

    def _value_and_gradient(self) -> list[Tensor]:
        with second_derivatives():
            loss = self.loss()
        asked = [p for p in self.parameters.values() if p.requires_grad]
        if not asked or not loss.requires_grad:
            return [loss.detach()]
        found = torch.autograd.grad(loss, asked, allow_unused=True)
        return [loss.detach(), *(g for g in found if g is not None)]

    def __call__(self, v: Weights) -> dict[str, Tensor]:
        """H v. Raises InputError where it is not finite."""
        self.products += 1
        with _untouched(self.modules), second_derivatives():
            found = hessian_product(self.loss(), self.parameters, v)
        check_finite(found, f"Hessian-vector product {self.products}")
        return found


@contextmanager
def _untouched(modules: Iterable[nn.Module]) -> Iterator[Callable[[], str | None]]:
    """Random state and buffers are as before at the end; yields a function that names a buffer that has changed."""
    buffers = {name: b for module in modules for name, b in module.named_buffers()}
    kept = {name: b.detach().clone() for name, b in buffers.items()}
    with warnings.catch_warnings(), torch.random.fork_rng(enabled=True):
        try:
            yield lambda: next((name for name, b in buffers.items() if not torch.equal(b, kept[name])), None)
        finally:
            with torch.no_grad():
                for name, b in buffers.items():
                    b.copy_(kept[name])
