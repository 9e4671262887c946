"""What is measured: problems with known constants, runs of the real optimizer code, numbers with intervals."""
