"""Problems by name, with their options: what `staleproof estimate` builds."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping

from empirics.errors import InputError
from empirics.problems import gpt_corpus
from empirics.problems.finite_sum import FiniteSum
from empirics.problems.interface import Problem
from empirics.problems.logistic import logistic
from empirics.problems.matrix_least_squares import NoisyLeastSquares, least_squares
from empirics.problems.mlp import mlp
from empirics.problems.noisy_quadratic import QuadraticProblem, quadratic


def _quadratic(
    modes: int = 10, condition: float = 100.0, noise_std: float = 0.1, x0: float = 1.0, spectrum: str = ""
) -> QuadraticProblem:
    """spectrum: curvatures separated by commas, instead of modes and condition."""
    try:
        given = [float(word) for word in spectrum.split(",")] if spectrum else None
    except ValueError:
        raise InputError(f"spectrum: {spectrum!r}; allowed are numbers > 0 separated by commas") from None
    return quadratic(modes, condition, noise_std, x0, given)


def _gpt(
    sequences: int = 8,
    layers: int = 1,
    width: int = 16,
    heads: int = 2,
    context: int = 16,
    seed: int = 0,
    corpus: str = "",
) -> FiniteSum:
    """corpus: a file or folder; by default the text that runs train on."""
    from pipeline.data.corpus import load_corpus

    return gpt_corpus.gpt(load_corpus(corpus or None).text, sequences, layers, width, heads, context, seed)


def _least_squares(
    rows: int = 12, cols: int = 16, sigma: float = 0.1, terms: int = 4, seed: int = 0
) -> NoisyLeastSquares:
    return least_squares(rows, cols, sigma, terms, seed)


PROBLEMS: dict[str, Callable[..., Problem]] = {
    "least-squares": _least_squares,
    "quadratic": _quadratic,
    "logistic": logistic,
    "mlp": mlp,
    "gpt": _gpt,
}
#: Largest integer that an option may be: a problem is meant to be small.
LARGEST = 4096
NORM_OF: dict[str, str] = {
    "least-squares": "spectral",
    "quadratic": "frobenius",
    "logistic": "frobenius",
    "mlp": "layers",
    "gpt": "layers",
}


def options_of(name: str) -> dict[str, object]:
    """Option -> default. Raises InputError listing the names."""
    if name not in PROBLEMS:
        raise InputError(f"problem: {name!r}; allowed are {', '.join(PROBLEMS)}")
    return {key: p.default for key, p in inspect.signature(PROBLEMS[name]).parameters.items()}


def make_problem(name: str, given: Mapping[str, str] | None = None) -> Problem:
    """The problem with options as text, each read as its default's type. Raises InputError for what is not allowed."""
    defaults = options_of(name)
    options: dict[str, object] = {}
    for key, text in (given or {}).items():
        if key not in defaults:
            raise InputError(f"option {key!r} of {name}: unknown; allowed are {', '.join(defaults)}")
        if isinstance(defaults[key], int):
            least = 0 if key == "seed" else 1
            if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= LARGEST:
                raise InputError(f"option {key} of {name}: {text!r}; allowed is an integer from {least} to {LARGEST}")
            options[key] = int(text)
        elif isinstance(defaults[key], float):
            try:
                options[key] = float(text)
            except ValueError:
                raise InputError(f"option {key} of {name}: {text!r}; allowed is a number") from None
        else:
            options[key] = text
    return PROBLEMS[name](**options)
