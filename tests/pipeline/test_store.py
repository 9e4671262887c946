"""The version store: tags follow storages, dead storages are recycled, and a stale reader raises."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pipeline.engine.store import VersionStore
from pipeline.errors import VersionError


def step(store: VersionStore, version: int, change: float = 1.0) -> None:
    store.begin_step()
    with torch.no_grad():
        for handle in store.handles.values():
            handle.add_(change)
    store.end_step(version)


def make(capacity: int) -> tuple[nn.Module, VersionStore]:
    module = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        module.weight.zero_()
    return module, VersionStore(module, capacity)


def test_versions_hold_the_weights_of_their_step():
    module, store = make(3)
    step(store, 1)
    step(store, 2)
    for version in (0, 1, 2):
        store.bind(version)
        assert torch.equal(module.weight, torch.full((2, 2), float(version)))
        assert store.tags[module.weight.data_ptr()] == version


def test_a_recycled_storage_carries_the_new_tag():
    module, store = make(2)
    step(store, 1)
    store.bind(0)
    old = module.weight
    store.drop_below(1)
    step(store, 2)
    assert store.versions == [1, 2]
    assert store.tags[old.data_ptr()] == 2
    assert store.peak == 2


def test_a_backward_after_its_version_was_recycled_raises():
    module, store = make(2)
    step(store, 1)
    store.bind(0)
    x = torch.ones(1, 2, requires_grad=True)
    loss = module(x).sum()
    store.drop_below(1)
    step(store, 2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_backward_across_an_in_place_step_raises():
    module, store = make(1)
    store.bind(0)
    loss = module(torch.ones(1, 2, requires_grad=True)).sum()
    step(store, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_step_leaves_live_versions_alone():
    module, store = make(2)
    store.bind(0)
    x = torch.ones(1, 2, requires_grad=True)
    loss = module(x).sum()
    step(store, 1)
    loss.backward()
    assert torch.equal(x.grad, torch.zeros(1, 2))


def test_more_versions_than_promised_is_an_error():
    _, store = make(2)
    step(store, 1)
    with pytest.raises(VersionError, match="at most 2"):
        step(store, 2)


def test_the_newest_version_is_never_dropped():
    _, store = make(2)
    store.drop_below(5)
    assert store.versions == [0]
