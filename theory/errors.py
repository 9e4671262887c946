"""The one error of this room: input that a formula does not admit."""

from __future__ import annotations


class InputError(ValueError):
    """A value, name or combination that is refused. One line: field, value, what is allowed."""
