"""Result folders for the tests of this room, made by the generators beside this file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import result_folders  # noqa: E402


@pytest.fixture(scope="session")
def sound_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished small run with its report written; tests must not change it."""
    from figures import write_report

    folder = result_folders.write(tmp_path_factory.mktemp("sound"))
    write_report(folder)
    return folder


@pytest.fixture(scope="session")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that goes wrong in practice, with its report written; tests must not change it."""
    from figures import write_report

    folder = result_folders.write_hostile(tmp_path_factory.mktemp("hostile"))
    write_report(folder)
    return folder
