"""The engine: exact asynchronous pipeline training on torch.distributed, driven by a schedule's data."""
