"""Exit codes, and the error of this package for bad input.

Every room has its own `InputError(ValueError)`: one line naming the field, the value and what is allowed.
The command line turns any of them into exit code 2, a `pipeline.errors.RunError` into 3.
"""

EXIT_HOLDS = 0
EXIT_CLAIM_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_RUN_FAILED = 3
EXIT_INTERRUPTED = 130


class InputError(ValueError):
    """Bad input to the conductor; the message is one line naming the field, the value and what is allowed."""
