"""`staleproof bound`: list, evaluate, tune, expand, compare, LaTeX; what it refuses."""

from __future__ import annotations

import json
import re

import pytest

from staleproof.cli import main
from theory import BOUNDS
from theory.assumptions import ASSUMPTIONS

VALUES = "L=1 eta=0.01 alpha=0.05 tau=1 sigma=0 rho=1 Delta0=1 K=1000 E0=0".split()
WITHOUT_STEP = [word for word in VALUES if not word.startswith("eta")]


def out(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["bound", *words]) == 0
    return capsys.readouterr().out


def read(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    return json.loads(out(capsys, *words, "--json"))


def test_known_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert read(capsys, "delayed-lmo-shifted", "--set", *VALUES)["value"] == pytest.approx(0.495, abs=1e-15)
    median = read(capsys, "delayed-lmo-median", "--set", *VALUES)
    assert median["value"] == pytest.approx(0.4400700, abs=5e-8)
    assert median["reference_index"] == 14 and median["chosen"] == {"s": 14.0}
    assert median["lag_coefficient"] == pytest.approx(33.507, abs=5e-4)
    given = read(capsys, "delayed-lmo-median", "--set", *VALUES, "s=1")
    assert given["value"] == pytest.approx(0.495, abs=1e-15) and given["chosen"] == {}
    assert "s = 14 (best choice)" in out(capsys, "delayed-lmo-median", "--set", *VALUES)


def test_tune(capsys: pytest.CaptureFixture[str]) -> None:
    tuned = read(capsys, "delayed-lmo", "--tune", "--set", *WITHOUT_STEP)
    assert round(tuned["relative_price"], 4) == 0.0256
    assert tuned["method"] == "closed form" and tuned["at"]["eta"] == pytest.approx(0.004969, abs=1e-6)
    assert tuned["value"] == pytest.approx(sum(tuned["terms"].values()))
    assert r"\sqrt" in tuned["formula"]["eta"]
    both = [word.replace("sigma=0", "sigma=1") for word in WITHOUT_STEP if not word.startswith("alpha")]
    result = read(capsys, "delayed-lmo", "--tune", "eta", "alpha", "--set", *both)
    assert set(result["at"]) == {"eta", "alpha"} and result["relative_price_total"] > 0
    text = out(capsys, "delayed-lmo", "--tune", "--set", *WITHOUT_STEP)
    assert text.count("relative price") == 1 and "of the delay: 0.0256" in text and "closed form" in text
    latex = out(capsys, "delayed-lmo", "--tune", "--latex", "--set", *WITHOUT_STEP)
    display = latex.split("\\begin{align*}\n")[1]
    assert display.startswith(r"& \eta^* = ") and r"\le{}" in display and display.endswith("\\end{align*}\n")
    assert all(line.startswith("%") for line in latex.split("\\begin{align*}")[0].splitlines())
    words = "S=16 M=100 L=1 sigma=0.1 Delta0=1".split()
    assert "limited by" in out(capsys, "pipedream-exact", "--tune", "--set", *words)  # tunes gamma by itself


def test_expand(capsys: pytest.CaptureFixture[str]) -> None:
    result = read(capsys, "delayed-lmo", "--expand")
    powers = {name: order["power"] for name, order in result["terms"].items()}
    assert (powers["noise"], powers["start"], powers["delay"]) == ("-1/4", "-1/2", "-3/4")
    assert "K^(-3/4)" in out(capsys, "delayed-lmo", "--expand")
    latex = out(capsys, "delayed-lmo", "--expand", "--latex")
    assert r"\lesssim{} 4 \left(\Delta_0 L\right)^{1/4} \left(\rho \sigma\right)^{1/2} \, K^{-1/4} \\" in latex
    assert r"\left(4 \tau - 1\right)}{2 " in latex and latex.endswith("\\end{align*}\n")
    assert "gamma tuned, M to infinity\n  gamma    M^(-1/2)" in out(capsys, "pipedream-exact", "--expand")
    assert r"\, M^{-1/2}" in out(capsys, "pipedream-exact", "--expand", "--latex")
    assert "nothing to tune, K to infinity" in out(capsys, "delayed-lmo-tuned-both", "--expand")


def test_compare(capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "--compare", "delayed-lmo", "delayed-lmo-shifted", "--set", *VALUES)
    assert "delay: halves" in text and "0.505" in text and "0.495" in text and "compare terms" in text
    assert "0.495  metrics differ\n" in text and text.count("smaller:") == 1
    assert "total: changes by -L*eta*tau  metrics differ\n" in out(
        capsys, "--compare", "delayed-lmo", "delayed-lmo-shifted"
    )
    data = read(capsys, "--compare", "delayed-lmo", "delayed-lmo-shifted", "--set", *VALUES)
    assert data["verdicts"]["total"] == data["total"]["smaller"] == "metrics differ"
    assert {term["name"]: term["ratio"] for term in data["terms"]}["delay"] == "1/2"
    assert data["numbers"]["delayed-lmo"]["value"] == pytest.approx(0.505)
    words = "S=16 K=1000 L=1 G=1 sigma=4 gamma=0.001 delta_max=248 Delta0=1".split()
    side_by_side = read(capsys, "--compare", "rpd-paper", "rpd-b", "--set", *[w for w in words if "sigma" not in w])
    assert side_by_side["numbers"]["rpd-b"]["value"] < side_by_side["numbers"]["rpd-paper"]["value"]


def test_more_than_two_stand_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("delayed-lmo", "delayed-lmo-shifted", "delayed-lmo-median", "error-feedback")
    lines = out(capsys, "--compare", *names, "--set", *VALUES, "dbar=1").splitlines()
    assert lines[1].split() == "initial step momentum_lag delay reference noise start total".split()
    for name, line in zip(names, lines[2:], strict=False):
        words = [word for word in (*VALUES, "dbar=1") if word.split("=")[0] in BOUNDS[name].symbols]
        one = read(capsys, name, "--set", *words)
        shown = dict(zip(lines[1].split(), line.split()[1:], strict=True))
        assert line.split()[0] == name and shown["total"] == f"{one['value']:.6g}"
        assert {term: f"{x:.6g}" for term, x in one["terms"].items()} == {
            term: x for term, x in shown.items() if term != "total" and x != "-"
        }
    assert "compare terms" in lines[-2]
    assert lines[6].startswith("not all, but error-feedback assumes: error-feedback, delay-one")
    data = read(capsys, "--compare", *names, "--set", *VALUES, "dbar=1")
    assert data["bounds"] == list(names) and data["numbers"]["delayed-lmo"]["value"] == pytest.approx(0.505)
    assert data["same_metric"] is False and data["assumed"]["delayed-lmo"] == []
    assert out(capsys, "--compare", *names, "--latex").count(r"\paragraph{") == 4


def test_whether_a_machine_checks_the_proof(capsys: pytest.CaptureFixture[str]) -> None:
    for name, proof in (("rpd-b", "by machine (staleproof prove rpd-b)"), ("kovalev", "as reported")):
        assert f"\nproof: {proof}\n" in out(capsys, name, "--terms")
        assert read(capsys, name, "--terms")["proved"] is (name == "rpd-b")
        assert read(capsys, "--list")["proved"][name] is (name == "rpd-b")
    lines = out(capsys, "--list").splitlines()
    assert len(lines) == len(BOUNDS) + 1 and lines[0].startswith("delayed-lmo ")
    assert "  by machine   Theorem 1" in lines[0]


def test_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """A choice of the analysis takes the best, a constant of the problem the worst: any other r gives less."""
    words = [*VALUES, "b=0.01"]
    assert "\n  r = 1 (largest allowed; not given)\n" in out(capsys, "star-convex", "--set", *words)
    worst = read(capsys, "star-convex", "--set", *words)["value"]
    assert read(capsys, "star-convex", "--set", *words, "r=0.5")["value"] < worst


def test_text_has_six_digits_and_json_all(capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "delayed-lmo", "--set", *VALUES) + out(capsys, "delayed-lmo", "--terms", "--set", *VALUES)
    text += out(capsys, "delayed-lmo", "--tune", "--set", *WITHOUT_STEP)
    assert "0.38\n" in text and not re.search(r"\d\.0*[1-9]\d{6}", text)
    terms = read(capsys, "delayed-lmo", "--set", *VALUES)["terms"]
    values = {name: float(value) for name, value in (word.split("=") for word in VALUES)}
    assert terms == BOUNDS["delayed-lmo"].evaluate_terms(**values) and 0 < abs(terms["momentum_lag"] - 0.38) < 1e-15


def test_compare_says_what_one_assumes(capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "--compare", "delayed-lmo", "kovalev")
    assert "only kovalev assumes: no-delay" in text and "only delayed-lmo assumes: fixed-delay" in text
    at_zero = [word.replace("tau=1", "tau=0").replace("alpha=0.05", "alpha=1") for word in VALUES]
    text = out(capsys, "--compare", "delayed-lmo", "kovalev", "--set", *at_zero)
    assert "start: 0 in both" in text and "momentum_lag: 0 in the first" in text
    assert "depends" not in text and " where " not in text and "/(" not in text
    data = read(capsys, "--compare", "delayed-lmo", "kovalev", "--set", *at_zero)
    assert data["verdicts"]["total"] == "larger" and data["verdicts"]["start"] == "equal"
    assert "no-delay" in data["only_second"]
    assert main(["bound", "--compare", "delayed-lmo", "kovalev", "--set", *VALUES]) == 2
    assert "tau = 1 contradicts no-delay" in capsys.readouterr().err
    assert "No run fulfils both" in out(capsys, "--compare", "kovalev", "error-feedback")


def test_hypotheses_are_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    words = "S=16 M=100 L=1 sigma=0.1 Delta0=1".split()
    condition = "if 2*L**2*gamma**2*(S - 1)**2 + L*gamma <= 1"
    for options in (["--terms"], ["--set", *words, "gamma=1/1000"], ["--tune", "--set", *words]):
        text = out(capsys, "pipedream-exact", *options)
        assert condition in text and "equal-noise" in text and r"\|\nabla f(y_m)\|^2" in text
    latex = out(capsys, "pipedream-exact", "--latex")
    assert r"\leq 1$, then" in latex and "equal-noise" in latex
    assert "\\|\\nabla f(y_m)\\|^2 \\\\\n& \\quad \\le{} \\frac{" in latex
    assert latex.count(r"\item[") == len(BOUNDS["pipedream-exact"].assumptions)
    assert "\n% assumes duality" in out(capsys, "delayed-lmo", "--expand", "--latex")
    data = read(capsys, "delayed-lmo-median", "--terms")
    assert data["unit"] == "f/x" and "fixed-delay" in data["assumptions"] and "ceiling" in data["optional"]["s"]
    assert data["metric"].startswith(r"\frac") and data["conditions"] == []


def test_delay_of_a_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    without = [word for word in VALUES if not word.startswith("tau")]
    of_2bw = ["--schedule", "pipedream-2bw", "--stages", "4", "--set", *without]
    result = read(capsys, "delayed-lmo", *of_2bw)
    assert result["values"]["tau"] == 1 and result["value"] == read(capsys, "delayed-lmo", "--set", *VALUES)["value"]
    assert result["schedule"] == ["pipedream-2bw, S = 4: tau = 1, at every stage and step"]
    assert f"\nwith {result['schedule'][0]}\n  initial" in out(capsys, "delayed-lmo", *of_2bw)
    words = "gamma=1/1000 L=1 G=1 K=1e6 Delta0=1".split()
    of_pipedream = ["--schedule", "pipedream", "--stages", "16", "--set", *words]
    assert read(capsys, "rpd-b", *of_pipedream)["values"]["delta_max"] == 304
    tuned = read(capsys, "rpd-b", "--tune", "--schedule", "pipedream", "--stages", "16", "--set", *words[1:])
    assert tuned["values"]["delta_max"] == 304 and "304" in tuned["schedule"][0]
    both = read(capsys, "--compare", "rpd-b", "pipedream-exact", *of_pipedream, "sigma=1", "M=62500")
    assert both["values"]["S"] == 16 and len(both["schedule"]) == 2


def test_fractions(capsys: pytest.CaptureFixture[str]) -> None:
    words = [word.replace("eta=0.01", "eta=1/100").replace("alpha=0.05", "alpha=1/20") for word in VALUES]
    decimals, fractions = (read(capsys, "delayed-lmo", "--set", *given)["value"] for given in (VALUES, words))
    assert decimals == fractions


def test_terms_say_what_symbols_and_assumptions_mean(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("star-convex-finite", "delayed-lmo-inexact-median", "rpd-d-split"):
        bound, text = BOUNDS[name], out(capsys, name, "--terms")
        symbols, rest = text.split("\nsymbols\n")[1].split("\nassumptions\n")
        assert [line.split()[0] for line in symbols.splitlines()] == list(bound.symbols)
        assert all(f"  {assumed} " in rest and ASSUMPTIONS[assumed] in rest for assumed in bound.assumptions)
        left_out = [line.split()[0] for line in symbols.splitlines() if "may be left out: then " in line]
        assert left_out == list(bound.optional)
        assert ("GeometricSum(p, q, K)  sum_{j<K}" in rest) == ("GeometricSum" in text.split("\nsymbols")[0])
    data = read(capsys, "delayed-lmo", "--terms")
    assert data["meanings"]["L"] == {
        "meaning": "smoothness in the norm",
        "unit": "f/x^2",
        "domain": "a number >= 0",
        "estimator": "smoothness",
        "left_out": None,
    }
    assert list(data["assumption_words"]) == data["assumptions"] and data["functions"] == {}


def test_terms_lists_and_latex(capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "delayed-lmo", "--terms")
    assert "delay: age of a gradient when it arrives\n    2*L*eta*tau\n" in text
    assert "2*L*eta*tau = 0.02" in out(capsys, "delayed-lmo", "--terms", "--set", *VALUES)
    assert set(read(capsys, "--list")["bounds"]) == set(BOUNDS)
    table = out(capsys, "--list", "--latex")
    assert table.count(r"\texttt{") == len(BOUNDS) and "longtable" in table
    everything = out(capsys, "--latex")
    assert everything.count(r"\paragraph{") == len(BOUNDS) and everything.count(r"\label{bound:") == len(BOUNDS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["delayed-lmo", "--tune", "K", "--set", *VALUES], ["tune K", "eta, alpha"]),
        (["delayed-lmo", "--tune", "--set", *VALUES], ["eta is tuned"]),
        (["delayed-lmo", "--tune", "--set", "L=1"], ["missing", "alpha"]),
        (["rpd-pl", "--expand"], ["rpd-pl", "missing is a term in 1/gamma", "initial"]),
        (["--compare", "delayed-lmo", "nothing"], ["'nothing'", "--list"]),
        (["error-feedback", "--set", "tau=5"], ["'tau'", "assumes delay-one (tau = 1)"]),
        (["delayd-lmo"], ["did you mean delayed-lmo or"]),
        (["delayed-lmo", "--tune", "L", "--set", "eta=1"], ["tune L", "eta, alpha"]),
        (["delayed-lmo", "--list"], ["'delayed-lmo'", "--list"]),
        (["delayed-lmo", "--tune", "--expand"], ["--expand is not allowed with --tune"]),
        (["delayed-lmo", "--expand", "--set", "L=1"], ["--set", "--expand"]),
        (["--compare", "delayed-lmo", "rpd-b"], ["delayed-lmo", "f/x", "rpd-b", "(f/x)^2", "one unit"]),
        (["--compare", "delayed-lmo", "kovalev", "rpd-b", "--set", *VALUES], ["rpd-b", "(f/x)^2", "one unit"]),
        (["--compare", "delayed-lmo", "kovalev", "delayed-lmo-finite"], ["set: not given", "3 bounds"]),
        (["star-convex", "--tune", "--set", "L=1"], ["eta cannot be tuned", "r = b norm(x_*)/eta", "<= eta/b"]),
        (["star-convex", "--tune", "eta", "b", "--set", "L=1"], ["eta cannot be tuned", "weight-decay"]),
        (["--compare", "rpd-b", "rpd-c", "--expand"], ["--expand is not allowed with --compare"]),
        (["--compare", "rpd-b", "rpd-c", "--tune"], ["--tune is not allowed with --compare"]),
        (["--compare", "rpd-b", "rpd-c", "--latex", "--set", "L=1"], ["--set", "--latex"]),
        (["--list", "--set", "L=1"], ["--set", "--list"]),
        (["--list", "--terms"], ["--terms is not allowed with --list"]),
        (["--list", "--json", "--latex"], ["--latex is not allowed with --json"]),
        (["delayed-lmo", "--terms", "--latex"], ["--latex is not allowed with --terms"]),
        (["delayed-lmo", "--latex", "--set", "L=1"], ["--set", "--latex"]),
        (["--set", "L=1", "delayed-lmo"], ["'delayed-lmo' is a bound", "NAME comes first"]),
        (["--tune", "eta", "alpha", "delayed-lmo"], ["'delayed-lmo' is a bound", "NAME comes first"]),
        (["delayed-lmo", "--set", "eta=1e-400"], ["'eta=1e-400'", "float64"]),
        (["delayed-lmo", "--set", f"eta=1/1{'0' * 400}"], ["eta=1/1000", "float64"]),
        (["delayed-lmo", "--set", "eta=1/0"], ["'eta=1/0'"]),
        (["--compare", "delayed-lmo"], ["--compare", "2"]),
        (["delayed-lmo", "--schedule", "pipedream", "--stages", "4"], ["no single delay", "3 2 1 0"]),
        (["delayed-lmo", "--schedule", "1f1b", "--stages", "4", "--set", "tau=1"], ["'tau'", "1f1b sets it to 0"]),
        (["delayed-lmo", "--schedule", "1f1b"], ["stages", "--stages"]),
        (["delayed-lmo", "--microbatches", "4"], ["microbatches", "give --schedule NAME too"]),
        (["delayed-lmo", "--expand", "--schedule", "1f1b", "--stages", "4"], ["--schedule", "--expand"]),
        (["--list", "--schedule", "1f1b", "--stages", "4"], ["--schedule", "--list"]),
        (["delayed-lmo", "--compare", "delayed-lmo", "kovalev"], ["'delayed-lmo'", "one too many"]),
        (["--compare", "delayed-lmo", "kovalev", "--set", "zeta=1"], ["'zeta'"]),
        (["delayed-lmo-finite", "--tune", "alpha", "--latex", "--set", *VALUES[:2], *VALUES[3:]], ["no closed form"]),
        (["pipedream-exact", "--set", "S=16", "M=9", "L=1", "sigma=1", "Delta0=1", "gamma=1"], ["gamma must"]),
    ],
)
def test_refusals(words: list[str], said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["bound", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1
    assert all(word in captured.err for word in said), captured.err
