"""Coefficients of an expansion as a reader would write them: like terms together, factors under one root."""

from __future__ import annotations

import sympy as sp

from theory.evaluation import free_names
from theory.symbols import QUANTITIES, latex_names

#: Symbols that stay in the bracket, as in X (2 tau - 1/2): counts, delays and drifts.
INSIDE = tuple(QUANTITIES[name].symbol for name in ("tau", "delta_max", "S", "H", "dbar", "block_age"))

FILLS_A_LINE = 200  # characters of LaTeX


def coefficient_latex(coefficient: sp.Expr) -> str:
    """LaTeX of a coefficient, in brackets if it is a sum; its free symbols are quantities of the table."""
    free_names(coefficient)
    forms = {_written(form): form for form in (coefficient, like_terms(coefficient))}
    text = min(forms, key=lambda written: (_nested(forms[written]), len(written)))
    return rf"\left({text}\right)" if forms[text].is_Add else text


def coefficient_parts(coefficient: sp.Expr) -> list[str]:
    """`coefficient_latex` in summands for a line each where it fills more than a line."""
    text, terms = coefficient_latex(coefficient), like_terms(coefficient)
    if len(text) <= FILLS_A_LINE or not terms.is_Add:
        return [text]
    return [_written(term) for term in terms.as_ordered_terms()]


def like_terms(coefficient: sp.Expr) -> sp.Expr:
    """An equal expression: sums of one monomial in roots, each with one bracket of counts and delays before it."""
    merged = coefficient.replace(
        lambda part: part.is_Pow and part.base.is_Add,
        lambda part: sp.expand_power_base(sp.factor(sp.together(part.base)) ** part.exp, force=True),
    )
    brackets: dict[sp.Expr, list[sp.Expr]] = {}
    for term in sp.Add.make_args(sp.expand_mul(merged)):
        number, rest = sp.powsimp(term).as_coeff_Mul()
        monomial = sp.Mul(*(factor for factor in sp.Mul.make_args(rest) if factor not in INSIDE))
        brackets.setdefault(monomial, []).append(number * rest / monomial)
    return sp.Add(*(sp.together(sp.Add(*parts)) * monomial for monomial, parts in brackets.items()))


def _nested(form: sp.Expr) -> bool:
    """Whether a fraction stands in a fraction."""
    return any(
        sp.fraction(part)[1] != 1
        for term in sp.Add.make_args(form)
        if sp.fraction(term)[1] != 1
        for bracket in term.atoms(sp.Add)
        for part in bracket.args
    )


def _written(expression: sp.Expr) -> str:
    """LaTeX with one bracket for all factors of a term that are under the same fractional power."""
    names = dict(latex_names())
    shown = _rooted(expression, names)
    return str(sp.latex(shown, symbol_names=names, root_notation=False, fold_frac_powers=True))


def _rooted(expression: sp.Expr, names: dict[sp.Symbol, str]) -> sp.Expr:
    if expression.is_Add:
        return sp.Add(*(_rooted(term, names) for term in expression.args))
    factors = sp.Mul.make_args(expression)
    roots: dict[sp.Rational, list[sp.Symbol]] = {}
    rest = []
    for factor in factors:
        if factor.is_Pow and factor.base.is_Symbol and factor.exp.is_Rational and not factor.exp.is_Integer:
            roots.setdefault(factor.exp, []).append(factor.base)
        else:
            rest.append(_rooted(factor, names) if factor.is_Add else factor)
    for exponent, bases in roots.items():
        letter = bases[0]
        if len(bases) > 1:
            text = rf"\left({' '.join(names[base] for base in sorted(bases, key=str))}\right)"
            letter = sp.Symbol(f"root_{text}", positive=True)
            names[letter] = text
        rest.append(letter**exponent)
    return sp.Mul(*rest)
