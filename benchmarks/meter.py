"""Where the time of a step goes: in the version store, the tags and the trace, or in torch's own work between them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage

from pipeline.engine.driver import StreamingDriver
from pipeline.engine.stage import VersionedStage


class Meter:
    """Seconds in functions that count, without those inside them that do not, and without the timers' own."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._calls = 0
        self._counts = [False]
        self._since = 0.0
        empty = self.wrap(lambda: None, True)
        for _ in range(10_000):
            empty()
        self._own = self._seconds / self._calls
        self._seconds, self._calls = 0.0, 0

    @property
    def seconds(self) -> float:
        return self._seconds - self._calls * self._own

    def _turn_to(self, counts: bool | None) -> None:
        now = time.perf_counter()
        if self._counts[-1]:
            self._seconds += now - self._since
        self._since = now
        if counts is None:
            self._counts.pop()
        else:
            self._counts.append(counts)

    def wrap(self, function: Callable[..., Any], counts: bool) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            self._turn_to(counts)
            try:
                return function(*args, **kwargs)
            finally:
                self._turn_to(None)

        return run

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Count all that a versioned stage and its driver do around torch's own forward, backward and step."""
        with contextlib.ExitStack() as stack:

            def replace_method(owner: Any, name: str, counts: bool) -> None:
                stack.enter_context(patch.object(owner, name, self.wrap(getattr(owner, name), counts)))

            def count_hooks(owner: Any, name: str) -> None:
                register = getattr(owner, name)

                def registering(module: Any, hook: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
                    return register(module, self.wrap(hook, True), *args, **kwargs)

                stack.enter_context(patch.object(owner, name, registering))

            for name in ("forward_microbatch", "backward_microbatch"):
                replace_method(VersionedStage, name, True)
            for name in ("_step", "_note"):
                replace_method(StreamingDriver, name, True)
            for name in ("forward_one_chunk", "backward_one_chunk"):
                assert getattr(VersionedStage, name) is getattr(PipelineStage, name)
                replace_method(VersionedStage, name, False)
            count_hooks(nn.Module, "register_forward_pre_hook")
            count_hooks(Tensor, "register_post_accumulate_grad_hook")
            yield
