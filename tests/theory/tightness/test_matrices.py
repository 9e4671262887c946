"""2 x 2 matrices: planes against singular values, L against sampled pairs, the stored instances."""

from __future__ import annotations

import numpy as np
import pytest

from theory.errors import InputError
from theory.tightness import matrices, matrix_search
from theory.tightness.circle import RADIUS, tau


def test_norms_and_polar_factor_in_planes():
    rng = np.random.default_rng(0)
    for v in rng.standard_normal((200, 4)):
        u, s, vt = np.linalg.svd(matrices.to_matrix(v))
        z, w = np.hypot(*v[:2]), np.hypot(*v[2:])
        assert s[0] == pytest.approx(z + w, rel=1e-12) and s[1] == pytest.approx(abs(z - w), abs=1e-12)
        assert s.sum() == pytest.approx(2 * max(z, w), rel=1e-12)
        unit = v.copy()
        unit[2:] *= z < w
        unit[:2] *= z >= w
        np.testing.assert_allclose(u @ vt, matrices.to_matrix(unit / max(z, w)), atol=1e-9)


def test_smoothness_is_attained_and_never_passed():
    rng = np.random.default_rng(1)
    Q = rng.standard_normal((4, 4))
    Q = Q + Q.T
    L = float(matrices.smoothness(Q))
    pairs = rng.standard_normal((20000, 4))
    gradient = pairs @ Q
    nuclear = np.maximum(np.hypot(*gradient.T[:2]), np.hypot(*gradient.T[2:]))
    ratio = nuclear / (np.hypot(*pairs.T[:2]) + np.hypot(*pairs.T[2:]))
    assert ratio.max() <= L * (1 + 1e-12)
    in_plane = pairs.copy()
    in_plane[:10000, :2] = 0
    in_plane[10000:, 2:] = 0
    gradient = in_plane @ Q
    nuclear = np.maximum(np.hypot(*gradient.T[:2]), np.hypot(*gradient.T[2:]))
    assert (nuclear / np.linalg.norm(in_plane, axis=1)).max() > 0.999 * L


def test_the_run_is_delayed_muon():
    instance = matrices.stored()[0]
    norms, last = matrices.run(instance.Q[None], instance.start[None], instance.tau, 12)
    x = [matrices.to_matrix(instance.start)]
    half = np.array([np.sum(b * b) for b in matrices.BASIS])

    def gradient(X):
        v = np.array([np.sum(b * X) for b in matrices.BASIS]) / half
        return matrices.to_matrix(instance.Q @ v / 2)

    for k in range(12):
        assert np.linalg.svd(gradient(x[k]), compute_uv=False).sum() == pytest.approx(norms[0, k], rel=1e-9)
        u, _, vt = np.linalg.svd(gradient(x[max(k - instance.tau, 0)]))
        x.append(x[k] - u @ vt)
    np.testing.assert_allclose(x[-1], matrices.to_matrix(last[0]), atol=1e-9)


@pytest.mark.parametrize("instance", matrices.stored(), ids=lambda i: f"tau{i.tau}")
def test_stored_instances(instance):
    """Late in a run from its own start: what the search reported, and not above the circle (its limit so far)."""
    average, least = instance.measured()
    radius = float(RADIUS.subs(tau, instance.tau))
    assert average == pytest.approx(instance.average, abs=1e-3) and least <= average
    assert 0.999 * radius < average < 1.001 * radius


def test_search_runs_and_bad_input():
    found, runs = matrix_search.search(1, 0.0)
    assert runs == matrix_search.BATCH and 0.3 < found["average"] <= 1.5
    with pytest.raises(InputError):
        matrices.run(np.eye(4)[None], np.ones((1, 4)), -1, 3)
    escaping = matrices.Instance(1, -np.eye(4), np.ones(4), 0.0)
    with pytest.raises(InputError, match="bounded"):
        escaping.measured(200, 100)
