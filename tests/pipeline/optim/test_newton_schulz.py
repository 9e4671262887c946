"""Newton-Schulz: torch's own bit for bit in bfloat16, and the limits of dtype and scale of every path."""

from __future__ import annotations

import io
import math

import pytest
import torch
from torch import nn
from torch.optim import Muon
from torch.optim._muon import _zeropower_via_newtonschulz

from pipeline.errors import InputError
from pipeline.optim import LMO, inexactness, lmo_direction
from pipeline.optim.polar import COEFFICIENTS, EPS, STEPS

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
SCALES = [1e-12, 1e-6, 1.0, 1e5, 1e30]
PATHS = [("exact", "bfloat16"), ("newton-schulz", "bfloat16"), ("newton-schulz", "working")]


def draw(seed, *shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def torch_direction(m):
    return _zeropower_via_newtonschulz(m.clone(), COEFFICIENTS, STEPS, EPS)  # a copy: it may divide its input in place


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5, 5), (64, 64), (96, 32), (32, 96), (1, 7), (7, 1)], ids=str)
def test_direction_is_torchs_bit_for_bit(shape, dtype):
    m = draw(0, *shape, dtype=dtype)
    kept = m.clone()
    d = lmo_direction(m, "spectral", "newton-schulz")
    assert torch.equal(d, torch_direction(m).to(dtype))
    assert d.dtype == dtype
    assert torch.equal(m, kept)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e5, 1e30])
def test_limits_of_scale_are_torchs_too(scale):
    m = draw(1, 16, 24) * scale
    d = lmo_direction(m, "spectral", "newton-schulz")
    assert torch.equal(d, torch_direction(m).float())
    if scale == 1e-12:  # norm below 1e-7: the direction shrinks
        assert float(d.norm()) < 0.1 * math.sqrt(16)
    elif scale == 1e30:  # the norm's square is not finite
        assert not d.any()
    else:
        assert 0.6 * math.sqrt(16) < float(d.norm()) < 1.3 * math.sqrt(16)


@pytest.mark.parametrize("shape", [(24, 24), (40, 16), (16, 40)], ids=str)
def test_a_step_is_torchs_bit_for_bit(shape):
    """Learning rate 1 by either scaling rule of torch, no momentum, no decay; three steps."""
    ours, theirs = (nn.Parameter(draw(2, *shape)) for _ in range(2))
    rows, columns = shape
    # Torch multiplies lr by sqrt(max(1, rows/columns)) in double precision: the weight of our group.
    mine = LMO([ours], lr=1.0, alpha=1.0, polar="newton-schulz", weight=math.sqrt(max(1, rows / columns)))
    other = Muon([theirs], lr=1.0, momentum=0.0, nesterov=False, weight_decay=0.0)
    for k in range(3):
        ours.grad, theirs.grad = draw(3 + k, *shape), draw(3 + k, *shape)
        mine.step()
        other.step()
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_working_is_the_same_iteration_in_the_working_dtype(dtype):
    m = draw(4, 48, 20, dtype=dtype)
    X = (m if dtype in (torch.float32, torch.float64) else m.float()).T
    X = X / X.norm()
    for _ in range(5):
        X = 3.4445 * X - 4.7750 * X @ X.T @ X + 2.0315 * X @ X.T @ X @ X.T @ X
    d = lmo_direction(m, "spectral", "newton-schulz", "working")
    allowed = 200 * torch.finfo(X.dtype).eps + (torch.finfo(dtype).eps if X.dtype != dtype else 0)
    assert float((d.double() - X.T.double()).abs().max()) <= allowed
    s = torch.linalg.svdvals(d.double())
    assert 0.67 < float(s.min()) <= float(s.max()) < 1.22


