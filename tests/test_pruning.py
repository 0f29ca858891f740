"""Exact sparsity, and zeros that stay."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from leak_atlas import BadInput, lab
from leak_atlas.models import Net, build
from leak_atlas.models.subject import weights
from leak_atlas.pruning import magnitudes, prune, prune_filters, units
from leak_atlas.recipe import (
    Data,
    Model,
    Pruner,
    Random,
    RandomHalves,
    Schedule,
    Setup,
    Sparsity,
)
from leak_atlas.training.loop import fit
from tests.localization.small import images

MODEL = Model("resnet10", width=2)


def state() -> dict[str, torch.Tensor]:
    return build(MODEL, 1, 3, 0).state_dict()


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 1), st.sampled_from(["global", "layer"]), st.booleans())
def test_the_smallest_or_largest_weights_are_pruned_in_exact_numbers(
    sparsity: float, scope: Any, largest: bool
) -> None:
    before = state()
    after, gone = prune(before, sparsity, scope=scope, largest=largest)
    sizes = [before[name].abs().flatten() for name in gone]
    masks = [mask.flatten() for mask in gone.values()]
    if scope == "global":
        sizes, masks = [torch.cat(sizes)], [torch.cat(masks)]
    for size, mask in zip(sizes, masks, strict=True):
        assert mask.sum() == round(sparsity * len(mask))
        smaller, larger = (~mask, mask) if largest else (mask, ~mask)
        assert size[smaller].numpy().max(initial=0) <= size[larger].numpy().min(initial=np.inf)
    for name, value in after.items():
        mask = gone.get(name, torch.zeros_like(value, dtype=torch.bool))
        assert not value[mask].any()
        assert torch.equal(value[~mask], before[name][~mask])


def test_magnitudes_are_of_no_norms_and_scores_decide_where_given() -> None:
    before = state()
    weights = [name for name in before if name.endswith("weight") and "norm" not in name]
    assert [*magnitudes(before)] == weights
    norm = "stem.norm.weight"
    bias = "head.fc.bias"
    scores = {norm: np.array([3.0, 1.0]), bias: np.array([2.0, 5.0, 4.0])}
    after, gone = prune(before, 0.4, scores)
    assert gone[norm].tolist() == [False, True]
    assert gone[bias].tolist() == [True, False, False]
    assert all(torch.equal(after[name], before[name]) for name in before if name not in scores)
    _, gone = prune(before, 0.4, scores, largest=True)
    assert not gone[norm].any()
    assert gone[bias].tolist() == [False, True, True]


@pytest.mark.parametrize("largest", [False, True])
def test_what_was_pruned_before_is_counted_and_stays(largest: bool) -> None:
    once, gone = prune(state(), 0.5, largest=largest)
    scores = magnitudes(state())
    _, again = prune(once, 0.7, scores, largest=not largest, before=gone)
    assert all((again[name] | ~mask).all() for name, mask in gone.items())
    total = sum(values.size for values in scores.values())
    assert sum(int(mask.sum()) for mask in again.values()) == round(0.7 * total)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_zeros_stay_zero_and_the_rest_learns(optimizer: str) -> None:
    net = build(MODEL, 1, 3, 0)
    start, gone = prune(net.state_dict(), 0.7)
    net.load_state_dict(start)
    schedule = Schedule(2, batch=8, optimizer=optimizer, lr=0.01, weight_decay=0.1)
    end = fit(net, images(), torch.arange(24), schedule, seed=0, frozen=gone).states["last"]
    for name, mask in gone.items():
        assert not end[name][mask].any()
        assert not torch.equal(end[name], start[name]), name


# --- whole filters


def trained(model: Model) -> Net:
    """A network whose norms have scales, shifts and statistics of some training."""
    net = build(model, 1, 3, 0)
    draws = torch.Generator().manual_seed(1)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight, module.bias):
                tensor.data.copy_(torch.rand(len(tensor), generator=draws) + 0.1)
    with torch.no_grad():
        for _ in range(30):
            net(torch.rand(16, 1, 16, 16, generator=draws))
    return net


def test_a_norm_of_joined_maps_is_a_unit_and_so_is_a_convolution_without_a_norm() -> None:
    model = Model("densenet121", width=4)
    parts = units(model, 1, 3, 8)
    layer = {unit for unit in parts if unit[0].startswith("stage2.3.")}
    assert layer == {
        ("stage2.3.norm1",),
        ("stage2.3.conv1", "stage2.3.norm2"),
        ("stage2.3.conv2",),
    }
    before = trained(model).state_dict()
    for by, removed in (
        ("scale", {"norm1.weight", "norm1.bias", "conv1.weight", "norm2.weight", "norm2.bias"}),
        ("l1", {"conv1.weight", "norm2.weight", "norm2.bias", "conv2.weight"}),
    ):
        _, gone = prune_filters(before, parts, 0.5, by)  # type: ignore[arg-type]
        assert {name[9:] for name in gone if name.startswith("stage2.3.")} == removed


@pytest.mark.parametrize("by", ["l1", "l2", "random", "scale"])
@pytest.mark.parametrize("sparsity", [0.0, 0.3, 0.55, 1.0])
def test_whole_filters_are_removed_in_exact_numbers(by: Any, sparsity: float) -> None:
    model = Model("vgg11", width=3)
    before = trained(model).state_dict()
    parts = units(model, 1, 3, 8)
    after, gone = prune_filters(before, parts, sparsity, by)
    removed = {conv: gone[f"{norm}.weight"] for conv, norm in parts}
    sizes = [len(mask) for mask in removed.values()]
    counts = [int(mask.sum()) for mask in removed.values()]
    if by == "scale":
        assert sum(counts) == round(sparsity * sum(sizes))
    else:
        assert counts == [round(sparsity * size) for size in sizes]
    for conv, norm in parts:
        which = removed[conv]
        for name in (f"{conv}.weight", f"{conv}.bias", f"{norm}.weight", f"{norm}.bias"):
            by_filter = gone[name].reshape(len(which), -1)
            assert by_filter.all(dim=1).equal(which)
            assert by_filter.any(dim=1).equal(which)
            assert not after[name][which].any()
            assert after[name][~which].equal(before[name][~which])


def worth(before: dict[str, torch.Tensor], unit: tuple[str, ...], by: str) -> torch.Tensor:
    """What decides which filters are removed, `(n,)`."""
    if by == "scale":
        return before[f"{unit[1]}.weight"]
    return before[f"{unit[0]}.weight"].flatten(1).norm(1 if by == "l1" else 2, dim=1)


@pytest.mark.parametrize("by", ["l1", "l2", "scale"])
def test_the_filters_of_the_least_worth_are_removed(by: Any) -> None:
    model = Model("vgg11", width=3)
    before = trained(model).state_dict()
    parts = units(model, 1, 3, 8)
    _, gone = prune_filters(before, parts, 0.5, by)
    worths = [worth(before, unit, by) for unit in parts]
    masks = [gone[f"{unit[1]}.weight"] for unit in parts]
    if by == "scale":  # ranked over all layers
        worths = [torch.cat(worths)]
        masks = [torch.cat(masks)]
    for values, mask in zip(worths, masks, strict=True):
        assert values[mask].max() <= values[~mask].min()


@pytest.mark.parametrize("by", ["l1", "random", "scale"])
def test_filters_that_were_pruned_before_are_counted_and_stay(by: Any) -> None:
    start = trained(MODEL).state_dict()
    parts = units(MODEL, 1, 3, 8)
    _, gone = prune_filters(start, parts, 0.4, "random", seed=3)
    _, more = prune_filters(start, parts, 0.7, by, seed=4, before=gone)
    assert all((more[name] | ~mask).all() for name, mask in gone.items())
    removed = [more[f"{norm}.weight"] for _, norm in parts]
    if by == "scale":  # ranked over all layers
        removed = [torch.cat(removed)]
    for mask in removed:
        assert mask.sum() == round(0.7 * len(mask))


def outputs(net: Net, names: list[str]) -> dict[str, torch.Tensor]:
    """What the named modules put out for some images."""
    found = {}
    for name in names:
        hook = net.get_submodule(name).register_forward_hook(
            lambda module, inputs, output, name=name: found.update({name: output})
        )
        with torch.no_grad(), hook:
            net(torch.rand(4, 1, 8, 8))
    return found


@pytest.mark.parametrize("by", ["l1", "scale"])
def test_a_removed_channel_is_zero_behind_its_norm_before_and_after_fine_tuning(by: Any) -> None:
    net = trained(MODEL)
    parts = units(MODEL, 1, 3, 8)
    values, gone = prune_filters(net.state_dict(), parts, 0.5, by)
    net.load_state_dict(values)
    masks = {norm: gone[f"{norm}.weight"] for _, norm in parts}

    def silent(net: Net) -> bool:
        maps = outputs(net, list(masks))
        return not any(maps[norm][:, mask].any() for norm, mask in masks.items())

    assert silent(net.eval())
    schedule = Schedule(3, batch=8, optimizer="adam", lr=0.01, weight_decay=0.1)
    end = fit(net, images(), torch.arange(24), schedule, seed=0, frozen=gone).states["last"]
    assert silent(net.eval())
    assert all(not end[name][mask].any() for name, mask in gone.items())


def test_filters_of_a_chain_are_pruned_by_its_recipe_and_refused_where_there_are_none() -> None:
    models = Setup(Data(pixels=8), RandomHalves(80, test=40), MODEL, Schedule(1, 32), 2).trained()
    pruned = models.prune_filters(0.5, "random")
    lab.realize(models)
    first, second = map(weights, pruned)
    assert not second.frozen, "pruned weights are no frozen ones"
    assert any(not first.gone[name].equal(mask) for name, mask in second.gone.items())
    with pytest.raises(BadInput, match="unlike a vit: take a resnet"):
        replace(models[0].training, model=Model("vit", width=1)).prune_filters(0.5)
    with pytest.raises(BadInput, match="0 to 1"):
        models[0].prune_filters(1.5)


def test_controls_remove_the_same_numbers_from_the_same_tensors() -> None:
    data = Data("fashion-mnist-small", 8)
    model = replace(MODEL, width=4)
    some = Setup(data, RandomHalves(100), model, Schedule(1, 16), 2).trained()
    lab.realize(some.score(Random()))
    counts = {}
    for pruner in get_args(Pruner):
        masks = weights(some.pruned(pruner, 0.5)[0]).gone
        counts[pruner] = {name: int(mask.sum()) for name, mask in masks.items()}
    assert counts["L1 unstructured"] == counts["random weights"]
    assert counts["L1 structured"] == counts["L2 structured"] == counts["random filters"]
    assert any("norm" in name for name in counts["slimming"])
    assert not any("norm" in name for name in counts["random weights"])
    with pytest.raises(BadInput, match="did you mean 'slimming'"):
        some.pruned("sliming", 0.5)  # type: ignore[arg-type]


# --- what is removed is counted


def test_sparsity_is_counted_by_tensor() -> None:
    (dense,) = Setup(Data(pixels=8), RandomHalves(80, test=40), MODEL, Schedule(1, 32), 1).trained()
    states = dense, dense.prune(0.5, scope="layer"), dense.prune_filters(0.5).train(Schedule(1, 32))
    results = lab.realize([Sparsity(state) for state in states])
    none, single, whole = (results[Sparsity(state)] for state in states)
    names, kinds = (bytes(whole[key]).decode().split("\n") for key in ("names", "kinds"))
    values = weights(dense).values
    assert whole["weights"].tolist() == [values[name].numel() for name in names]
    conv, norm = (np.array(kinds) == kind for kind in ("conv", "norm"))

    assert not none["gone"].any()
    assert none["network"] == 0
    assert single["gone"][conv].tolist() == [round(0.5 * size) for size in single["weights"][conv]]
    assert not single["gone"][norm].any()
    assert whole["network"] == whole["gone"].sum() / whole["weights"].sum() < 0.5
    assert whole["filters_gone"].tolist() == [round(0.5 * size) for size in whole["filters"]]
    assert not whole["filters"][~conv].any()


def test_iterative_pruning_has_the_published_steps_and_may_leave_out_the_head() -> None:
    """Rounds at 0, .205, .368, .497 and .6 of the weights of each layer; pruned weights stay
    pruned.
    """
    short = Schedule(1, 32, "adam", 1e-3)
    dense = Setup(Data("digits-bits"), RandomHalves(100), Model("fc", 16), short, 1).trained()
    rounds = dense.iteratively("L1 unstructured", 0.6, short, head=False)
    whole = dense.iteratively("L1 unstructured", 0.6, short, rounds=2)
    lab.realize(rounds, whole)
    gone = [weights(population[0]).gone for population in rounds]
    assert gone[0] == {}
    assert len(rounds) == 5
    for before, after, share in zip(gone, gone[1:], (0.205, 0.368, 0.497, 0.6), strict=False):
        assert after.keys() == {"stage1.fc.weight", "stage2.fc.weight"}
        for name, mask in after.items():
            assert float(mask.float().mean()) == pytest.approx(share, abs=0.5 / mask.numel() + 5e-4)
            assert name not in before or bool((mask | ~before[name]).all())
    assert "head.fc.weight" in weights(whole[-1][0]).gone
    with pytest.raises(BadInput, match="takes two rounds or more, not 1"):
        dense.iteratively("L1 unstructured", 0.6, short, rounds=1)
