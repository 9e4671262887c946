"""Many runs at once are the runs by themselves, of elementwise optimizers and of those that look at matrices."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from empirics.errors import InputError
from empirics.problems.gpt_corpus import gpt
from empirics.problems.gpt_replicas import gpt_replicas
from empirics.problems.replicas import ReplicaLoss, perceptron
from empirics.replica_runs import draw_rows, run_by_shape, run_replicas
from pipeline.optim.delayed import Delayed
from pipeline.optim.error_feedback import ErrorFeedback
from pipeline.optim.recipes import make_optimizer
from pipeline.optim.registry import REGISTRY

TEXT = bytes((7 * i * i + i) % 250 for i in range(2000))
GPT = gpt_replicas(TEXT, sequences=5, width=8, context=4)


def sgd(ps, lr=0.1):
    return torch.optim.SGD(ps, lr=lr, momentum=0.9, foreach=False)


def recipe(name, named):
    return Delayed(ErrorFeedback(make_optimizer(name, named), 1), 1)


def test_the_gpt_is_the_one_on_a_finite_corpus():
    """Value, gradient and Hessian products of the model that trains; several vectors at one point too."""
    other = gpt(TEXT, sequences=5, width=8, context=4)
    x = other.start()
    assert list(GPT.shapes) == list(x) and all(GPT.shapes[name] == tuple(v.shape) for name, v in x.items())
    f, g = other.value_and_gradient(x)
    whole = torch.cat([v.reshape(-1) for v in x.values()])
    assert torch.equal(whole, GPT.start)
    assert float(GPT.value(whole[None])[0]) == pytest.approx(f, rel=1e-12)
    gradient = torch.cat([v.reshape(-1) for v in g.values()])
    np.testing.assert_allclose(GPT.gradient(whole[None])[0], gradient, rtol=1e-9, atol=1e-12)
    v = torch.randn(3, GPT.n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pieces = torch.split(v[0], [p.numel() for p in x.values()])
    named = {name: part.view(p.shape) for (name, p), part in zip(x.items(), pieces, strict=True)}
    product = torch.cat([h.reshape(-1) for h in other.hessian_product(x, named).values()])
    at_once = GPT.hessian_products(whole, v)
    np.testing.assert_allclose(at_once[0], product, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(at_once, GPT.hessian_product(whole.expand(3, -1), v), rtol=1e-8, atol=1e-10)


def test_by_shape_an_elementwise_optimizer_makes_the_same_run():
    problem = perceptron(samples=8)
    rows = draw_rows(problem, 6, 3, 2, 0)
    for tau in (0, 2):
        one = run_replicas(problem, problem.start, lambda p, tau=tau: Delayed(sgd([p]), tau), rows)
        many = run_by_shape(problem, problem.start, lambda named, tau=tau: Delayed(sgd(named), tau), rows)
        assert np.array_equal(one.losses, many.losses)
        np.testing.assert_allclose(one.drift, many.drift, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_by_shape_replicas_do_not_touch(name):
    """A run among others is the run by itself, for each optimizer of the registry, up to the order of sums."""
    if REGISTRY[name].extra:
        pytest.importorskip("pytorch_optimizer")
    rows = draw_rows(GPT, 4, 2, 2, 0)
    both = run_by_shape(GPT, GPT.start, partial(recipe, name), rows)
    alone = run_by_shape(GPT, GPT.start, partial(recipe, name), rows[:, 1:])
    np.testing.assert_allclose(both.losses[:, 1:], alone.losses, rtol=1e-6)
    assert np.ptp(both.losses[-1]) > 0 and (both.losses[-1] < both.losses[0]).all()


def test_a_run_that_diverges_stops_and_is_labelled():
    problem = perceptron(samples=8)
    rows = draw_rows(problem, 30, 2, 2, 0)
    run = run_replicas(problem, problem.start, lambda p: Delayed(sgd([p], 50.0), 1), rows)
    assert run.diverged and np.isposinf(run.losses[-1]).all() and len(run.drift) < 29


def test_bad_input():
    with pytest.raises(InputError, match="sequences: 0"):
        gpt_replicas(TEXT, sequences=0)
    with pytest.raises(InputError, match="shapes: .* with 3 entries"):
        ReplicaLoss("x", 3, 1, lambda w, rows: w.sum(dim=1), torch.zeros(3), {"a": (2, 2)})
    with pytest.raises(InputError, match="rows: shape"):
        run_by_shape(GPT, GPT.start, partial(recipe, "sgd"), torch.zeros(3, 2).long())
