"""Errors of this room."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input: one line that names the field, its value and what is allowed."""
