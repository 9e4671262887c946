"""The state of every optimizer of the registry, carried by name by the wrappers and by the engine: nothing is lost."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from pipeline.engine.state import belongs, decode, encode, fresh_settings, load_optimizer, optimizer_state
from pipeline.errors import InputError, RunError
from pipeline.optim import OPTIMIZERS, REGISTRY, Chained, Delayed, ErrorFeedback, make_optimizer
from pipeline.optim.wrapper import load_exactly

SHAPES = {"layers.0.embed": (7, 4), "layers.1.weight": (6, 4), "layers.1.bias": (6,), "layers.2.head": (5, 4)}


def build(names=SHAPES, dtype=torch.float64):
    """Name -> parameter; each drawn by its own name, so any partition has the same."""
    return {
        name: nn.Parameter(torch.randn(SHAPES[name], generator=seeded(name), dtype=torch.float64).to(dtype))
        for name in names
    }


def seeded(name, step=0):
    return torch.Generator().manual_seed(list(SHAPES).index(name) + 100 * step)


@pytest.mark.parametrize("shape", [(5, 3), (1, 4), (4, 1), (1, 1), (0, 3), (3, 0), (2, 3, 4), (7,), ()])
def test_tensors_keep_their_strides(shape):
    """A matrix in another layout is multiplied in another order."""
    t = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    for kept in (t, t.permute(tuple(reversed(range(t.ndim)))), t.movedim(0, -1) if t.ndim else t):
        encoded = encode({"state/w/x": kept})
        assert all(value.is_contiguous() for value in encoded.values())
        back = decode({key: value.clone() for key, value in encoded.items()})["state/w/x"]
        assert torch.equal(back, kept)
        assert back.stride() == kept.stride()


def advance(ps, optimizer, steps):
    for step in steps:
        for name, p in ps.items():
            noise = torch.randn(p.shape, generator=seeded(name, step + 1), dtype=torch.float64)
            p.grad = (p.detach().double() + noise).to(p.dtype)
        optimizer.step()


def assert_same(ps, qs):
    for name in qs:
        assert torch.equal(ps[name], qs[name]), name


def flat_checkpoint(ps, optimizer, fresh):
    state = optimizer_state(optimizer, SimpleNamespace(handles=ps)) | {f"fresh/{n}": s for n, s in fresh.items()}
    return encode(state)


@pytest.mark.parametrize("correction", ["none", "error-feedback"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_another_partition_goes_on_from_it(name, correction):
    ps = build()
    whole = make_optimizer(name, list(ps.items()), correction=correction)
    fresh = fresh_settings(whole, SimpleNamespace(handles=ps))
    advance(ps, whole, range(12))
    saved = flat_checkpoint(ps, whole, fresh)
    assert all(isinstance(value, torch.Tensor) for value in saved.values())
    halves = [list(SHAPES)[:2], list(SHAPES)[2:]]
    parts = [build(names) for names in halves]
    for qs in parts:
        store = SimpleNamespace(handles=qs)
        with torch.no_grad():
            for n, q in qs.items():
                q.copy_(ps[n])
        optimizer = make_optimizer(name, list(qs.items()), correction=correction)
        mine = {key: value for key, value in saved.items() if belongs(key, store, SimpleNamespace(stage_index=0))}
        load_optimizer(optimizer, store, decode(mine))
        again = flat_checkpoint(qs, optimizer, {n: fresh[n] for n in qs})
        assert sorted(again) == sorted(key for key in mine if not key.startswith("rng"))
        for key, value in again.items():
            assert value.dtype == mine[key].dtype, key
            assert torch.equal(value, mine[key]), key
        advance(qs, optimizer, range(12, 24))
    advance(ps, whole, range(12, 24))
    for qs in parts:
        assert_same(ps, qs)


@pytest.mark.parametrize("saved_after", [0, 1, 7])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_wrappers_resume_it_through_a_file_that_runs_no_code(name, dtype, saved_after, tmp_path):
    def wrapped(ps):
        return Delayed(ErrorFeedback(make_optimizer(name, list(ps.items())), 2, "telescoped"), 2)

    ps = build(dtype=dtype)
    optimizer = wrapped(ps)
    advance(ps, optimizer, range(saved_after))
    torch.save({"optimizer": optimizer.state_dict(), "weights": {n: p.detach() for n, p in ps.items()}}, tmp_path / "c")
    saved = torch.load(tmp_path / "c", weights_only=True)
    qs = {n: nn.Parameter(w) for n, w in saved["weights"].items()}
    resumed = wrapped(qs)
    resumed.load_state_dict(saved["optimizer"])
    for step in range(saved_after, 15):
        advance(ps, optimizer, [step])
        advance(qs, resumed, [step])
        assert_same(ps, qs)


def widened(value):
    """float32 copies of all floating tensors in a state, with a part that bfloat16 cannot hold."""
    if isinstance(value, torch.Tensor):
        return value.float() + 1e-5 if value.is_floating_point() and value.ndim else value
    if isinstance(value, dict):
        return {key: widened(item) for key, item in value.items()}
    return type(value)(map(widened, value)) if isinstance(value, (list, tuple)) else value


def flat_tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else []
    return [t for item in inner for t in flat_tensors(item)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_float32_state_of_bfloat16_weights_is_not_cast(name):
    ps = build(dtype=torch.bfloat16)
    optimizer = make_optimizer(name, list(ps.items()))
    advance(ps, optimizer, range(3))
    saved = copy.deepcopy(optimizer.state_dict())
    saved["state"] = widened(saved["state"])
    again = make_optimizer(name, list(build(dtype=torch.bfloat16).items()))
    load_exactly(again, saved)
    mine, theirs = flat_tensors(again.state_dict()["state"]), flat_tensors(saved["state"])
    assert len(mine) == len(theirs) > 0
    for a, b in zip(mine, theirs, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


def test_torch_alone_casts_the_product_of_nadam():
    ps = build()
    optimizer = make_optimizer("nadam", list(ps.items()))
    advance(ps, optimizer, range(2))
    plain, exact = (make_optimizer("nadam", list(build().items())) for _ in range(2))
    plain.load_state_dict(optimizer.state_dict())
    load_exactly(exact, optimizer.state_dict())
    dtypes = [{state["mu_product"].dtype for state in o.state.values()} for o in (optimizer, plain, exact)]
    assert dtypes == [{torch.float32}, {torch.float64}, {torch.float32}]
    assert any("mu_product" in line for line in REGISTRY["nadam"].known)


class Odd(torch.optim.SGD):
    """SGD with something in its state."""

    def __init__(self, named, value):
        super().__init__(named, lr=0.1)
        self.value = value

    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["odd"] = self.value


TENSOR = torch.arange(3)


@pytest.mark.parametrize("value", [[TENSOR, [], None], (TENSOR, (1, "a")), {"a": {"b": [TENSOR.double()]}}, [], {}])
def test_nested_state_comes_back_as_it_was(value):
    ps, qs = build(), build()
    store, other = SimpleNamespace(handles=ps), SimpleNamespace(handles=qs)
    optimizer, again = Odd(list(ps.items()), value), Odd(list(qs.items()), None)
    fresh = fresh_settings(optimizer, store)
    advance(ps, optimizer, range(1))
    load_optimizer(again, other, decode(flat_checkpoint(ps, optimizer, fresh)))
    for p, q in zip(ps.values(), qs.values(), strict=True):
        assert repr(again.state[q]) == repr(optimizer.state[p])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({0: 1}, "odd: the key 0"),
        ({"a/b": 1}, "the key 'a/b'"),
        ({"#a": 1}, "the key '#a'"),
        ([1, {2}], r"odd/\[1\] = \{2\}"),
        (torch.Size([1]), "torch.Size"),
    ],
)
def test_state_that_cannot_be_carried_is_refused(value, message):
    ps = build()
    optimizer = Odd(list(ps.items()), value)
    fresh = fresh_settings(optimizer, SimpleNamespace(handles=ps))
    advance(ps, optimizer, range(1))
    with pytest.raises(RunError, match=message):
        flat_checkpoint(ps, optimizer, fresh)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_follows_names_or_is_refused(name):
    """Two layers of one shape in another order: their moments would swap in silence."""

    def two(order):
        ps = {n: nn.Parameter(torch.ones(4, 4)) for n in order}
        return make_optimizer(name, list(ps.items()))

    saved = two(["a.weight", "b.weight"]).state_dict()
    with pytest.raises(InputError, match=r"parameters of group \d differ: [ab].weight is saved as [ab].weight"):
        load_exactly(two(["b.weight", "a.weight"]), saved)
    load_exactly(two(["a.weight", "b.weight"]), saved)


def test_a_parameter_in_two_groups_is_refused_with_both_named():
    p, q = nn.Parameter(torch.ones(3, 3)), nn.Parameter(torch.ones(3, 3))
    first = torch.optim.Muon([("tied", p)], lr=0.1)
    second = torch.optim.SGD([{"params": [("other", q)]}, {"params": [("tied", p)]}], lr=0.1)
    with pytest.raises(InputError, match="parameter tied is in group 0 and in group 2; allowed is one"):
        Chained([first, second])
