"""The proofs of the theorems of this folder, one a file."""
