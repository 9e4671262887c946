"""`python -m staleproof`: the same command line as `staleproof`."""

from staleproof.cli import entry_point

if __name__ == "__main__":
    entry_point()
