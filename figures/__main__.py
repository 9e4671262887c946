"""``python -m figures DIR``: redraw the report of a result folder without recomputing anything."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from figures import InputError, write_report


def main(arguments: list[str] | None = None) -> int:
    """Redraw one folder and print the paths written; 0 if it worked, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m figures", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with status.json and the section files")
    options = parser.parse_args(arguments)
    try:
        for path in write_report(options.folder):
            print(path)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
