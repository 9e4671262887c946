"""Hessian-vector products against dense Hessians, and losses that have none: constant, stochastic, not finite."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from empirics.errors import InputError
from empirics.estimators.hessian import HessianOperator, refuse_random_layers
from empirics.estimators.lanczos import extreme_eigenvalues
from empirics.estimators.weights import combine, flatten, inner, minus, unflatten
from empirics.problems.gpt_corpus import gpt
from empirics.problems.mlp import mlp
from pipeline.models.gpt import GPTConfig, cross_entropy, gpt_layers

TEXT = bytes((7 * i * i + i) % 256 for i in range(4000))


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def dense(operator, like):
    """The Hessian column by column."""
    d = sum(v.numel() for v in like.values())
    return torch.stack([flatten(operator(unflatten(e, like))) for e in torch.eye(d, dtype=torch.float64)], dim=1)


def autograd_hessian(function, vector):
    """torch's own dense Hessian: another code path."""
    return torch.autograd.functional.hessian(function, vector)


def test_weights_as_vectors():
    x, y = {"a": draw(0, 2, 3), "b": draw(1, 4).float()}, {"a": draw(2, 2, 3), "b": draw(3, 4).float()}
    back = unflatten(flatten(x), x)
    assert all(torch.equal(back[n], x[n]) and back[n].dtype == x[n].dtype for n in x)
    assert inner(x, y) == pytest.approx(float(flatten(x) @ flatten(y)), rel=1e-12)
    expected = 2 * flatten(x) - 3 * flatten(y)
    torch.testing.assert_close(flatten(combine([(2.0, x), (-3.0, y)])), expected, atol=1e-6, rtol=0)
    assert torch.equal(flatten(minus(x, y)), flatten(combine([(1.0, x), (-1.0, y)])))
    with pytest.raises(InputError, match=r"vector: shape \(3,\)"):
        unflatten(torch.zeros(3), x)
    with pytest.raises(InputError, match="terms: none"):
        combine([])


def test_product_equals_the_dense_hessian_of_a_perceptron():
    problem = mlp(samples=5, features=2, hidden=3, outputs=1)
    x = problem.start()
    names = list(x)

    def f(vector):
        w = unflatten(vector, x)
        a, t = problem.objective.inputs, problem.objective.targets
        h = torch.tanh(a @ w[names[0]].T + w[names[1]]) @ w[names[2]].T + w[names[3]]
        return ((h - t) ** 2).sum() / (2 * len(a))

    H = autograd_hessian(f, flatten(x))
    torch.testing.assert_close(dense(lambda v: problem.hessian_product(x, v), x), H, rtol=1e-10, atol=1e-12)


def test_fused_attention_is_differentiated_twice():
    problem = gpt(TEXT, sequences=3, width=8, context=8)
    x = problem.start()
    v = {name: draw(i, *p.shape) for i, (name, p) in enumerate(x.items())}
    product = flatten(problem.hessian_product(x, v))
    eps = 1e-5
    _, up = problem.value_and_gradient(combine([(1.0, x), (eps, v)]))
    _, down = problem.value_and_gradient(combine([(1.0, x), (-eps, v)]))
    quotient = flatten(minus(up, down)) / (2 * eps)
    torch.testing.assert_close(product, quotient, rtol=0, atol=1e-4 * float(quotient.abs().max()))


def operator_of(loss, **parameters):
    return HessianOperator(loss, parameters)


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_linear_losses_have_hessian_zero():
    w, data = leaf(1.0, 2.0, 3.0), torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    found = extreme_eigenvalues(operator_of(lambda: (w * data).sum(), w=w), {"w": w.detach()})
    assert (found.top, found.bottom, found.modulus) == (0.0, 0.0, 0.0)
    assert found.converged and found.products == 1 and found.bracket == (0.0, 0.0)


def test_piecewise_linear_net_has_hessian_zero_in_each_layer():
    """ReLU net with linear loss and one trained layer: the loss is linear between kinks."""
    layer = nn.Linear(3, 4, dtype=torch.float64)
    inputs, readout = draw(1, 6, 3), draw(2, 4)
    operator = HessianOperator(lambda: (torch.relu(layer(inputs)) @ readout).mean(), dict(layer.named_parameters()))
    found = extreme_eigenvalues(operator, {n: p.detach() for n, p in layer.named_parameters()})
    assert found.modulus == 0.0 and found.converged


@pytest.mark.parametrize("case", ["unused", "frozen", "embedding"])
def test_blocks_without_curvature_count_as_zero(case):
    used, other = nn.Linear(3, 2, dtype=torch.float64), nn.Linear(3, 2, dtype=torch.float64)
    table = nn.Embedding(5, 3, dtype=torch.float64)
    inputs, rows = draw(0, 4, 3), torch.tensor([0, 3, 3, 0])
    if case == "frozen":
        other.requires_grad_(False)

    def loss():
        if case == "embedding":
            return (used(table(rows)) ** 2).mean()
        hidden = used(inputs) * (other(inputs) if case == "frozen" else 1.0)
        return (hidden**2).mean()

    modules = {"used": used, "table": table} if case == "embedding" else {"used": used, "other": other}
    parameters = {f"{key}.{n}": p for key, module in modules.items() for n, p in module.named_parameters()}
    like = {n: p.detach() for n, p in parameters.items()}
    H = dense(HessianOperator(loss, parameters), like)
    trained = [n for n, p in parameters.items() if p.requires_grad and not (case == "unused" and "other" in n)]

    def f(vector):
        values = unflatten(vector, {n: like[n] for n in trained})
        full = {n: values.get(n, like[n]) for n in like}
        given = full["table.weight"][rows] if case == "embedding" else inputs
        hidden = F.linear(given, full["used.weight"], full["used.bias"])
        if case == "frozen":
            hidden = hidden * F.linear(inputs, full["other.weight"], full["other.bias"])
        return (hidden**2).mean()

    small = autograd_hessian(f, flatten({n: like[n] for n in trained}))
    expected = torch.zeros_like(H)
    index = torch.cat([torch.full((p.numel(),), n in trained) for n, p in like.items()])
    expected[index.nonzero(), index.nonzero().T] = small
    torch.testing.assert_close(H, expected, rtol=1e-10, atol=1e-13)
    top = float(torch.linalg.eigvalsh(small)[-1])
    found = extreme_eigenvalues(HessianOperator(loss, parameters), like, "top", 1e-6)
    assert found.converged and found.top == pytest.approx(top, rel=1e-5)
    if case == "embedding":
        block = H[-15:].reshape(5, 3, -1)
        assert block[[1, 2, 4]].abs().max() == 0.0  # never looked up


