"""PipeDream: SGD on a pipeline in which every stage steps with a gradient that is out of date.

Randomized PipeDream (arXiv 2606.03498) is block SGD with old blocks: one step is one update of one stage's block,
    x_{k+1} = x_k - gamma G_k,   G_k = block s_k of g(z_k; xi_k), s_k uniform among S,
where block s of z_k is block s of x_{k - delta_{k,s}}, at most delta_max block updates old. K counts block updates.
The exact PipeDream (`exact`) is not random: a step of every stage after each of M microbatches, so K = S M.

What is held fixed when S grows decides every statement about S, so it is said each time. `sigma`, `B` are of the whole
gradient; `HELD` rewrites a bound for a fixed noise or second moment of each stage's block: sigma^2 = S sigma_b^2,
B^2 = S G^2. `rates` has the tuned stepsizes, `stability` why a cost linear in S cannot be avoided.
"""

from theory.pipedream.parts import HELD, hold

__all__ = ["HELD", "hold"]
