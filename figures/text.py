"""Text and numbers for three media: HTML, LaTeX, and labels inside a figure.

Every string from a result file passes through `html`, `latex` or (in ``figures/style.py``) `label` before it is
written. Formulas arrive as LaTeX; `is_safe_math` accepts them only if each command is on a list of mathematics
commands and the braces match, otherwise they are shown as text.
"""

from __future__ import annotations

import html as html_module
import math
import re
import unicodedata
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

MISSING = "–"

_LATEX_SPECIALS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\textasciigrave{}",
    "'": "'",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "\u00a0": "~",
    "€": "EUR",
}
_MATH_CHARACTERS = {
    "≤": r"\leq",
    "≥": r"\geq",
    "≠": r"\neq",
    "≈": r"\approx",
    "×": r"\times",
    "±": r"\pm",
    "∞": r"\infty",
    "−": "-",
    "→": r"\rightarrow",
    "∇": r"\nabla",
    "∑": r"\sum",
    "√": r"\surd",
    "·": r"\cdot",
    "∈": r"\in",
    "‖": r"\Vert",
    "∂": r"\partial",
    "²": "^2",
    "³": "^3",
    "¹": "^1",
    "°": r"^\circ",
    "µ": r"\mu",
}
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
).split()
_MATH_COMMANDS = frozenset(
    _GREEK
    + (
        "varepsilon vartheta varphi varrho frac dfrac tfrac sqrt left right big Big bigg Bigg bigl bigr Bigl Bigr sum "
        "prod int max min sup inf log exp ln sin cos tan operatorname mathbb mathrm mathcal mathbf mathit mathsf text "
        "textrm leq le geq ge neq ne approx sim simeq equiv cdot cdots ldots dots times pm mp infty nabla partial "
        "lVert rVert Vert lvert rvert vert langle rangle lfloor rfloor lceil rceil lbrace rbrace hat bar tilde "
        "overline underline widehat widetilde vec dot star ast dagger circ in notin subset to rightarrow leftarrow "
        "mapsto quad qquad ell prime forall exists mid limits nolimits displaystyle lim top bot"
    ).split()
)
_MATH_SYMBOL_COMMANDS = frozenset("|{},;:! ")


def clean(value: object) -> str:
    """Text on one line without control characters."""
    return "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in str(value))


def html(value: object) -> str:
    """Text escaped for HTML content and for attributes in double quotes."""
    return html_module.escape(clean(value), quote=True)


def _greek_command(character: str) -> str | None:
    name = unicodedata.name(character, "")
    match = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (?:FINAL )?(\w+)", name)
    if match is None:
        return None
    command = match[2].lower().replace("lamda", "lambda")
    command = command.capitalize() if match[1] == "CAPITAL" else command
    return "\\" + command if command in _GREEK else None


def _has_glyph(c: str) -> bool:
    """True for Latin letters that every pdflatex font encoding can set, with or without one accent."""
    if c in "ßøØłŁæÆœŒåÅ":
        return True
    parts = unicodedata.normalize("NFD", c)
    plain = parts[0].isascii() and parts[0].isalpha() and parts[0] not in "ij" and c <= "\u017e"
    return plain and parts[1:] in ("\u0300", "\u0301", "\u0302", "\u0303", "\u0304", "\u0308", "\u030c")


def latex(value: object) -> str:
    """Text escaped for LaTeX (pdflatex with its default UTF-8 input).

    Greek letters and the usual signs become mathematics; accented Latin letters stay; a character that pdflatex
    has no glyph for is written as its code, for example [U+1F600].
    """
    parts = []
    for c in clean(value):
        if c in _LATEX_SPECIALS:
            parts.append(_LATEX_SPECIALS[c])
        elif c.isascii():
            parts.append(c)
        elif c in _MATH_CHARACTERS:
            parts.append(rf"\ensuremath{{{_MATH_CHARACTERS[c]}}}")
        elif (command := _greek_command(c)) is not None:
            parts.append(rf"\ensuremath{{{command}}}")
        elif _has_glyph(c):
            parts.append(c)
        else:
            parts.append(f"[U+{ord(c):04X}]")
    return "".join(parts)


def is_safe_math(formula: object) -> bool:
    """True if `formula` is plain LaTeX mathematics: known commands, matching braces and left/right pairs."""
    if not isinstance(formula, str) or not formula.strip() or not formula.isascii() or clean(formula) != formula:
        return False
    commands = re.findall(r"\\([A-Za-z]+|.)", formula)
    if formula.endswith("\\") or any(c not in _MATH_COMMANDS and c not in _MATH_SYMBOL_COMMANDS for c in commands):
        return False
    if commands.count("left") != commands.count("right"):
        return False
    bare = re.sub(r"\\([A-Za-z]+|.)", "x", formula)
    if any(c in bare for c in '$%#&~"`'):
        return False
    depth = 0
    for c in bare:
        depth += (c == "{") - (c == "}")
        if depth < 0:
            return False
    dangling = re.search(r"[\^_]\s*([\^_}]|$)", bare)
    double = re.search(r"\^\s*(\{[^{}]*\}|[^{}])\s*\^|_\s*(\{[^{}]*\}|[^{}])\s*_", bare)
    return depth == 0 and dangling is None and double is None


