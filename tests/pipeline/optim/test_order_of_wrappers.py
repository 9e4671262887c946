"""The correction goes inside the delay line: the other order is another method and is refused."""

from __future__ import annotations

import pytest
import torch

from pipeline.errors import InputError
from pipeline.optim import Delayed, ErrorFeedback


def test_error_feedback_around_a_delay_line_is_refused():
    p = torch.nn.Parameter(torch.zeros(2))
    with pytest.raises(InputError, match="base_optimizer: a Delayed; allowed is Delayed"):
        ErrorFeedback(Delayed(torch.optim.SGD([p], lr=0.1), 1), 1)
    assert Delayed(ErrorFeedback(torch.optim.SGD([p], lr=0.1), 1), 1).tau == 1
