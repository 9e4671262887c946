"""How to add a theorem: copy this file, change six things, add a line to `theory/registry.py`, write its proof (7.).

Start the docstring like this, so that a reader can check the theorem without the code:
Template: an LMO method with exact, fresh gradients and no momentum. Kind: upper bound.

Statement: (1/K) sum_{k<K} dn(grad f(x_k)) <= Delta0/(eta K) + L eta/2 for x_{k+1} = x_k - eta d_k with constant eta,
d_k the LMO of m_{k+1} = grad f(x_k).

Proof: smoothness and norm(d_k) <= 1 give f(x_{k+1}) <= f(x_k) - eta dn(grad f(x_k)) + L eta^2/2. Sum over k < K; the
objective telescopes and is bounded below; divide by eta K.
Checked by tests/theory/test_template.py (name the tests: against the sums written out, and on runs).

What follows from these lines by itself: evaluation on scalars and arrays with refusals, `staleproof bound NAME` with
--set, --tune, --expand, --compare, --latex and --json, and the tests over all bounds (units, limits, round trips).
None of these sees whether the inequality is true: a constant too small passes them all. So its proof has to be a value
that `staleproof prove NAME` checks (7.). Without it the bound is printed with "proof: in words", and as "derived here"
it fails test_every_theorem_that_is_not_of_others_has_a_proof in tests/theory/test_proofs.py.
"""

from __future__ import annotations

from sympy import Rational

from theory.bound import Bound
from theory.symbols import symbols

# 1. Symbols come from theory/symbols.py: name, LaTeX, unit, domain, meaning. A new one is added there, never made here.
eta, L, K, Delta0 = symbols("eta L K Delta0")

BOUND = Bound(
    name="template",
    title="Template: LMO method, exact gradients",  # before the colon: a label that no other bound has
    # 2. One named term for each cause (the names are theory.bound.TERM_NAMES); exact numbers only, Rational(1, 2).
    terms={
        "initial": Delta0 / (eta * K),
        "step": Rational(1, 2) * L * eta,
    },
    # 3. What is bounded, and its unit, from which the units of all terms are checked.
    metric=r"\frac{1}{K} \sum_{k<K} \|\nabla f(x_k)\|_*",
    unit="f/x",
    # 4. What it rests on: names of theory/assumptions.py; a new one is written there in one sentence, and in
    # mathematics in theory/latex_words.py. The method too: its steps (constant-step), its momentum, delay and noise.
    assumptions=("duality", "smoothness", "lower-bound", "lmo", "constant-step", "fresh-gradient"),
    # 5. Where it holds, e.g. (Le(L * eta, 1),): values outside are refused with the admissible range.
    conditions=(),
    # 6. Who says so. origin: "derived here", "paper" or "as reported"; kind: theory.bound.KINDS.
    reference="derived here; without delay compare Kovalev 2025 (arXiv 2503.12645)",
    origin="derived here",
    kind="upper bound",
)

# 7. The proof as a value: a file beside the others, theory/lmo/proofs/NAME.py, with PROOF = Proof(BOUND, steps, left):
# see descent.py there (a lemma), then delayed.py (a theorem). To register it: PROOF in theory/proofs.py, the name of
# the bound in theory/proved.py. It has to use all assumptions above and no others; new ones need an axiom
# (theory/lmo/axioms.py; docs/architecture.md says what a proof may be made of).
