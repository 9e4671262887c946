"""The command line: light help, one-line errors, JSON on stdout, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from staleproof import __version__
from staleproof.cli import COMMANDS, main

Run = Callable[..., "subprocess.CompletedProcess[str]"]
HEAVY = ("torch", "sympy", "pandas", "scipy", "matplotlib", "numpy")


@pytest.mark.parametrize("words", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_is_light(words: list[str], root: Path) -> None:
    code = (
        "import sys\n"
        "from staleproof.cli import main\n"
        f"assert main({words!r}) == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == "[]"
    assert __version__ in done.stdout if words == ["--version"] else "usage: staleproof" in done.stdout


def test_every_command_is_in_the_help(staleproof: Run) -> None:
    text = staleproof("--help").stdout
    assert all(name in text for name in ("verify", "delays", "bound", "train", "report", "130"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], ["nothing", "verify", "report"]),
        ([], ["COMMAND"]),
        (["verify", "--preset", "huge"], ["--preset", "huge", "quick", "smoke"]),
        (["verify", "--seed", "x"], ["--seed", "'x'", "0 to 2147483647"]),
        (["verify", "--seed", "-1"], ["--seed", "'-1'", "0 to"]),
        (["verify", "--see", "1"], ["--see", "--seed"]),
        (["verify", "--overwrit"], ["--overwrit", "did you mean --overwrite"]),
        (["verify", "more"], ["'more'"]),
        (["delays", "pipedream", "--stages", "0"], ["--stages", "'0'", "an integer from 1 to"]),
        (["delays", "pipedream", "--stages", "2.5"], ["--stages", "'2.5'"]),
        (["delays", "pipedream", "--stages", "4", "--microbatches", "0"], ["--microbatches", "'0'", ">= 1"]),
        (["delays", "pipedream"], ["stages"]),
        (["delays", "gpipedream", "--stages", "2"], ["gpipedream", "1f1b", "pipedream-2bw"]),
        (["delays", "--stages", "2"], ["name", "1f1b"]),
        (["delays", "amdp", "--stages", "6"], ["stages = 6", "amdp", "multiples of 4"]),
        (["delays", "amdp", "--stages", "4", "--microbatches", "6"], ["microbatches = 6", "multiples of 4"]),
        (["delays", "pipedream-2bw", "--stages", "5", "--microbatches", "3"], ["= 3", "at least 4", "stall, uniform"]),
        (["delays", "1f1b", "--stages", "5", "--policy", "stall"], ["'stall'", "'1f1b': allowed with pipedream-2bw"]),
        (["delays", "pipedream-2bw", "--stages", "5", "--policy", "x"], ["policy = 'x'", "refuse, stall, uniform"]),
        (["delays", "pipedream", "--stages", "2", "--convention", "x"], ["convention = 'x'", "stage order, physical"]),
        (["schedule", "1f1b", "--stages", "2", "--forward", "-1"], ["--forward", "'-1'", "0 or a number"]),
        (["schedule", "1f1b", "--stages", "2", "--forward", "nan"], ["--forward", "'nan'", "0 or a number"]),
        (["schedule", "1f1b", "--stages", "2", "--backward", "1,2,3"], ["backward = [1, 2, 3]", "2 of them"]),
        (["schedule", "1f1b", "--stages", "2", "--bandwidth", "0"], ["--bandwidth", "'0'", "a number from 1e-12"]),
        (["schedule", "zb-h1", "--stages", "2", "--weight", "3"], ["weight = 3", "at most backward = 2"]),
        (["schedule", "1f1b", "--stages", "2", "--weight-bytes", "1,2,3"], ["weight_bytes = [1.0", "2 of them"]),
        (["schedule", "1f1b", "--stages", "2", "--figure", "x.bmp"], ["figure", "'x.bmp'", ".png, .pdf, .svg"]),
        (["schedule", "interleaved-1f1b", "--stages", "2", "--chunks", "0"], ["--chunks", "'0'", ">= 1"]),
        (["schedule", "localsgd", "--stages", "2", "--replicas", "3"], ["microbatches = 2", "multiples of 3"]),
        (["schedule", "gantt", "--stages", "2"], ["'gantt'", "amdp"]),
        (["schedule", "1f1b", "--stages", "2", "--forward", "1,,2"], ["--forward", "in '1,,2'"]),
        (["schedule", "1f1b", "--stages", "2", "--forward", "1e308"], ["--forward", "'1e308'", "1e+15"]),
        (["schedule", "1f1b", "--stages", "2", "--bandwidth", "-1"], ["--bandwidth", "'-1'", "a number from 1e-12"]),
        (["schedule", "1f1b", "--stages", "2", "--weight", "1"], ["weight", "1f1b does not split its backward"]),
        (["schedule", "1f1b", "--stages", "2", "--reduce", "1"], ["reduce", "1f1b has one copy of each stage"]),
        (["schedule", "1f1b", "--stages", "2", "--figure", "no/x.png"], ["figure", "folder 'no' does not exist"]),
        (["schedule", "1f1b", "--stages", "4", "--steps", "99999999"], ["steps = 99999999", "at most 1250"]),
        (["schedule", "gpipe", "--stages", "4", "--microbatches", "1000000"], ["microbatches = 1000000", "5000"]),
        (["delays", "interleaved-1f1b", "--stages", "4", "--chunks", "99999"], ["chunks = 99999", "at most 5000"]),
        (["compare", "--stages", "64", "--microbatches", "1000"], ["microbatches = 1000", "at most 78"]),
        (["delays", "1f1b", "--stages", "2", "--convention", "slot"], ["convention", "'slot'", "pipedream with 1"]),
        (["delays", "gpipe", "--derivation"], ["derivation", "'gpipe'"]),
        (["delays", "uniform", "--stages", "8", "--tau", "0"], ["tau = 0", "at least 1"]),
        (["delays", "uniform", "--stages", "64", "--microbatches", "64", "--tau", "9"], ["tau + 1 = 10", "at most 4"]),
        (["schedule", "uniform", "--stages", "2", "--tau", "1001"], ["--tau", "'1001'", "0 to 1000"]),
        (["train", "--microbatches", "99999999"], ["microbatches = 99999999", "at most 10000"]),
        (["train", "--schedule", "1f1b", "--tau", "2"], ["tau = 2", "'1f1b': allowed with uniform"]),
        (["delays", "1f1b", "--stages", "4_0"], ["--stages", "'4_0'"]),
        (["compare", "--stages", "0", "--microbatches", "2"], ["--stages", "'0'", "1 to 64"]),
        (["compare", "--stages", "2"], ["--microbatches"]),
        (["compare", "--stages", "2", "--microbatches", "2", "--csv", "--latex"], ["latex", "--csv"]),
        (["train", "--schedule", "amdp", "--stages", "4"], ["schedule = 'amdp'", "the engine runs gpipe"]),
        (["bound"], ["name", "delayed-lmo"]),
        (["bound", "delayed-sgd"], ["delayed-sgd", "delayed-lmo"]),
        (["bound", "delayed-lmo", "--set", "L"], ["'L'", "SYMBOL=VALUE"]),
        (["bound", "delayed-lmo", "--set", "L=big"], ["'L=big'", "number"]),
        (["bound", "delayed-lmo", "--set", "L=1", "L=2"], ["'L'", "twice"]),
        (["bound", "delayed-lmo", "--set", "L=1"], ["eta"]),
        (["bound", "delayed-lmo", "--set", "Lambda=1"], ["Lambda"]),
        (["report", "nowhere"], ["nowhere"]),
        (["report"], ["DIR"]),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    words: list[str], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1, captured.err
    for word in said:
        assert word in captured.err, captured.err


def test_a_value_out_of_its_domain(capsys: pytest.CaptureFixture[str]) -> None:
    values = "L=1 eta=0.01 alpha=2 tau=1 sigma=0 rho=1 Delta0=1 K=1000 E0=0".split()
    assert main(["bound", "delayed-lmo", "--set", *values]) == 2
    error = capsys.readouterr().err
    assert "alpha" in error and "2" in error and len(error.splitlines()) == 1


VALUES = "L=1 eta=0.01 alpha=0.05 tau=1 sigma=0 rho=1 Delta0=1 K=1000 E0=0".split()


@pytest.mark.parametrize(("name", "value"), [("delayed-lmo", 0.505), ("delayed-lmo-shifted", 0.495)])
def test_bound_json(name: str, value: float, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bound", name, "--set", *VALUES, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert abs(result["value"] - value) <= 1e-15
    assert abs(sum(result["terms"].values()) - value) <= 1e-15
    assert {"name", "value", "terms", "latex", "symbols"} <= set(result)
    assert set(result["symbols"]) <= {text.split("=")[0] for text in VALUES}


def test_bound_latex_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bound", "delayed-lmo", "--latex"]) == 0
    latex = capsys.readouterr().out
    assert r"\eta" in latex and r"\tau" in latex and "fixed-delay" in latex and "aligned" in latex
    assert main(["bound", "delayed-lmo", "--set", *VALUES[:4], "--set", *VALUES[4:]]) == 0
    assert "total" in capsys.readouterr().out
    assert main(["bound", "--list"]) == 0
    assert "delayed-lmo-shifted" in capsys.readouterr().out


def test_delays_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delays", "pipedream-2bw", "--stages", "4", "--microbatches", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["optimizer_step_delay"] == [1, 1, 1, 1]
    assert main(["delays", "pipedream", "--stages", "8", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["optimizer_step_delay"] == [7, 6, 5, 4, 3, 2, 1, 0]
    block = result["block_update_delay"]
    assert (block["max"], block["mean"], block["min"]) == (60, 31.5, 3)
    assert (result["name"], result["stages"], result["microbatches"]) == ("pipedream", 8, 1)


def test_delays_text_and_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delays", "pipedream", "--stages", "4"]) == 0
    text = capsys.readouterr().out
    assert "3 2 1 0" in text and "14  11   9   6" in text
    assert main(["delays", "--list", "--json"]) == 0
    assert "pipedream-2bw" in json.loads(capsys.readouterr().out)["schedules"]


@pytest.mark.mutation
def test_delays_sees_a_wrong_block_update_delay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import theory.delays

    real = theory.delays.block_update_delay
    monkeypatch.setattr(theory.delays, "block_update_delay", lambda S, c: {**real(S, c), "mean": 31.0})
    assert main(["delays", "pipedream", "--stages", "8"]) == 1
    assert "block_update_delay mean" in capsys.readouterr().err


def test_closed_stdout_is_no_traceback(root: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "staleproof", "delays", "pipedream", "--stages", "16", "--json"],
        cwd=root,
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    os.close(write_end)
    assert done.stderr == "" and done.returncode == 0


def test_closed_stdout_keeps_the_exit_code_of_bad_input(root: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "staleproof", "delays", "nothing", "--stages", "1"],
        cwd=root,
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    os.close(write_end)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_disk_on_stdout_is_one_line(root: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "staleproof", "delays", "pipedream", "--stages", "2", "--json"],
            cwd=root,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 3
    assert done.stderr == "staleproof delays: error: No space left on device\n"


def test_keyboard_interrupt_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from staleproof.commands import delays

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(delays, "both_ways", interrupted)
    assert main(["delays", "pipedream", "--stages", "2"]) == 130
    assert capsys.readouterr().err == "staleproof: interrupted\n"


def test_a_fault_of_the_program_is_not_a_failed_claim(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from staleproof.commands import delays

    def broken(*_: object) -> None:
        raise ZeroDivisionError("seven")

    monkeypatch.setattr(delays, "both_ways", broken)
    assert main(["delays", "pipedream", "--stages", "2"]) == 3
    assert "ZeroDivisionError: seven" in capsys.readouterr().err
