"""What a correction for delay keeps between steps, counted in buffers as large as a stage's weights."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import InputError

FORMS = ("extrapolate", "telescoped")
NAMES = ("error-feedback", "weight-prediction", "gradient-extrapolation", "delay-compensation", "lr-discount")


@dataclass(frozen=True)
class CorrectionBuffers:
    """A correction by name, with what its memory depends on: form of error feedback, adaptive delay compensation.

    Raises InputError, naming the field, for an unknown name or form, or one that the correction does not have.
    """

    name: str
    form: str = "extrapolate"
    adaptive: bool = False

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise InputError(f"correction: {self.name!r}; allowed are none, {', '.join(NAMES)}")
        if self.form not in FORMS:
            raise InputError(f"form: {self.form!r}; allowed are {', '.join(FORMS)}")
        if self.form != "extrapolate" and self.name != "error-feedback":
            raise InputError(f"form: {self.form!r} with correction {self.name!r}; allowed with error-feedback")
        if self.adaptive and self.name != "delay-compensation":
            raise InputError(f"adaptive: True with correction {self.name!r}; allowed with delay-compensation")

    @property
    def settings(self) -> dict[str, str | bool]:
        """Name, and what the correction has of the other two."""
        own: dict[str, str | bool] = {"name": self.name}
        if self.name == "error-feedback":
            own["form"] = self.form
        if self.name == "delay-compensation":
            own["adaptive"] = self.adaptive
        return own

    def count(self, tau: int) -> int:
        """Buffers for a delay of tau optimizer steps; none without a delay."""
        if tau == 0 or self.name == "lr-discount":
            return 0
        if self.name == "delay-compensation":
            return tau + self.adaptive
        return tau if self.form == "telescoped" else 1
