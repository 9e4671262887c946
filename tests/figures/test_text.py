"""Escaping and number formats: nothing raw reaches HTML or LaTeX, and rounding never tells an untruth."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from figures import text

SPECIALS = [
    "lr_1e-3",
    "95% CI",
    "A&B",
    "#1",
    "$x$",
    "a^b",
    "~home",
    "back\\slash",
    "{x}",
    "Müller",
    "σ ≤ 1",
    "😀",
    "a\nb",
]


@pytest.mark.parametrize("value", SPECIALS)
def test_latex_has_no_raw_special(value: str) -> None:
    escaped = text.latex(value)
    without_commands = re.sub(r"\\ensuremath\{[^}]*\}|\\[a-zA-Z]+\{\}|\\[{}$&#%_]", "", escaped)
    assert not re.search(r"[$&#%_^~\\\n]", without_commands), escaped
    assert "{" not in without_commands and "}" not in without_commands


def test_latex_of_known_texts() -> None:
    assert text.latex("50% of A&B_1") == r"50\% of A\&B\_1"
    assert text.latex("back\\slash") == r"back\textbackslash{}slash"
    assert text.latex("σ≤ü😀") == r"\ensuremath{\sigma}\ensuremath{\leq}ü[U+1F600]"


def test_html_escapes_quotes_tags_and_control_characters() -> None:
    assert text.html("<b a=\"1\" c='2'>&\x00") == "&lt;b a=&quot;1&quot; c=&#x27;2&#x27;&gt;&amp; "


@pytest.mark.parametrize(
    "formula",
    [r"\frac{\Delta_0}{\eta K} + \frac{L \eta}{2}", r"\left(1-\alpha\right)^{k}", r"\|x\|_*", r"x^\tau", "L"],
)
def test_plain_mathematics_is_accepted(formula: str) -> None:
    assert text.is_safe_math(formula)


@pytest.mark.parametrize(
    "formula",
    [
        r"\input{/etc/passwd}",
        r"\write18{rm}",
        r"\def\x{1}",
        "a % b",
        "a & b",
        "$x$",
        "{",
        "}{",
        r"\left(",
        "x^",
        "x^2^3",
        "x_a_b",
        "α",
        "",
        None,
        "a\\",
        r"\catcode`\%=12",
        "#1",
    ],
)
def test_other_latex_is_refused(formula: object) -> None:
    assert not text.is_safe_math(formula)


@pytest.mark.parametrize(
    ("x", "html", "latex"),
    [
        (0.505, "0.505", "$0.505$"),
        (math.nan, "–", "--"),
        (math.inf, "∞", r"$\infty$"),
        (-math.inf, "−∞", r"$-\infty$"),
        (-0.0, "0", "$0$"),
        (1e-320, "1×10<sup>−320</sup>", r"$1\times 10^{-320}$"),
        (12345678.9, "1.235×10<sup>7</sup>", r"$1.235\times 10^{7}$"),
        (99999.7, "100000", "$100000$"),
        (42, "42", "$42$"),
        (1.0, "1", "$1$"),
    ],
)
def test_numbers(x: float, html: str, latex: str) -> None:
    assert text.html_number(x) == html
    assert text.latex_number(x) == latex


def test_a_violation_by_round_off_differs_in_print_from_its_limit() -> None:
    digits = text.split_apart(1.0000000001, 1.0)
    assert text.html_number(1.0000000001, digits) == "1.0000000001"
    assert text.split_apart(0.5, 1.0) == 4


@pytest.mark.parametrize(
    ("triple", "printed"),
    [
        ((1.23, 1.1, 1.5), "1.23 [1.10, 1.50]"),
        ((-1.2, -12.3, 9.9), "−1 [−13, 10]"),
        ((0.057, 0.0481, 0.0659), "0.057 [0.048, 0.066]"),
        ((0.001, -0.0001, 0.0021), "0.0010 [−0.0001, 0.0021]"),
        ((1.5, math.nan, 2.0), "1.5 [–, 2.0]"),
        ((1.5, -math.inf, 2.0), "1.5 [−∞, 2.0]"),
        ((0.0, 0.0, 0.0), "0.00 [0.00, 0.00]"),
        ((3e-7, 2e-7, 4e-7), "3.0e−7 [2.0e−7, 4.0e−7]"),
    ],
)
def test_intervals(triple: tuple[float, float, float], printed: str) -> None:
    assert text.plain_interval(*triple) == printed


@settings(max_examples=200, deadline=None)
@given(
    st.floats(-1e12, 1e12),
    st.floats(0, 1e12),
    st.floats(0, 1e12),
)
def test_printed_value_lies_in_its_printed_interval(value: float, below: float, above: float) -> None:
    low, high = value - below, value + above
    v, lo, hi, power = text.split_interval(value, low, high)
    scale = 10.0 ** (power or 0)
    assert float(lo) <= float(v) <= float(hi)
    assert float(lo) * scale <= low * (1 + math.copysign(1e-12, low)) + 1e-300
    assert float(hi) * scale >= high * (1 - math.copysign(1e-12, high)) - 1e-300
