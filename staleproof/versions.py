"""Versions of the libraries and what the machine has, for the record of a run."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from staleproof import __version__

LIBRARIES = ("torch", "numpy", "scipy", "sympy", "matplotlib")


def versions() -> dict[str, str]:
    """Name -> version of Python, this package and the core libraries, without importing them."""
    found = {"python": platform.python_version(), "staleproof": __version__}
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = "not installed"
    return found


def cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def gpus() -> int:
    """CUDA devices that torch sees (imports torch)."""
    import torch

    return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0
