"""Text as bytes, and microbatches drawn from it by index."""
