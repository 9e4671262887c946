"""LaTeX of the theory: titles that tell theorems apart, assumptions in mathematics, nothing wider than the page."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from staleproof.cli import main
from staleproof.statements import assumptions, everything, statement, symbols, table
from theory import BOUNDS, QUANTITIES, InputError
from theory.assumptions import ASSUMPTIONS
from theory.evaluation import latex_of
from theory.latex_words import ASSUMPTIONS_LATEX, MEANINGS_LATEX, assumption_latex, filled, meaning_latex
from theory.lmo import PATHWISE
from theory.proofs import PROOFS

PREAMBLE = r"\documentclass{article}\usepackage{amsmath,amssymb,booktabs,longtable}\begin{document}"
ALL = BOUNDS.values()


def test_every_title_names_one_theorem() -> None:
    titles = [bound.title for bound in ALL] + [PROOFS[name].theorem.title for name in PROOFS if name not in BOUNDS]
    assert len(set(titles)) == len(titles)
    labels = Counter(bound.title.partition(": ")[0] for bound in ALL)
    assert set(labels.values()) == {1} and all(": " in bound.title for bound in ALL)
    text = everything(ALL)
    headings = re.findall(r"\\paragraph\{(.*?) \(\\texttt", text)
    assert len(headings) == len(set(headings)) == len(BOUNDS)


def outside(text: str) -> str:
    """What is not between dollars."""
    assert text.count("$") % 2 == 0
    return " ".join(text.split("$")[::2])


@pytest.mark.parametrize("name", [*ASSUMPTIONS, *MEANINGS_LATEX])
def test_words_in_latex_are_mathematics(name: str) -> None:
    template = ASSUMPTIONS_LATEX.get(name) or MEANINGS_LATEX[name]
    words = ASSUMPTIONS.get(name) or QUANTITIES[name].meaning
    text = filled(template)
    assert not re.search(r"<\w+>", text) and text.count("{") == text.count("}")
    assert not re.search(r"<\w+>\w", template), "a command would run into the letter after it"
    assert not re.search(r"[\\^_<>={}|]|norm\(|grad f", outside(text)), outside(text)
    for macro in ("alpha", "eta", "tau", "sigma", "rho", "gamma", "mu", "theta"):
        assert not re.search(rf"\\{macro}(?![a-zA-Z_])", template), f"\\{macro} is <{macro}>"
    # what the plain words name, of the symbols of the theorems that assume it, the mathematics names too
    its_own = {symbol for bound in ALL if name in bound.assumptions for symbol in bound.symbols} or {name}
    named = {symbol for symbol in its_own if re.search(rf"(?<![\w{{]){symbol}(?![\w{{}}])", words)}
    own_name = {name} if name in MEANINGS_LATEX else set()
    assert named - {"s", "K"} <= set(re.findall(r"<(\w+)>", template)) | own_name, named


def test_every_assumption_has_its_mathematics() -> None:
    assert list(ASSUMPTIONS_LATEX) == list(ASSUMPTIONS) and set(MEANINGS_LATEX) <= set(QUANTITIES)
    assert assumption_latex("smoothness") == (
        r"$\|\nabla f(x) - \nabla f(y)\|_* \le L \|x - y\|$ for all $x$ and $y$"
    )
    assert assumption_latex("norm-ratio") == r"$\|v\|_* \le \rho \|v\|_F$ for all $v$"
    assert meaning_latex("E0") == r"$\mathbb{E} \|m_0 - \nabla f(x_0)\|_*$" and meaning_latex("K") is None
    with pytest.raises(InputError, match="unknown assumption 'smooth'; known: duality"):
        assumption_latex("smooth")
    listed = assumptions([BOUNDS["rpd-c"]])
    assert listed.count(r"\item[") == len(BOUNDS["rpd-c"].assumptions)
    assert r"\delta_{k,s} \le \min(\delta_{\max}, k)" in listed and "uniform among $S$" in listed
    assert r"$f(x_0) - f_*$" in symbols(ALL) and "dualnorm" not in everything(ALL)


def test_table_of_all_bounds() -> None:
    rows = [line for line in table(ALL).splitlines() if r"\texttt{" in line]
    assert len(rows) == len(BOUNDS)
    for row, bound in zip(rows, ALL, strict=True):
        assert len(re.findall(r"(?<!\\)&", row)) == 3 and row.endswith(r"\tabularnewline")
        for condition in bound.conditions:
            assert latex_of(condition).replace(r"\left(", "(").replace(r"\right)", ")") in row


def test_repeated_minima_get_a_letter() -> None:
    text = statement(BOUNDS["delayed-lmo-finite"])
    assert r"Here $n = \min\left(K, \tau\right)$ and $A_{1}" in text and text.count(r"\min") == 1
    two = statement(BOUNDS["delayed-gd-two-sided"])
    assert all(rf"n_{{{i}}} = " in two for i in (1, 2, 3)) and "Here" not in statement(BOUNDS["delayed-lmo"])


@pytest.mark.parametrize("name", ["error-feedback", "delayed-lmo-finite", "delayed-gd-two-sided"])
def test_a_statement_stands_by_itself(name: str) -> None:
    bound, text = BOUNDS[name], statement(BOUNDS[name])
    assert text.count(rf"\label{{bound:{name}}}") == 1 and all(assumption_latex(a) in text for a in bound.assumptions)
    listed = text.split("Symbols: ")[1]
    assert all(f"${QUANTITIES[symbol].latex}$: " in listed for symbol in bound.symbols)
    assert ("$c$: " in listed) == (name == "error-feedback"), "a symbol of an assumption alone"
    short = statement(bound, listed=True)
    assert "Symbols" not in short and r"\item" not in short and f"Assume {', '.join(bound.assumptions)}." in short


def test_letters_stand_for_what_they_replace() -> None:
    text = statement(BOUNDS["delayed-gd-finite"])
    assert r"$A = \frac{n \left(n - 1\right) \left(2 n - 1\right)}{6} + \tau^{2} \left(K - n - 1\right)$" in text
    assert r"- A L^{2} \gamma^{2}" in text and "$A" not in statement(BOUNDS["delayed-gd"])


def widths(folder: Path, body: str, preamble: str = PREAMBLE) -> list[float]:
    """By how many points the lines of a document pass its width."""
    (folder / "a.tex").write_text(f"{preamble}\n{body}\n\\end{{document}}\n", encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "a.pdf").stat().st_size > 10_000
    log = (folder / "a.log").read_text(encoding="utf-8", errors="replace")
    return [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", log)]


@pytest.mark.tex
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_everything_compiles_and_fits_the_page(tmp_path: Path) -> None:
    steps = "\n".join(rf"\[ {step.statement} \]" for step in PATHWISE.values())
    assert max(widths(tmp_path, everything(ALL)), default=0) < 10
    assert max(widths(tmp_path, steps), default=0) < 20  # Lemma C on one line
    assert widths(tmp_path, "\n\n".join((table(ALL), assumptions(ALL), symbols(ALL)))) == []
    assert widths(tmp_path, "\n\n".join((table(ALL), r"\noindent\rule{400pt}{1pt}")))[0] > 50  # it would show


@pytest.mark.tex
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_two_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = PREAMBLE.replace("{article}", "[twocolumn]{article}")
    tune = "delayed-lmo --tune --latex --set L=1 alpha=0.05 tau=1 sigma=0 rho=1 Delta0=1 K=1000 E0=0"
    for words in (tune, "rpd-b --expand --latex"):
        assert main(["bound", *words.split()]) == 0
    long = [BOUNDS[f"delayed-{name}"] for name in ("lmo-finite", "lmo-median", "gd-finite", "gd-two-sided")]
    body = "\n\n".join([*map(statement, long), capsys.readouterr().out])
    assert max(widths(tmp_path, body, two), default=0) < 2
    pages = f"\\onecolumn\n{everything(long[:1])}\n\\twocolumn"
    assert widths(tmp_path, f"Text.\n{pages}\nText.", two) == []
