"""Your own layers and any torch optimizer under PipeDream-2BW, on two processes, against one process."""

from torch import linspace, nn, optim

from pipeline.data.tensors import TensorBatches
from pipeline.run import Job, largest_difference, make_schedule, oracle_of, run_job

X = linspace(-3, 3, 64).reshape(64, 1)


def layers():
    return [nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)]


def optimizer(named_parameters):
    return optim.RMSprop(named_parameters, lr=1e-3)


if __name__ == "__main__":
    data = TensorBatches(X, X.sin(), batch=32, microbatches=4)
    job = Job(make_schedule("pipedream-2bw", 2, 4), layers, optimizer, data, nn.functional.mse_loss, steps=200)
    result = run_job(job)
    print("loss", result.losses[0], "->", result.losses[-1])
    print("difference from one process:", largest_difference(result.snapshots, oracle_of(job).snapshots)[0])
