"""Groups and hyper-parameters: each parameter in one group, each number with an effect, the registry true."""

from __future__ import annotations

import argparse
import importlib
import json

import pytest
import torch
from torch import nn

from pipeline.errors import InputError
from pipeline.models.gpt import GPTConfig
from pipeline.optim import OPTIMIZERS, REGISTRY, make_optimizer, split_parameters
from pipeline.optim.registry import ABSENT
from pipeline.options import add_training_options, config_of
from pipeline.training import TrainConfig
from tests.pipeline.optim.models import Model

PAIRS = [("layers.1.weight", (4, 4)), ("layers.1.bias", (4,)), ("embed.weight", (5, 4))]


def build():
    generator = torch.Generator().manual_seed(5)
    return {n: nn.Parameter(torch.randn(s, generator=generator, dtype=torch.float64)) for n, s in PAIRS}


def walk(ps, optimizer, steps=12, scale=1.0):
    for call in range(steps):
        generator = torch.Generator().manual_seed(50 + call)
        for p in ps.values():
            p.grad = scale * torch.randn(p.shape, generator=generator, dtype=torch.float64)
        optimizer.step()
    return {n: p.detach().clone() for n, p in ps.items()}


def differ(a, b):
    return {n for n in a if not torch.equal(a[n], b[n])}


# -- which parameter goes where


def everywhere():
    model = Model()
    return model, [*model.named_parameters(), ("head.weight", model.head.weight)]


