"""Errors of the empirics room."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input: one line that names the field, the value and what is allowed."""
