"""The exact polar factor against the naive one (an SVD in float64), over conditioning, shape, scale and dtype."""

from __future__ import annotations

import pytest
import torch

from pipeline.optim import lmo_direction
from pipeline.optim import polar as module
from pipeline.optim.polar import exact_polar, svd_polar

SHAPES = [(64, 64), (100, 100), (200, 200), (160, 60), (60, 160), (300, 97)]


def orthonormal(rows, columns, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(rows, columns, generator=generator, dtype=torch.float64))[0]


def with_spectrum(shape, s, seed=0):
    """A matrix with these singular values, largest entry 1."""
    A = orthonormal(shape[0], len(s), seed) * s @ orthonormal(shape[1], len(s), seed + 1).T
    return A / A.abs().max()


def spectrum(law, n, condition):
    s = torch.logspace(0, -torch.log10(torch.tensor(condition)).item(), n, dtype=torch.float64)
    if law == "one short":
        s = torch.linspace(1, 0.5, n, dtype=torch.float64)
        s[-1] = 1 / condition
    return s


def defects(A, U):
    """Of a polar factor U of A, in float64: singular values off 0 and 1; A - U H for symmetric H; U'A not positive."""
    A, U = A.double(), U.double()
    if A.shape[0] < A.shape[1]:
        A, U = A.T, U.T
    s = torch.linalg.svdvals(U)
    H = U.T @ A
    size = torch.linalg.matrix_norm(A, ord=2)
    low = torch.linalg.eigvalsh((H + H.T) / 2)[0]
    return (
        float((s - s.round()).abs().max()),
        float(torch.linalg.matrix_norm(H - H.T, ord=2) / size),
        float(-low / size),
        int(s.round().sum()),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("condition", [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e8, 1e10, 1e12, 1e14])
@pytest.mark.parametrize("law", ["geometric", "one short"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_as_good_as_the_svd_at_every_condition_number(shape, law, condition, dtype):
    A = with_spectrum(shape, spectrum(law, min(shape), condition)).to(dtype)
    eps = torch.finfo(dtype).eps
    orthogonality, asymmetry, negative, rank = defects(A, exact_polar(A))
    # Backward stable: round-off of products of this size, 3 to 12 eps for the SVD path itself.
    assert orthogonality <= 30 * eps
    assert asymmetry <= 30 * eps
    assert negative <= 30 * eps
    s = torch.linalg.svdvals(A.double())
    cut = s[0] * max(shape) * eps
    certain = ((s > 1.25 * cut) | (s < 0.75 * cut)).all()
    assert not certain or rank == int((s > cut).sum())


@pytest.mark.parametrize("condition", [1e0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_close_to_the_true_factor(shape, condition):
    n = min(shape)
    A = with_spectrum(shape, spectrum("geometric", n, condition))
    truth = orthonormal(shape[0], n, 0) @ orthonormal(shape[1], n, 1).T
    # The factor moves by 2/(s_n + s_(n-1)) per unit of change in A, whose own entries are rounded.
    allowed = 100 * condition * torch.finfo(torch.float64).eps
    assert float(torch.linalg.matrix_norm(exact_polar(A) - truth, ord=2)) <= allowed


def test_the_fast_path_is_taken_and_the_svd_where_it_must_be(monkeypatch):
    calls = []
    monkeypatch.setattr(module, "svd_polar", lambda A: calls.append(A) or svd_polar(A))
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.float64):
        for shape in ((64, 64), (256, 256), (256, 64), (64, 256)):
            exact_polar(torch.randn(shape, generator=generator, dtype=dtype))
    assert not calls
    exact_polar(with_spectrum((64, 64), torch.logspace(0, -14, 64, dtype=torch.float64)))
    assert len(calls) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("rank", [1, 5, 40, 59, 63])
@pytest.mark.parametrize("shape", [(64, 64), (200, 200), (160, 64), (64, 160)], ids=str)
def test_rank_deficient(shape, rank, dtype):
    """A product of thin factors, and exactly zero rows and columns: a partial isometry of that rank, the SVD's."""
    generator = torch.Generator().manual_seed(rank)
    thin = torch.randn(shape[0], rank, generator=generator, dtype=torch.float64)
    product = thin @ torch.randn(rank, shape[1], generator=generator, dtype=torch.float64)
    padded = torch.zeros(shape, dtype=torch.float64)
    padded[:rank, :rank] = torch.randn(rank, rank, generator=generator, dtype=torch.float64)
    for A in (product, padded):
        A = (A / A.abs().max()).to(dtype)
        U, reference = exact_polar(A), svd_polar(A)
        orthogonality, asymmetry, negative, found = defects(A, U)
        eps = torch.finfo(dtype).eps
        assert found == rank
        assert max(orthogonality, asymmetry, negative) <= 30 * eps
        s = torch.linalg.svdvals(A.double())
        allowed = 100 * eps * float(s[0] / s[rank - 1])
        assert float(torch.linalg.matrix_norm((U - reference).double(), ord=2)) <= allowed


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_tied_singular_values(dtype):
    for s in ([1.0] * 64, [1.0] * 32 + [0.1] * 32, [1.0] * 60 + [1e-2] * 4, [1.0] * 62 + [1e-3] * 2):
        A = with_spectrum((96, 64), torch.tensor(s, dtype=torch.float64)).to(dtype)
        truth = orthonormal(96, 64, 0) @ orthonormal(64, 64, 1).T
        allowed = 100 * torch.finfo(dtype).eps / s[-1]
        assert float(torch.linalg.matrix_norm(exact_polar(A).double() - truth, ord=2)) <= allowed
    # An orthogonal matrix and a diagonal one are nothing to guess at.
    Q = orthonormal(64, 64, 3)
    torch.testing.assert_close(exact_polar(Q), Q, rtol=0, atol=1e-13)
    torch.testing.assert_close(exact_polar(torch.diag(torch.arange(1.0, 65.0))), torch.eye(64), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "shape", [(1, 70), (70, 1), (1, 1), (8, 6), (64, 64), (96, 64), (64, 96), (8, 4, 3, 3)], ids=str
)
@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_direction_at_every_shape_and_scale(shape, scale):
    m = torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    rows = m.reshape(shape[0], -1)
    d = lmo_direction(m * scale, "spectral")
    assert d.shape == m.shape
    torch.testing.assert_close(d.reshape(rows.shape), svd_polar(rows), rtol=0, atol=1e-11)
    assert torch.equal(lmo_direction(m * 0, "spectral"), m * 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_dtype_of_the_result_and_the_arithmetic(dtype):
    m = torch.randn(64, 64, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(dtype)
    d = lmo_direction(m, "spectral")
    assert d.dtype == dtype
    expected = svd_polar(m.double())
    # Half precision is rounded once, at the end; float64 is never taken through a lower precision.
    allowed = {torch.float64: 1e-11, torch.float32: 1e-4}.get(dtype, torch.finfo(dtype).eps)
    assert float((d.double() - expected).abs().max()) <= allowed


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_deterministic_and_transposes(shape):
    for dtype in (torch.float32, torch.float64):
        A = torch.randn(shape, generator=torch.Generator().manual_seed(4), dtype=dtype)
        kept = A.clone()
        first = exact_polar(A)
        assert torch.equal(first, exact_polar(A.clone()))
        assert torch.equal(A, kept)
        allowed = 1e-2 if dtype == torch.float32 else 1e-10
        assert float((exact_polar(A.T.contiguous()) - first.T).abs().max()) <= allowed


@pytest.mark.parametrize(
    ("angle", "condition"),
    [(0.0, 10), (1e-9, 10), (1e-8, 10), (1e-4, 10), (0.0, 1e6), (1e-8, 1e6), (1e-7, 1e6), (1e-4, 1e6)],
)
def test_wrong_eigenvectors_are_corrected_or_the_svd_decides(angle, condition, monkeypatch):
    """The eigenvectors turned by an angle: far beyond their own error in float64, where each order shows."""
    n, right = 100, torch.linalg.eigh
    s = torch.linspace(1, 0.1 if condition == 10 else 0.9, n, dtype=torch.float64)
    s[-3:] = 1 / condition  # at 1e6 these are separated first
    A = with_spectrum((120, n), s)
    generator = torch.Generator().manual_seed(5)
    K = torch.randn(n, n, generator=generator, dtype=torch.float64)
    turn = torch.linalg.qr(torch.eye(n, dtype=torch.float64) + angle * (K - K.T) / 2)[0]

    def turned(G):
        L, V = right(G)
        return L, V @ turn

    calls = []
    monkeypatch.setattr(torch.linalg, "eigh", turned)
    monkeypatch.setattr(module, "svd_polar", lambda A: calls.append(A) or svd_polar(A))
    orthogonality, asymmetry, negative, rank = defects(A, exact_polar(A))
    eps = torch.finfo(torch.float64).eps
    # The SVD path, with no correction after it, is less symmetric: 50 eps here.
    assert max(orthogonality, asymmetry, negative) <= (100 if calls else 30) * eps
    assert rank == n
    assert bool(calls) == (angle == 1e-4)