def stochastic_net(dropout=0.5):
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1)).double()


def snapshot(net):
    state = {n: b.clone() for n, b in net.state_dict().items()}
    return state, torch.get_rng_state(), [m.training for m in net.modules()]


@pytest.mark.parametrize(
    ("make", "word"), [(stochastic_net, "BatchNorm1d"), (lambda: nn.Sequential(nn.Dropout(0.5)), "Dropout")]
)
def test_layers_in_training_mode_are_refused_by_name(make, word):
    net = make()
    with pytest.raises(InputError, match=f"loss: .*{word}.* is in training mode; allowed|{word}.*training mode, so"):
        refuse_random_layers([net])
    net.eval()
    refuse_random_layers([net])


def test_refusal_leaves_the_model_as_it_was():
    net, inputs = stochastic_net(), draw(0, 16, 4)
    loss = lambda: (net(inputs) ** 2).mean()  # noqa: E731
    loss().backward()
    before, gradients = snapshot(net), [p.grad.clone() for p in net.parameters()]
    for modules in ([net], []):  # told of the layers or not
        with pytest.raises(InputError, match="training mode|same weights|buffer"):
            HessianOperator(loss, dict(net.named_parameters()), modules)
        after = snapshot(net)
        if modules:
            assert all(torch.equal(after[0][n], v) for n, v in before[0].items())
        assert torch.equal(after[1], before[1]) and after[2] == before[2]
        assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), gradients, strict=True))


def test_batch_norm_alone_is_seen_by_its_buffers():
    """Without dropout the loss repeats, but each evaluation moves the running statistics."""

    class Statistics(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x):
            self.seen += 1
            return x

    net = nn.Sequential(nn.Linear(2, 1), Statistics())
    with pytest.raises(InputError, match="changes the buffer '1.seen'"):
        HessianOperator(lambda: net(torch.ones(3, 2)).sum(), dict(net.named_parameters()), [net])
    assert net[1].seen == 0


def test_a_loader_that_shuffles_is_refused():
    w, generator = leaf(1.0, 2.0), torch.Generator().manual_seed(0)
    with pytest.raises(InputError, match="at the same weights; allowed is a loss without randomness"):
        operator_of(lambda: ((w * torch.randn(2, generator=generator)) ** 2).sum(), w=w)


def test_dropout_without_a_layer_of_its_own_is_refused():
    """The GPT drops inside its blocks: no module to find, but the loss differs from call to call."""
    config = GPTConfig(layers=1, width=8, heads=2, context=8, dropout=0.5)
    net = nn.Sequential(*gpt_layers(config, 0, torch.float64))
    tokens = torch.arange(16).reshape(2, 8)
    parameters = dict(net.named_parameters())
    with pytest.raises(InputError, match="allowed is a loss without randomness"):
        HessianOperator(lambda: cross_entropy(net(tokens), tokens), parameters, [net])
    net.eval()
    operator = HessianOperator(lambda: cross_entropy(net(tokens), tokens), parameters, [net])
    v = {n: torch.ones_like(p) for n, p in parameters.items()}
    assert torch.equal(flatten(operator(v)), flatten(operator(v)))


def test_in_eval_mode_everything_is_as_before_and_products_agree():
    net, inputs = stochastic_net(), draw(0, 16, 4)
    net(inputs)  # running statistics that are not the initial ones
    net.eval()
    loss = lambda: (net(inputs) ** 2).mean()  # noqa: E731
    loss().backward()
    before, gradients = snapshot(net), [p.grad.clone() for p in net.parameters()]
    parameters = dict(net.named_parameters())
    operator = HessianOperator(loss, parameters, [net])
    v = {n: draw(i, *p.shape) for i, (n, p) in enumerate(parameters.items())}
    assert torch.equal(flatten(operator(v)), flatten(operator(v))) and operator.products == 2
    found = extreme_eigenvalues(operator, {n: p.detach() for n, p in parameters.items()}, tolerance=1e-2)
    assert found.converged
    after = snapshot(net)
    assert all(torch.equal(after[0][n], b) for n, b in before[0].items())
    assert torch.equal(after[1], before[1]) and after[2] == before[2]
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), gradients, strict=True))


def test_a_norm_at_zero_has_a_product_that_is_not_finite():
    w = leaf(0.0, 0.0)
    operator = operator_of(lambda: w.norm(), w=w)
    with pytest.raises(InputError, match="Hessian-vector product 1: not finite in 'w'"):
        extreme_eigenvalues(operator, {"w": w.detach()})
    with pytest.raises(InputError, match="Hessian-vector product 2: not finite in 'w'"):
        operator({"w": torch.ones(2, dtype=torch.float64)})
