"""LocalSGD on a pipeline: S replicas that step by themselves and are averaged after every H steps."""
