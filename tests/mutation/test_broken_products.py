"""Break the product, one place at a time, and see `staleproof verify` end with exit 1 and the named claims red.

Each case patches the source of a copy of the packages and runs the command in a process of its own, in the background
(see conftest.py of this folder). The text that is replaced must stand in the file exactly once, so a case cannot
quietly stop breaking anything. That the unbroken product is green on the same preset is a test of its own,
tests/staleproof/test_end_to_end.py.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = ROOT / "README.md"  # to train on; as in the test of the unbroken product
PACKAGES = ("theory", "empirics", "pipeline", "figures", "staleproof")

pytestmark = pytest.mark.mutation


@dataclass(frozen=True)
class Break:
    """What is broken: ``old`` becomes ``new`` in ``file``; ``red``: claims that must fail among ``sections``."""

    name: str
    file: str
    old: str
    new: str
    sections: str
    red: tuple[str, ...]

    @property
    def draws(self) -> bool:
        """Whether the report of the broken run is drawn too: where several sections are red."""
        return "training" in self.sections and "," in self.sections


LMO = "theory/lmo/"
REAL_RUNS = "delays,training"
CASES = [
    Break(
        "the stage reads its newest version instead of the schedule's",
        "pipeline/engine/stage.py",
        "version = self.schedule.version(self.stage_index, j)",
        "version = self.store.newest",
        REAL_RUNS,
        (
            "delays.trace.pipedream-2bw",
            "training.oracle-equality.adamw.pipedream-2bw.none",
            "training.theorem-run-equality",
        ),
    ),
    Break(
        "the stage reads one version too old",
        "pipeline/engine/stage.py",
        "version = self.schedule.version(self.stage_index, j)",
        "version = max(self.schedule.version(self.stage_index, j) - 1, 0)",
        REAL_RUNS,
        ("delays.trace.pipedream-2bw", "training.oracle-equality.adamw.1f1b.none"),
    ),
    Break(
        "the storage is tagged one version too high",
        "pipeline/engine/store.py",
        "self.tags[leaf.data_ptr()] = slot.version",
        "self.tags[leaf.data_ptr()] = slot.version + 1",
        "delays",
        ("delays.trace.1f1b", "delays.trace.pipedream", "delays.trace.pipedream-2bw"),
    ),
    Break(
        "the rule of the 2BW schedule is off by one",
        "pipeline/schedules/pipedream_2bw.py",
        "return max(microbatch // self.microbatches - self.delay, 0)",
        "return max(microbatch // self.microbatches - self.delay - 1, 0)",
        "delays",
        ("delays.closed-form.pipedream-2bw", "delays.trace.pipedream-2bw"),
    ),
    Break(
        "PipeDream's closed form is off by one",
        "theory/delays/pipedream.py",
        "    delay=sp.ceiling((S - 1 - stage) / m),",
        "    delay=sp.ceiling((S - stage) / m),",
        "delays",
        ("delays.closed-form.pipedream", "delays.trace.pipedream"),
    ),
    Break(
        "an AMDP device serves its forwards in another order",
        "pipeline/schedules/amdp.py",
        "forwards = [p + P * second for _, second, p in sorted(arrivals)]",
        "forwards = [p + P * second for _, second, p in sorted(arrivals, reverse=True)]",
        "delays",
        ("delays.clock.amdp", "delays.valid.amdp"),
    ),
    Break(
        "one schedule takes a slot more than it should",
        "pipeline/schedules/zb_h1.py",
        "if n >= device:",
        "if n > device:",
        "delays",
        ("delays.valid.zb-h1",),
    ),
    Break(
        "activations arrive before they are computed",
        "pipeline/clock.py",
        "self._arrival(d, self.device_of[s + 1, pipeline], end))",
        "self._arrival(d, self.device_of[s + 1, pipeline], 0))",
        "delays",
        ("delays.clock.1f1b", "delays.clock.amdp"),
    ),
    Break(
        "the correction has the wrong sign in the optimizer wrapper",
        "pipeline/optim/error_feedback.py",
        "    x.add_(correction)",
        "    x.sub_(correction)",
        "quadratic,certified,training",
        (
            "certified.identity-y",
            "quadratic.joint-test",
            "training.oracle-equality.adamw.pipedream-2bw.error-feedback",
            "training.oracle-equality.muon.pipedream-2bw.error-feedback",
        ),
    ),
    Break(
        "one arm sees its data in another order",
        "pipeline/training.py",
        "return ByteBatches(text, self.model.context, self.sequences, self.seed, self.pool)",
        'return ByteBatches(text, self.model.context, self.sequences, self.seed + len(self.correction), self.pool)',
        "training",
        ("training.data-order", "training.same-start"),
    ),
    Break(
        "the arms differ in their learning rate",
        "staleproof/sections/_training_plan.py",
        "        correction=correction,\n        seed=preset.seed + seed,",
        '        correction=correction,\n        lr=1e-4 * len(schedule),\n        seed=preset.seed + seed,',
        "training",
        ("training.same-settings",),
    ),
    Break(
        "every seed draws the same data",
        "pipeline/data/batches.py",
        "np.random.Philox(key=[self.seed, j])",
        "np.random.Philox(key=[0, j])",
        "training",
        ("training.distinct-seeds",),
    ),
    Break(
        "one stage drops the gradient of a microbatch",
        "pipeline/engine/stage.py",
        "        self.backward_one_chunk(j % self.slots, loss=loss)",
        "        for leaf in leaves.values():\n"
        "            leaf.grad = None\n"
        "        self.backward_one_chunk(j % self.slots, loss=loss)",
        "training",
        ("training.oracle-equality.adamw.pipedream-2bw.none", "training.oracle-equality.adamw.1f1b.none"),
    ),
    Break(
        "the delay line of the optimizer wrapper is one step too short",
        "pipeline/optim/delayed.py",
        "self.tau = check_tau(tau)",
        "self.tau = max(check_tau(tau) - 1, 0)",
        "quadratic,certified",
        ("quadratic.joint-test", "quadratic.noise-free"),
    ),
    Break("descent: 2 -> 1.9", LMO + "descent.py", '"momentum_error": 2 *', '"momentum_error": Rational(19, 10) *',
          "certified", ("tight.descent",)),
    Break("descent: 1/2 -> 0.45", LMO + "descent.py", '"step": Rational(1, 2) *', '"step": Rational(9, 20) *',
          "certified", ("tight.descent",)),
    Break("delay lemma: tau -> tau - 1", LMO + "delay.py", '"delay": L * eta * Min(k, tau)',
          '"delay": L * eta * Min(k, tau - 1)', "certified", ("tight.delay", "certified.delay")),
    Break("average: 2 -> 1.9", LMO + "average.py", '"momentum_error": 2 *', '"momentum_error": Rational(19, 10) *',
          "certified", ("tight.average",)),
    Break("momentum error: start", LMO + "momentum_error.py", '"start": (1 - alpha) ** (k + 1) * E0',
          '"start": (1 - alpha) ** (k + 2) * E0', "certified", ("tight.momentum-error",)),
    Break("momentum error: tau -> tau - 1", LMO + "momentum_error.py", "    n = Min(steps, tau)\n",
          "    n = Min(steps, tau - 1)\n", "certified", ("tight.momentum-error",)),
    Break("error feedback, delay lemma", LMO + "error_feedback_path.py", 'terms={"delay": L * eta * delta}',
          'terms={"delay": L * eta * delta * 9 / 10}', "certified", ("tight.ef-delay",)),
    Break("shifted theorem: delay", LMO + "parts.py", "DELAY = L * eta * tau", "DELAY = L * eta * tau * 9 / 10",
          "certified", ("tight.delayed-lmo-shifted",)),
]  # fmt: skip


def break_copy(case: Break, folder: Path) -> list[str]:
    """Copy the packages into `folder` and break them; returns the command that must turn red there."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / case.file
    source = file.read_text(encoding="utf-8")
    assert source.count(case.old) == 1, f"{case.old!r} must stand once in {case.file}"
    file.write_text(source.replace(case.old, case.new), encoding="utf-8")
    command = [sys.executable, "-m", "staleproof", "verify", "--preset", "smoke", "--only", case.sections, "--json"]
    return [*command, "--corpus", str(TEXT), *([] if case.draws else ["--no-report"])]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_verify_turns_red(case: Break, finished: subprocess.CompletedProcess[str]) -> None:
    assert finished.returncode == 1, finished.stderr[-2000:]
    result = json.loads(finished.stdout)
    claims = result["claims"]
    assert (result["report"] is not None) == case.draws
    failed = {claim["name"] for claim in claims if claim["gates"] and claim["outcome"] == "fails"}
    assert set(case.red) <= failed, sorted(failed)
    for name in case.red:
        assert f"claim failed: {name}" in finished.stderr
