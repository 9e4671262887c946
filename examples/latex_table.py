"""A LaTeX table (booktabs) of every bound at one setting, term by term; prints it to stdout."""

from figures.table import Column, Table, table_latex
from theory import BOUNDS
from theory.assumptions import contradiction
from theory.bound import TERM_NAMES

values = dict(L=1, eta=0.01, alpha=0.05, tau=1, sigma=0.1, rho=1, Delta0=1, K=1000, E0=0, dbar=0.3, Delta1=1)
rows = []
for name, bound in BOUNDS.items():
    complete = set(bound.symbols) <= {*values, *bound.optional}  # what is optional may be left out
    if complete and not contradiction(bound.assumptions, values):
        at = bound.evaluate_terms(**{symbol: values[symbol] for symbol in bound.symbols if symbol in values})
        rows.append((name, *(at.get(term) for term in TERM_NAMES), sum(at.values())))
without = [name for name in BOUNDS if name not in [row[0] for row in rows]]
legend = ", ".join(f"{name} = {value}" for name, value in values.items())
table = Table(
    name="bounds",
    title="Bounds by term",
    caption=f"Upper bounds on different metrics: compare terms, not totals. {legend}. "
    f"No row, as they have other symbols or another delay: {', '.join(without)}.",
    columns=(Column("bound"), *(Column(term.replace("_", " "), "r") for term in [*TERM_NAMES, "total"])),
    rows=tuple(rows),
)
print(table_latex(table))
