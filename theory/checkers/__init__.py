"""What checks proofs: `algebra` by exact rewriting with sympy, `solver` by z3, each counterexample by fractions."""
