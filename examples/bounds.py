"""Bounds are values: evaluate, look at the terms, tune, expand for many steps, compare, print LaTeX."""

import numpy as np

from theory import get_bound

one, shifted = get_bound("delayed-lmo"), get_bound("delayed-lmo-shifted")
values = dict(L=1, alpha=0.05, tau=1, sigma=0.1, rho=1, Delta0=1, K=1000, E0=0)

print("value", one.evaluate(**values, eta=0.01))
print("delay", one.evaluate_terms(**values, eta=0.01)["delay"], "=", one.terms["delay"])
print("at three steps", one.evaluate(**values, eta=np.array([0.003, 0.01, 0.03])).round(3))

tuned = one.tune(("eta",), **values)
print("best eta", round(tuned.at["eta"], 5), "value", round(tuned.value, 4), "by", tuned.method)

many = one.expand()  # eta and alpha tuned, K to infinity
print("total: K to the", many.total[0].power, "with a relative part of the delay: K to the", many.delay_relative.power)

print("where the gradient was taken:", *(term.text for term in one.compare(shifted).terms if term.name == "delay"))
print(one.latex())
