"""What is measured on a run, one estimator a file."""
