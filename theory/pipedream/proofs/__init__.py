"""The proofs of the theorems about SGD with old gradients, one a file."""
