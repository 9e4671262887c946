"""Models as lists of layers: a pipeline stage is a run of consecutive layers."""
