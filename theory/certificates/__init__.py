"""Exact worst cases of delayed gradient descent in the Euclidean norm, with certificates checked by fractions.

`theory.certificates.check` (check_all, certified_value) needs the standard library only;
`theory.certificates.make` makes the files anew and needs the extra `proofs`.
"""
