"""Errors of the pipeline room: bad input (nothing was started) and a run that failed."""


class InputError(ValueError):
    """Bad input: one line that names the field, the value and what is allowed."""


class RunError(RuntimeError):
    """A run failed after it had started: one line that names the stage, the step and the first error."""


class VersionError(RunError):
    """A stage would have used another weight version than its schedule names, or several at once."""
