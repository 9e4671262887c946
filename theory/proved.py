"""Which bounds have a proof that a machine checks, by name alone.

`theory.proofs` holds the proofs and takes a second and more to import. Bounds alone need not wait for it:
tests/theory/test_proofs.py holds these names against it.
"""

from __future__ import annotations

from theory.bound import Bound

#: In the order of `theory.registry.BOUNDS`.
PROVED: tuple[str, ...] = (
    "delayed-lmo",
    "delayed-lmo-iterate",
    "delayed-lmo-shifted",
    "delayed-lmo-median",
    "delayed-lmo-momentum",
    "delayed-lmo-finite",
    "delayed-lmo-inexact",
    "delayed-lmo-inexact-shifted",
    "delayed-lmo-inexact-median",
    "delayed-lmo-inexact-momentum",
    "delayed-lmo-nesterov",
    "delayed-lmo-nesterov-shifted",
    "delayed-lmo-nesterov-median",
    "delayed-lmo-nesterov-momentum",
    "delayed-lmo-inexact-nesterov",
    "delayed-lmo-inexact-nesterov-shifted",
    "delayed-lmo-inexact-nesterov-median",
    "delayed-lmo-inexact-nesterov-momentum",
    "delayed-lmo-tuned",
    "delayed-lmo-shifted-tuned",
    "delayed-lmo-tuned-both",
    "error-feedback",
    "error-feedback-at-x",
    "error-feedback-any-delay",
    "error-feedback-weights",
    "star-convex",
    "star-convex-finite",
    "rpd-paper",
    "rpd-a",
    "rpd-a-independent",
    "rpd-a-drift",
    "rpd-b",
    "rpd-c",
    "rpd-d",
    "rpd-d-split",
    "rpd-pl",
    "rpd-pl-b",
    "pipedream-exact",
    "pipedream-exact-age",
    "pipedream-exact-split",
    "local-sgd-counted",
    "local-sgd-variance",
    "delayed-gd",
    "delayed-gd-finite",
    "delayed-gd-two-sided",
)


def proof_of(bound: Bound) -> str:
    """What stands behind a bound: "by machine", "in words", or "as reported" by others, without a proof here."""
    if bound.name in PROVED:
        return "by machine"
    return "in words" if bound.origin == "derived here" else "as reported"
