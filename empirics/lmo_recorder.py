"""Everything that the proofs about delayed LMO methods speak of, recorded along a run in bounded memory.

z_k is x_k, or under error feedback the virtual iterate y_k, k >= 1. Per step, in the run's own norm, under the names of
`theory.symbols` and `theory.proof_quantities`:
    with full gradients     f_now f_next, norms of gradient, momentum, e_k, the delay's bias, nu_k, w_k, the gradient's
                            change; inner products with d_k; the same where the gradient was taken; drift
    without them            step_norm direction_norm momentum_norm inner_momentum gap_norm delta, update_drift
    of each step            smoothness_used: the largest L that a step of the proofs needs here; oracle_quality
    with nesterov           the same of where the oracle is called (`nesterov_recording`)
    with a reference s      the same against the gradient s steps back (`reference_recording`)
    running sums            measured_start measured_lag measured_delay measured_shifted_lag: Lemma C's terms with the
                            norms that the run had in place of L eta
nu_k and the running sums need every step; with `every` > 1 they are absent. The segment is looked at where t = 1.

Vectors wait in a block, so that one call of the singular values serves many steps; a block holds about BLOCK numbers of
each vector at most, or one step. Gradients are kept at the last 2 tau + 3 points, or s + 1.
Cost: benchmarks/empirics.py, with shifted=False.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from empirics.batched_norms import model_norms
from empirics.errors import InputError
from empirics.estimators.model_norm import ModelNorm
from empirics.estimators.weights import minus
from empirics.lmo_quantities import LEAST_DISTANCE, complete_row, full, light
from empirics.nesterov_recording import mixed
from empirics.reductions import Rows
from empirics.reference_recording import Reference
from empirics.running_terms import RunningTerms
from empirics.virtual_iterate import Feedback, VirtualIterate

Weights = Mapping[str, Tensor]
#: weights -> f and its full gradient there.
Objective = Callable[[Weights], tuple[float, Weights]]
BLOCK = 2**17


@dataclass
class LMORecorder:
    """See the module.

    norm, eta, alpha: of the run; tau: its delay, to know which gradients are asked for again; feedback: of a corrected
    run; objective: None records what needs no full gradient; every: steps between two records; shifted: what the
    theorem at the gradient's own place needs too; start: m_0 (None: 0), or "gradient"; capacity: rows kept as they are;
    nesterov: of a run with Nesterov's direction; reference: s, of a run without feedback whose every step is recorded.
    """

    norm: ModelNorm
    eta: float
    alpha: float
    tau: int = 0
    feedback: Feedback | None = None
    objective: Objective | None = None
    every: int = 1
    shifted: bool = True
    start: Weights | str | None = None
    capacity: int = 4096
    nesterov: bool = False
    reference: int | None = None
    rows: Rows = field(init=False)
    once: dict[str, float] = field(default_factory=dict)
    steps: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            raise InputError(f"every: {self.every!r}; allowed is an integer >= 1")
        if self.eta <= 0 or not 0 < self.alpha <= 1:
            raise InputError(f"eta, alpha: {self.eta!r}, {self.alpha!r}; allowed are eta > 0 and 0 < alpha <= 1")
        if self.reference is not None and not (self.complete and self.shifted and self.feedback is None):
            needs = "every = 1, an objective, shifted and no feedback"
            raise InputError(f"reference: {self.reference}; allowed is None but with {needs}")
        self.rows = Rows(self.capacity)
        self._known: list[tuple[Weights, float, Weights]] = []
        self._block: list[tuple[dict[str, float], dict[str, Weights]]] = []
        self._virtual = None if self.feedback is None else VirtualIterate(self.feedback)
        self._terms = RunningTerms(self.alpha, self.tau, self.once, self.shifted and self.feedback is None)
        s, tau, layers = self.reference, self.tau, self.norm.layers
        self._reference = None if s is None else Reference(s, tau, self.alpha, layers)
        self._previous: Weights | None = None  # U_{k-1}
        self._noise: Weights | None = None
        self._read_before: tuple[Weights, Weights] | None = None
        self._points: list[Weights] = []  # x_k and those before it, newest first

    @property
    def complete(self) -> bool:
        """Whether every step is recorded, with full gradients."""
        return self.every == 1 and self.objective is not None

    def __call__(self, state: Any) -> None:
        """As the observer of the oracle, whose optimizer has to be an LMO."""
        momentum = {name: state.optimizer.state[p]["momentum"] for name, p in state.parameters.items()}
        self.observe(state.k, state.x, state.x_next, state.read, state.gradient, state.update, momentum)

    def observe(
        self, k: int, x: Weights, x_next: Weights, read: Weights, gradient: Weights, update: Weights, momentum: Weights
    ) -> None:
        """Step k: weights before and after, those at which the gradient was taken, U_k, m_{k+1}. Nothing is kept that
        the run overwrites but the momentum, which is copied; the others must be tensors of their own."""
        self.steps = k + 1
        corrected = self._virtual is not None
        z, z_next = x, x_next
        if self._virtual is not None:
            z = x if k == 0 else self._virtual.of(x)
            self._virtual.add(update)
            z_next = self._virtual.of(x_next)
        sampled = k % self.every == 0 and not (corrected and k == 0)
        vectors: dict[str, Weights] = {}
        if self.objective is None:
            if sampled:
                vectors = {"momentum": {n: m.clone() for n, m in momentum.items()}, "step": update}
                vectors["gap"] = minus(read, z)
                if self._previous is not None:
                    vectors["drift"] = minus(update, self._previous)
                self._push({"k": float(k)}, vectors)
            self._previous = update if (k + 1) % self.every == 0 else None
            return
        self._points = [x, *self._points][: 2 * self.tau + 3]
        if k == 0:
            self._begin(x, gradient)
        if self.every > 1 and not sampled:
            return
        f_now, at_z = self._at(z) if not (corrected and k == 0) else (math.nan, x)
        _, at_read = self._at(read)
        m = {name: value.clone() for name, value in momentum.items()}
        if self.every == 1:
            n = minus(gradient, at_read)
            a, old = self.alpha, self._noise
            nu = {name: a * v if old is None else torch.lerp(old[name], v, a) for name, v in n.items()}
            vectors |= {"sample": n, "noise": nu} | ({} if old is None else {"noise_before": old})
            self._noise = nu
            if self.nesterov:
                vectors |= {"called": mixed(m, gradient, a), "called_noise": mixed(nu, n, a)}
        if corrected and k == 0:
            self._first_virtual(x, z_next, at_read)
            self.once["first_direction_norm"] = self._one(update, False) / self.eta
            self._previous = update
            return
        f_next, at_next = self._at(z_next)
        vectors |= {"z": z, "z_next": z_next, "read": read, "momentum": m}
        vectors |= {"grad": at_z, "next": at_next, "taken": at_read}
        if self._previous is not None:
            vectors["drift"] = minus(update, self._previous)
        if corrected:
            vectors |= {"x": x, "at_x": self._at(x)[1]}
        if self._read_before is not None:
            vectors |= {"read_before": self._read_before[0], "taken_before": self._read_before[1]}
        row = {"k": float(k), "f_now": f_now, "f_next": f_next, "age": self._age(k, read)}
        if self._reference is not None:
            vectors |= self._reference.vectors(x, at_z, m, vectors["noise"])
            row |= self._reference.walk(k, row["age"], at_read)
        self._push(row, vectors)
        self._read_before = (read, at_read) if self.shifted and self.every == 1 else None
        self._previous = update if self.every == 1 else None

    def _at(self, weights: Weights) -> tuple[float, Weights]:
        """f and its gradient, asked for once at each point."""
        assert self.objective is not None
        for known, f, g in self._known:
            if all(known[name] is value for name, value in weights.items()):
                return f, g
        f, g = self.objective(weights)
        self._known = [*self._known, (weights, f, g)][-(2 * self.tau + 3) :]
        return f, g

    def _age(self, k: int, read: Weights) -> float:
        """How many steps ago `read` were the weights, by looking; k + 1, older than any, if they were not lately."""
        steps = range(len(self._points))
        for a in sorted(steps, key=lambda a: abs(a - min(k, self.tau))):  # of equal points the expected one
            if all(torch.equal(self._points[a][name], value) for name, value in read.items()):
                return float(a)
        return float(k + 1)

    def _one(self, vector: Weights, dual: bool) -> float:
        return float(model_norms({n: v[None] for n, v in vector.items()}, self.norm.layers, dual)[0])

    def _begin(self, x: Weights, gradient: Weights) -> None:
        f, at_x = self._at(x)
        start = gradient if isinstance(self.start, str) else self.start
        error = at_x if start is None else {name: start[name] - at_x[name] for name in at_x}
        self.once |= {"f_start": f, "E0": self._one(error, True), "rho": self.norm.rho(x)}
        self.once["x_scale"] = self._one(x, False)

    def _first_virtual(self, x: Weights, y: Weights, at_x: Weights) -> None:
        """y_1 against x_0, both of which the first step at y speaks of."""
        _, at_y = self._at(y)
        self.once["start_gap_norm"] = self._one(minus(x, y), False)
        self.once["start_change"] = self._one(minus(at_x, at_y), True)

    def _push(self, row: dict[str, float], vectors: dict[str, Weights]) -> None:
        if self._block and set(self._block[0][1]) != set(vectors):
            self.flush()
        self._block.append((row, vectors))
        numbers = sum(value.numel() for value in vectors["momentum"].values())
        if len(self._block) * numbers >= BLOCK:
            self.flush()

    def flush(self) -> None:
        """Reduce what waits to rows."""
        if not self._block:
            return
        rows, names = [row for row, _ in self._block], list(self._block[0][1])
        layers = self.norm.layers
        v = {
            what: {n: torch.stack([vectors[what][n].detach() for _, vectors in self._block]).double() for n in layers}
            for what in names
        }
        self._block = []
        duals, primals, numbers = full(v, self.eta, self.shifted) if self.objective is not None else light(v, self.eta)
        for vectors, dual in ((duals, True), (primals, False)):
            joined = {n: torch.cat([vector[n] for vector in vectors.values()]) for n in layers}
            found = model_norms(joined, layers, dual).reshape(len(vectors), len(rows)).tolist()
            numbers |= dict(zip(vectors, found, strict=True))
        for i, row in enumerate(rows):
            row |= {name: values[i] for name, values in numbers.items()}
            row["direction_norm"] = row["step_norm"] / self.eta
            row["delta"] = row["gap_norm"] / self.eta
            if self.objective is not None:
                complete_row(row, self.eta, corrected=self.feedback is not None)
            if self.complete:
                self._terms.add(row)
            if self._reference is not None:
                self._reference.complete(row, LEAST_DISTANCE * self.eta)
            self.rows.add(row)
