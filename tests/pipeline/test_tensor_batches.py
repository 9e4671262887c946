"""Microbatches of tensors: epochs that cover every row once, pure in (seed, index), equal however a batch is cut."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from pipeline.data.tensors import TensorBatches
from pipeline.errors import InputError


def rows(N):
    """Row i is (i, i) with target -i."""
    numbers = torch.arange(N)
    return numbers[:, None].expand(N, 2).clone(), -numbers


def make(N=10, batch=4, microbatches=2, **options):
    return TensorBatches(*rows(N), batch, microbatches, **options)


def drawn(data, js):
    """Row numbers of microbatches, after a look at their inputs and targets."""
    found = []
    for j in js:
        inputs, targets = data.microbatch(j)
        assert torch.equal(inputs[:, 0], -targets) and torch.equal(inputs[:, 1], -targets)
        found.append((-targets).tolist())
    return found


def test_a_microbatch_depends_on_seed_and_index_alone():
    forwards = drawn(make(), range(40))
    one = make()
    assert drawn(one, reversed(range(40))) == forwards[::-1]  # epochs asked for in another order
    assert drawn(make(seed=1), range(40)) != forwards


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("N", "batch", "microbatches"), [(12, 4, 2), (12, 12, 3), (5, 1, 1), (6, 6, 6)])
def test_an_epoch_covers_every_row_once(N, batch, microbatches, shuffle):
    data = make(N, batch, microbatches, shuffle=shuffle)
    per_epoch = N // batch * microbatches
    epochs = []
    for epoch in range(3):
        parts = drawn(data, range(epoch * per_epoch, (epoch + 1) * per_epoch))
        assert {len(part) for part in parts} == {batch // microbatches}
        epochs.append([i for part in parts for i in part])
        assert sorted(epochs[-1]) == list(range(N))
    in_order = [epoch == list(range(N)) for epoch in epochs]
    assert not any(in_order) if shuffle else all(in_order)
    assert (len({tuple(epoch) for epoch in epochs}) == 3) == shuffle


def test_the_rest_of_an_epoch_is_left_out_in_that_epoch_only():
    data = make(10, 4, 2)
    assert data.batches_per_epoch == 2
    seen = []
    for epoch in range(20):
        numbers = [i for part in drawn(data, range(4 * epoch, 4 * epoch + 4)) for i in part]
        assert len(set(numbers)) == 8
        seen += numbers
    assert set(seen) == set(range(10))
    in_order = make(10, 4, 2, shuffle=False)
    assert drawn(in_order, range(5)) == [[0, 1], [2, 3], [4, 5], [6, 7], [0, 1]]


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_batch_has_the_same_rows_in_the_same_order_however_it_is_cut(shuffle):
    for k in (0, 2, 5):
        cuts = []
        for m in (1, 2, 3, 4, 6, 12):
            data = make(30, 12, m, shuffle=shuffle)
            cuts.append([i for part in drawn(data, range(k * m, (k + 1) * m)) for i in part])
        assert all(cut == cuts[0] for cut in cuts)


def test_one_permutation_is_kept_and_none_is_sent(monkeypatch):
    calls, philox = [], np.random.Philox

    def counting(key):
        calls.append(tuple(key))
        return philox(key=key)

    monkeypatch.setattr(np.random, "Philox", counting)
    data = make(10_000, 4, 2, seed=3)
    before = len(pickle.dumps(data))
    first = drawn(data, range(50))
    assert calls == [(3, 0)]
    drawn(data, [5000, 5001])
    assert calls == [(3, 0), (3, 1)]
    assert len(data._permutation) == 1
    assert len(pickle.dumps(data)) == before
    copy = pickle.loads(pickle.dumps(data))
    assert copy._permutation == {}
    assert drawn(copy, range(50)) == first
    assert len(data._permutation) == 1  # sending it took nothing from the sender


def test_a_frozen_value():
    with pytest.raises(AttributeError):
        make().batch = 2


def test_any_shapes_and_types_are_kept():
    images, labels = torch.rand(6, 3, 2, 2, dtype=torch.float64), torch.arange(6)
    x, y = TensorBatches(images, labels, 4, 2).microbatch(1)
    assert x.shape == (2, 3, 2, 2) and x.dtype == torch.float64 and y.shape == (2,)
    assert torch.equal(x, images[y])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch = 0: allowed are integers from 1 to the number of rows, 10"),
        ({"batch": 11, "microbatches": 1}, "batch = 11: allowed are integers from 1 to the number of rows, 10"),
        ({"batch": 2.0}, "batch = 2.0: allowed are integers from 1 to the number of rows, 10"),
        ({"batch": True}, "batch = True: allowed are integers from 1 to the number of rows, 10"),
        ({"batch": 5}, "batch = 5: must be a multiple of microbatches = 2"),
        ({"microbatches": 8}, "batch = 4: must be a multiple of microbatches = 8"),
        ({"microbatches": 0}, "microbatches = 0: allowed are integers of at least 1"),
        ({"microbatches": 1.5}, "microbatches = 1.5: allowed are integers of at least 1"),
        ({"seed": -1}, r"seed = -1: allowed are integers of at least 0 and below 2\^63"),
        ({"seed": 2**63}, r"seed = 9223372036854775808: allowed are integers of at least 0 and below 2\^63"),
        ({"shuffle": 1}, "shuffle = 1: allowed are True and False"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        (torch.zeros(4), torch.zeros(5), "targets has 5 rows: allowed are as many as inputs has, 4"),
        (torch.zeros(0, 3), torch.zeros(0), r"inputs of shape \(0, 3\): allowed are tensors of at least one row"),
        (torch.zeros(1), torch.tensor(1), r"targets of shape \(\): allowed are tensors of at least one row"),
        ([1, 2], torch.zeros(2), "inputs = list: allowed are tensors"),
    ],
)
def test_bad_tensors_are_refused(inputs, targets, message):
    with pytest.raises(InputError, match=message):
        TensorBatches(inputs, targets, 1, 1)