@pytest.mark.parametrize("correction", ["none", "error-feedback"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_trainable_parameter_is_in_one_group_and_frozen_ones_in_none(name, correction):
    """wte, a kernel, norms, biases, a tied head, a frozen matrix, a scalar."""
    model, pairs = everywhere()
    optimizer = make_optimizer(name, pairs, correction=correction)
    held = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    names = [n for group in optimizer.param_groups for n in group["param_names"]]
    assert names.count("wte.weight") == 1
    assert "head.weight" not in names


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_command_line_puts_them_into_the_same_groups(name, tied):
    parser = argparse.ArgumentParser()
    add_training_options(parser)
    args = parser.parse_args(["--optimizer", name, "--stages", "1", *["--tied"] * tied])
    config = config_of(args)
    layers = config.make_layers()
    pairs = [(f"layers.{i}.{n}", p) for i, layer in enumerate(layers) for n, p in layer.named_parameters()]
    optimizer = config.make_optimizer(pairs)
    held = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert sorted(held) == sorted({id(p) for _, p in pairs})
    by_helper = make_optimizer(name, pairs)
    assert [g["param_names"] for g in optimizer.param_groups] == [g["param_names"] for g in by_helper.param_groups]


@pytest.mark.parametrize("name", ["muon", "normuon", "adamuon"])
def test_muon_rules_get_hidden_matrices_only(name):
    _, pairs = everywhere()
    optimizer = make_optimizer(name, pairs)
    hidden = [n for group in optimizer.param_groups if "betas" not in group for n in group["param_names"]]
    if name != "muon":
        hidden = [n for group in optimizer.param_groups if group["use_muon"] for n in group["param_names"]]
    assert hidden == [n for n, _ in split_parameters(pairs)["hidden"]] == ["inner.weight"]


def test_an_assignment_by_hand():
    _, pairs = everywhere()
    parts = split_parameters(pairs, {"inner.weight": "head", "wte.weight": "hidden", "frozen.weight": "hidden"})
    assert [n for n, _ in parts["hidden"]] == ["wte.weight"]
    assert "inner.weight" in [n for n, _ in parts["head"]]
    rest = make_optimizer("muon", pairs, assign={"inner.weight": "other"})
    assert len(rest.optimizers) == 1  # AdamW alone
    for assign, message in (
        ({"norm.weight": "hidden"}, r"'hidden' for parameter norm.weight of shape \(4,\); allowed are 2 dimensions"),
        ({"conv.weight": "hidden"}, r"'hidden' for parameter conv.weight of shape \(3, 2, 3, 3\)"),
        ({"scale": "embedding"}, r"parameter scale of shape \(\); allowed are 2 dimensions or more"),
        ({"inner.weight": "vector"}, "parameter inner.weight .* allowed are fewer than 2"),
        ({"inner.weight": "body"}, "'body' for parameter inner.weight; allowed are hidden, embedding"),
        ({"nowhere": "hidden"}, "'nowhere' is not a parameter"),
    ):
        for name in OPTIMIZERS:
            with pytest.raises(InputError, match=message):
                make_optimizer(name, pairs, assign=assign)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_sets_are_refused_and_generators_taken(name):
    ps = build()
    with pytest.raises(InputError, match="named_parameters: a set has no order"):
        make_optimizer(name, set(ps.items()))
    with pytest.raises(InputError, match="'layers.1.weight' names two parameters"):
        make_optimizer(name, [*ps.items(), ("layers.1.weight", nn.Parameter(torch.ones(2, 2)))])
    optimizer = make_optimizer(name, (pair for pair in ps.items()))
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(ps)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_tied_weight_is_updated_once(name):
    once, twice = build(), build()
    a = make_optimizer(name, list(once.items()))
    b = make_optimizer(name, [*twice.items(), ("head.weight", twice["embed.weight"])])
    assert not differ(walk(once, a), walk(twice, b))


# -- which number does what

#: Entries of a group that choose a kind and are no number to tune, and what a list of numbers is changed to.
CHANGED = {
    "betas": lambda v: tuple(0.9 * b for b in v),
    "betas_1d": lambda v: tuple(0.9 * b for b in v),
    "ns_coeffs": lambda v: [(a * 1.1, b, c) for a, b, c in v],
    "precondition_frequency": lambda v: 3,  # read when the state is made
    "max_precondition_dim": lambda v: 3,
    "ns_steps": lambda v: v - 1,
    "shampoo_beta": lambda v: 0.5,
    "dampening": lambda v: 0.5,
    "weight_decay": lambda v: v + 0.3,
    "weight_decay_1d": lambda v: v + 0.3,
}
#: Without effect: as the registry says; torch's Muon has a floor of the norm there; SOAP's factors of vectors.
INERT = {
    ("mars", 0, "lr_1d"),
    *(("adan", i, "max_grad_norm") for i in (0, 1)),
    ("muon", 0, "eps"),
    *(("soap", 1, key) for key in ("shampoo_beta", "precondition_frequency", "max_precondition_dim")),
}


def numbers(group):
    for key, value in group.items():
        listed = isinstance(value, (tuple, list)) and key in CHANGED
        if key not in ("params", "param_names", "step") and (
            listed or key in CHANGED or (isinstance(value, (int, float)) and not isinstance(value, bool))
        ):
            yield key


def all_numbers():
    found = []
    for name in OPTIMIZERS:
        optimizer = make_optimizer(name, list(build().items()))
        for i, group in enumerate(optimizer.param_groups):
            found += [(name, i, key) for key in numbers(group)]
    return found


@pytest.mark.parametrize(("name", "i", "key"), all_numbers())
def test_each_number_changes_the_path(name, i, key):
    """Of the group's own parameters, and of no others."""
    ps, qs = build(), build()
    plain = walk(ps, make_optimizer(name, list(ps.items())))
    optimizer = make_optimizer(name, list(qs.items()))
    group = optimizer.param_groups[i]
    value = group[key]
    group[key] = CHANGED[key](value) if key in CHANGED else value * 1.5 if value else 0.01
    if key == "eps":
        group[key] = 1e-2
    moved = differ(plain, walk(qs, optimizer))
    assert moved <= set(group["param_names"])
    assert bool(moved) == ((name, i, key) not in INERT)
    if key in ("lr_1d", "max_grad_norm"):
        assert any(key in line for line in REGISTRY[name].known)


# -- what the registry says


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_entry_is_what_is_built(name):
    recipe = REGISTRY[name]
    module, _, cls = recipe.origin.rpartition(".")
    ps = build()
    optimizer = make_optimizer(name, list(ps.items()))
    inside = getattr(optimizer, "optimizers", [optimizer])[0]
    assert type(inside) is getattr(importlib.import_module(module), cls)
    for key, value in recipe.settings.items():
        assert inside.param_groups[0][key] == value, key
    assert inside.param_groups[0]["lr"] == recipe.lr
    for group in optimizer.param_groups:
        assert group.get("foreach", False) is False
        assert not group.get("fused")
    decays = {n: g.get("weight_decay", 0.0) for g in optimizer.param_groups for n in g["param_names"]}
    assert decays["layers.1.weight"] == decays["embed.weight"] == (0.0 if name in ("sgd", "lmo") else 0.1)
    assert decays["layers.1.bias"] == 0.0 or optimizer.param_groups[0]["weight_decay_1d"] == 0.0
    assert json.loads(json.dumps(recipe.describe()))["name"] == name


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_buffers_are_those_measured(name):
    """Entries of state that stay, per entry: a square hidden matrix, and an embedding and a vector."""
    ps = {"layers.1.weight": nn.Parameter(torch.ones(64, 64)), "layers.1.bias": nn.Parameter(torch.ones(4096))}
    optimizer = make_optimizer(name, list(ps.items()))
    for _ in range(3):
        for p in ps.values():
            p.grad = torch.randn_like(p)
        optimizer.step()
    measured = []
    for p in ps.values():
        values = [v for value in optimizer.state[p].values() for v in (value if isinstance(value, list) else [value])]
        measured.append(sum(v.numel() for v in values if isinstance(v, torch.Tensor)) / p.numel())
    assert tuple(map(int, measured)) == REGISTRY[name].buffers
    assert all(entry - int(entry) < 0.05 for entry in measured)


def test_vectors_of_mars_go_by_their_own_rate():
    ps, qs = build(), build()
    a, b = (make_optimizer("mars", list(x.items())) for x in (ps, qs))
    b.param_groups[0]["lr_1d_factor"] *= 2
    assert differ(walk(ps, a), walk(qs, b)) == {"layers.1.bias"}


def test_mars_clips_each_matrix_by_itself():
    ps = build()
    optimizer = make_optimizer("mars", list(ps.items()))
    walk(ps, optimizer, steps=1, scale=1e3)
    for n in ("layers.1.weight", "embed.weight"):
        assert float(optimizer.state[ps[n]]["exp_avg"].norm()) == pytest.approx(1 - 0.95, rel=1e-12)


def test_what_is_absent_is_refused_with_the_reason():
    assert set(ABSENT) & set(REGISTRY) == set()
    for name in ABSENT:
        with pytest.raises(InputError, match=rf"optimizer: '{name}' \(not in any library.*allowed are adamuon, adamw"):
            make_optimizer(name, list(build().items()))


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if REGISTRY[name].extra])
def test_without_the_extra_it_is_refused_before_anything_starts(name, monkeypatch):
    def missing(wanted):
        raise ImportError(wanted)

    monkeypatch.setattr("pipeline.optim.library_optimizers.import_module", missing)
    with pytest.raises(InputError, match=rf"optimizer: {name} needs .* pip install '\.\[optimizers\]'"):
        TrainConfig(optimizer=name, model=GPTConfig(layers=1, width=8, heads=1, context=8))


def test_the_table_and_the_recipes_have_the_same_names():
    assert list(OPTIMIZERS) == list(REGISTRY)
    assert {recipe.name for recipe in REGISTRY.values()} == set(REGISTRY)
    with pytest.raises(InputError, match="lr: 0"):
        type(REGISTRY["sgd"])(**(vars(REGISTRY["sgd"]) | {"lr": 0}))
