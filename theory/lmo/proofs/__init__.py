"""The proofs of the theorems about LMO methods, one a file; `theory.proofs.PROOFS` holds them by name."""
