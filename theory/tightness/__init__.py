"""How tight the theorems on delayed LMO methods are: beside each upper bound an orbit that gives a lower one.

`table()` is the summary (docs/tightness.md); the other modules are the orbits and the searches that found them.
"""

from theory.tightness.table import Row, markdown, table

__all__ = ["Row", "markdown", "table"]
