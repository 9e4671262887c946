"""Exact theory of linear methods on quadratics: moments, characteristic polynomials, stability limits."""

from theory.quadratic.method import QuadraticMethod
from theory.quadratic.polynomial import characteristic, slow_root
from theory.quadratic.stability import closed_form, stability_limit

__all__ = ["QuadraticMethod", "characteristic", "closed_form", "slow_root", "stability_limit"]