def split_number(x: float | int, digits: int = 4) -> tuple[str, int | None]:
    """A number as (mantissa text, power of ten or None); NaN gives MISSING, infinities the sign and ∞."""
    if isinstance(x, int) and abs(x) < 10**9:
        return str(x), None
    if math.isnan(x):
        return MISSING, None
    if math.isinf(x):
        return ("∞" if x > 0 else "-∞"), None
    if x == 0:
        return "0", None
    rounded = f"{x:.{digits - 1}e}"
    mantissa, exponent = rounded.split("e")
    power = int(exponent)
    if -4 < power < max(digits, 6):
        fixed = f"{float(rounded):.{max(0, digits - 1 - power)}f}"
        return (fixed.rstrip("0").rstrip(".") if "." in fixed else fixed), None
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa), power


def split_apart(value: float, limit: float) -> int:
    """Digits needed so that two different numbers also look different (at least 4, at most 17)."""
    for digits in range(4, 17):
        if value == limit or split_number(value, digits) != split_number(limit, digits):
            return digits
    return 17


def plain_number(x: float | int, digits: int = 4) -> str:
    """A number for figure labels and plain text: 0.505, 1.2e-7, – for missing."""
    mantissa, power = split_number(x, digits)
    return (mantissa if power is None else f"{mantissa}e{power}").replace("-", "−")


def html_number(x: float | int, digits: int = 4) -> str:
    """A number as HTML."""
    mantissa, power = split_number(x, digits)
    exponent = "" if power is None else f"×10<sup>{power}</sup>"
    return (mantissa + exponent).replace("-", "−")


def latex_number(x: float | int, digits: int = 4) -> str:
    """A number as LaTeX; missing values are a dash, infinities a sign."""
    mantissa, power = split_number(x, digits)
    if mantissa == MISSING:
        return "--"
    mantissa = mantissa.replace("∞", r"\infty")
    return f"${mantissa}$" if power is None else rf"${mantissa}\times 10^{{{power}}}$"


def split_interval(value: float, low: float, high: float) -> tuple[str, str, str, int | None]:
    """Value, lower and upper end as text with one number of decimals, and a common power of ten or None.

    Two digits of the width are kept; the ends are rounded outwards, so the printed value never lies outside its
    printed interval. Ends that are NaN are MISSING, infinite ends are ±∞.
    """
    finite = [x for x in (value, low, high) if math.isfinite(x)]
    size = max((abs(x) for x in finite), default=0.0)
    width = high - low if math.isfinite(low) and math.isfinite(high) else size
    width = width if width > 0 else size / 50
    power: int | None = None
    if size > 0 and not 1e-3 <= size < 1e5:
        power = math.floor(math.log10(size))
    scale = power or 0
    decimals = 2 if size == 0 else max(0, min(15, scale + 1 - math.floor(math.log10(width)))) if width > 0 else 2

    def fixed(x: float, rounding: str) -> str:
        if not math.isfinite(x):
            return split_number(x)[0]
        scaled = Decimal(repr(float(x))).scaleb(-scale)
        rounded = scaled.quantize(Decimal(1).scaleb(-decimals), rounding=rounding)
        return str(abs(rounded) if rounded == 0 else rounded)

    return fixed(value, ROUND_HALF_EVEN), fixed(low, ROUND_FLOOR), fixed(high, ROUND_CEILING), power


def plain_interval(value: float, low: float, high: float) -> str:
    """0.057 [0.048, 0.066] as plain text."""
    v, lo, hi, power = split_interval(value, low, high)
    factor = "" if power is None else f"e{power}"
    return f"{v}{factor} [{lo}{factor}, {hi}{factor}]".replace("-", "−")


def html_interval(value: float, low: float, high: float) -> str:
    """0.057 [0.048, 0.066] as HTML."""
    v, lo, hi, power = split_interval(value, low, high)
    factor = "" if power is None else f" ×10<sup>{power}</sup>"
    return f"{v} <span class='ci'>[{lo}, {hi}]</span>{factor}".replace("-", "−")


def latex_interval(value: float, low: float, high: float) -> str:
    """0.057 [0.048, 0.066] as LaTeX, one cell, each number in its own mathematics."""
    v, lo, hi, power = split_interval(value, low, high)

    def one(s: str) -> str:
        return "--" if s == MISSING else "$" + s.replace("∞", r"\infty") + "$"

    factor = "" if power is None else rf" $\times 10^{{{power}}}$"
    return f"{one(v)} [{one(lo)}, {one(hi)}]{factor}"