@pytest.mark.parametrize(("polar", "iteration_dtype"), PATHS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_scale_and_path(dtype, scale, polar, iteration_dtype):
    """Finite; the state's dtype survives saving and loading; the direction ignores the scale where that is promised."""
    base = draw(5, 16, 24, dtype=torch.float64)
    g = (base * scale).to(dtype)
    if not bool(torch.isfinite(g).all()):  # float16 ends at 65504: the gradient itself is lost, and that is not hidden
        assert bool(lmo_direction(g, "spectral", polar, iteration_dtype).isnan().all())
        return
    p = nn.Parameter(torch.zeros(16, 24, dtype=dtype))
    settings = {"lr": 1.0, "alpha": 1.0, "polar": polar, "iteration_dtype": iteration_dtype, "measure": True}
    optimizer = LMO([p], **settings)
    for _ in range(3):
        p.grad = g.clone()
        optimizer.step()
    assert bool(torch.isfinite(p).all())
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    again = LMO([p], lr=1.0, alpha=1.0)
    again.load_state_dict(torch.load(file, weights_only=True))
    state = again.state[p]
    assert state["momentum"].dtype == dtype
    assert torch.equal(state["momentum"], optimizer.state[p]["momentum"])
    assert state["inexactness"] == optimizer.state[p]["inexactness"]

    reference = lmo_direction(base, "spectral", polar, "working")
    d = lmo_direction(g, "spectral", polar, iteration_dtype)
    if dtype == torch.float16 and scale != 1.0:
        return  # subnormal entries: another matrix, not another scale
    if polar == "newton-schulz" and iteration_dtype == "bfloat16":
        if scale in (1e-6, 1.0, 1e5):  # the limits of scale: the test above
            assert float((d.double() - reference).norm() / reference.norm()) < 0.1  # bfloat16 in 15 products
        return
    allowed = {torch.float64: 1e-11, torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}[dtype]
    assert float((d.double() - reference).abs().max()) <= allowed


def test_float64_is_computed_in_float64_on_the_paths_that_say_so():
    m = draw(6, 32, 32, dtype=torch.float64)
    change = torch.zeros_like(m)
    change[0, 0] = 1e-12  # vanishes in any lower precision
    for polar, iteration_dtype in (("exact", "bfloat16"), ("newton-schulz", "working")):
        a, b = (lmo_direction(x, "spectral", polar, iteration_dtype) for x in (m, m + change))
        assert not torch.equal(a, b)
        assert float((a - b).abs().max()) < 1e-9
    a, b = (lmo_direction(x, "spectral", "newton-schulz") for x in (m, m + change))
    assert torch.equal(a, b)


def test_newton_schulz_of_zero_nan_and_other_norms():
    for iteration_dtype in ("bfloat16", "working"):
        assert not lmo_direction(torch.zeros(3, 4), "spectral", "newton-schulz", iteration_dtype).any()
        nan = lmo_direction(torch.full((3, 4), math.nan), "spectral", "newton-schulz", iteration_dtype)
        assert bool(nan.isnan().all())
    m = draw(7, 6, 5)
    for norm in ("sign", "row-l2", "frobenius"):
        assert torch.equal(lmo_direction(m, norm, "newton-schulz"), lmo_direction(m, norm))


def test_newton_schulz_is_as_inexact_as_its_polynomial_says():
    r_lo, r_hi = inexactness(m := draw(8, 64, 64), lmo_direction(m, "spectral", "newton-schulz"), "spectral")
    assert 0.68 < r_lo < 1.0 < r_hi < 1.22


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"polar": "svd"}, "polar: 'svd'; allowed are exact, newton-schulz"),
        ({"iteration_dtype": "float32"}, "iteration_dtype: 'float32'; allowed are bfloat16, working"),
        ({"measure": 1}, "measure: 1; allowed are True, False"),
    ],
)
def test_bad_settings(settings, message):
    p = nn.Parameter(torch.zeros(2, 2))
    with pytest.raises(InputError, match=f"^{message}$"):
        LMO([p], lr=0.1, alpha=0.5, **settings)
    with pytest.raises(InputError, match=f"^{message}$"):
        LMO([{"params": [p], **settings}], lr=0.1, alpha=0.5)
    if "measure" not in settings:
        with pytest.raises(InputError, match=f"^{message}$"):
            lmo_direction(torch.eye(2), "spectral", **settings)
