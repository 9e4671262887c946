"""results.md has a part for each benchmark; writing one leaves the others as they are."""

from __future__ import annotations

from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results.md"


def replace_part(text: str, name: str, part: str) -> str:
    """``text`` with the part of that name replaced, or with it at the end where there is none."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2].strip("\n")
    pieces = [before.rstrip(), f"{begin}\n\n{part.strip()}\n\n{end}", after]
    return "\n\n".join(piece for piece in pieces if piece).lstrip("\n") + "\n"


def write_part(name: str, part: str) -> None:
    """Put a benchmark's part into results.md."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    RESULTS.write_text(replace_part(text, name, part), encoding="utf-8")
