"""What is run: schedules as data, the clock, the engine on torch.distributed, optimizers, models and data.

This package stays importable without torch: everything under :mod:`pipeline.schedules`, :mod:`pipeline.clock` and
:mod:`pipeline.delays` is plain Python.
"""
