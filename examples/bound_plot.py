"""Theorem 1 against a real run: matrix least squares, spectral norm, gradients 2 steps old. Draws a PDF."""

import sys

import matplotlib.pyplot as plt
import numpy as np

from empirics.lmo_path import Setting, record
from empirics.norms import get_norm
from empirics.problems.matrix_least_squares import random_problem
from theory import get_bound

problem, dual = random_problem(), get_norm("spectral").dual
setting = Setting("example", tau=2, eta=0.02, alpha=0.1, K=2000)
run = record(problem, setting, noise=np.zeros((setting.K, *problem.shape)))
norms, K = dual(problem.grad(run.x[:-1])), np.arange(1, setting.K + 1)
constants = dict(L=problem.L(), Delta0=problem.f(run.x[0]) - problem.f_star, E0=norms[0], sigma=0, rho=1)
bound = get_bound("delayed-lmo").evaluate(eta=0.02, alpha=0.1, tau=2, K=K, **constants)
plt.loglog(K, bound, label="Theorem 1, an upper bound")
plt.loglog(K, np.cumsum(norms) / K, label="measured")
plt.xlabel("steps K")
plt.ylabel("mean dual norm of the gradient over K steps")
plt.legend()
plt.savefig(target := sys.argv[1] if len(sys.argv) > 1 else "bound_plot.pdf")
print(target)
