"""The conductor: command line, sections, claims and verdict. The only package that knows all four rooms."""

__version__ = "0.1.0"
