"""What is said of a step that was checked."""

from __future__ import annotations

Values = dict[str, str]  # a counterexample: name -> fraction


def no_conclusion(found: Values | None) -> str:
    """Why a step is refused that does not follow."""
    how = "no counterexample found" if found is None else "counterexample " + show(found)
    return f"the conclusion does not follow; {how}"


def verdict(sharper: dict[str, Values | None], dropped: dict[str, Values | None]) -> str:
    """Why a step that follows is refused, "" if it is not."""
    for what, values in sharper.items():
        if values is None:
            return f"the sharper conclusion {what} is not refuted"
    for what, values in dropped.items():
        if values is None:
            return f"premise {what}: without it no counterexample is found; it is not needed"
    return ""


def show(values: Values) -> str:
    """A counterexample on one line."""
    return ", ".join(f"{name}={value}" for name, value in values.items())
