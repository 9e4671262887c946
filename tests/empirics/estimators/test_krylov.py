"""The one loop of Lanczos: it ends where nothing but round-off is new, start by start, a recursion until then."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from empirics.estimators.krylov import krylov_spaces

D = 24


@pytest.fixture
def H():
    return torch.diag(torch.linspace(1.0, 5.0, D, dtype=torch.float64))


@pytest.mark.parametrize("directions", [2, 3, 5])
def test_a_space_of_few_eigenvectors_ends_after_as_many_products(H, directions):
    """The rest is then round-off, but rarely 0: what is allowed for it is measured by the longest product so far."""
    starts, rests = np.random.default_rng(1).uniform(0.5, 1, (8, directions)), []
    for one in starts:
        start = torch.zeros(D, dtype=torch.float64)
        start[torch.arange(directions) * 4] = torch.from_numpy(one)
        spaces = list(krylov_spaces(lambda v: v @ H, start[None], D))
        assert len(spaces) == directions and bool(spaces[-1].ended[0])
        nodes = np.linalg.eigvalsh(spaces[-1].T[0].numpy())
        np.testing.assert_allclose(nodes, torch.diag(H)[::4][:directions], rtol=1e-12)
        rests.append(float(spaces[-1].rest[0]))
    assert max(rests) > 0


def test_a_space_that_has_ended_goes_on_as_zeros_beside_one_that_has_not(H):
    starts = torch.ones(2, D, dtype=torch.float64)
    starts[0, 2:] = 0
    *_, last = krylov_spaces(lambda v: v @ H, starts, 6)
    assert bool(last.ended[0]) and not bool(last.ended[1])
    assert float(last.basis[0, 2:].abs().max()) == 0.0 and float(last.T[0, 2:].abs().max()) == 0.0
    Q = last.basis[1]
    np.testing.assert_allclose(Q @ Q.T, np.eye(6), atol=1e-13)
    np.testing.assert_allclose(Q @ H @ Q.T, last.T[1], atol=1e-13)


def test_size_is_that_of_the_longest_product(H):
    start = torch.zeros(D, dtype=torch.float64)
    start[:3], start[-1] = 1.0, 1e-2  # the first product is short, a later one long
    sizes, seen = [], []

    def product(v):
        w = v @ H
        seen.append(float(w.norm()))
        return w

    for space in krylov_spaces(product, start[None], D):
        sizes.append(float(space.size[0]))
    assert sizes == [max(seen[: k + 1]) for k in range(len(seen))]
    assert seen[0] < max(seen) > seen[-1]
