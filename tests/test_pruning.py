"""Exact sparsity, and zeros that stay."""

from collections import OrderedDict
from collections.abc import Callable
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
    PruneFilters,
    Pruner,
    Random,
    RandomHalves,
    Schedule,
    Setup,
    Sparsity,
)
from leak_atlas.training.loop import fit
from tests.test_rewinding import images

MODEL = Model("resnet10", width=2)


def state() -> dict[str, torch.Tensor]:
    return build(MODEL, 1, 3, 0).state_dict()


@settings(deadline=None)
@given(st.floats(0, 1), st.sampled_from(["global", "layer"]))
def test_sparsity_is_exact(sparsity: float, scope: str) -> None:
    before = state()
    importance = magnitudes(before)
    after, gone = prune(before, sparsity, scope=scope)  # type: ignore[arg-type]
    counts = {name: int(mask.sum()) for name, mask in gone.items()}
    if scope == "layer":
        assert counts == {
            name: round(sparsity * values.size) for name, values in importance.items()
        }
    else:
        assert sum(counts.values()) == round(
            sparsity * sum(values.size for values in importance.values())
        )
    for name, value in after.items():
        mask = gone.get(name, torch.zeros_like(value, dtype=torch.bool))
        assert not value[mask].any() and torch.equal(value[~mask], before[name][~mask])
    kept = np.concatenate([importance[name][~gone[name].numpy()] for name in gone])
    lost = np.concatenate([importance[name][gone[name].numpy()] for name in gone])
    if scope == "global" and kept.size and lost.size:
        assert lost.max() <= kept.min()


def test_magnitude_spares_norms_and_biases_and_scores_decide_where_given() -> None:
    before = state()
    assert all(
        before[name].dim() > 1 for name in magnitudes(before)
    ) and "head.fc.weight" in magnitudes(before)
    scores = {"stem.norm.weight": np.array([3.0, 1.0]), "head.fc.bias": np.array([2.0, 5.0, 4.0])}
    after, gone = prune(before, 0.4, scores)
    assert gone["stem.norm.weight"].tolist() == [False, True] and gone["head.fc.bias"].tolist() == [
        True,
        False,
        False,
    ]
    assert all(torch.equal(after[name], before[name]) for name in before if name not in scores)
    _, gone = prune(before, 0.4, scores, largest=True)
    assert not gone["stem.norm.weight"].any() and gone["head.fc.bias"].tolist() == [
        False,
        True,
        True,
    ]


@settings(deadline=None)
@given(st.floats(0, 1))
def test_zeros_of_before_are_counted(more: float) -> None:
    once, gone = prune(state(), 0.5)
    _, again = prune(once, 0.5 + 0.5 * more)
    assert all((again[name] | ~mask).all() for name, mask in gone.items())


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


# --- whole filters ----------------------------------------------------------------------------------------------------


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


def silent(net: Net, gone: dict[str, torch.Tensor]) -> int:
    """How many channels that are gone the norms put out, all of them exactly zero."""
    found = []

    def look(name: str) -> Callable[..., None]:
        return lambda module, given, output: found.append(output[:, gone[f"{name}.weight"]])

    hooks = [
        m.register_forward_hook(look(n))
        for n, m in net.named_modules()
        if f"{n}.weight" in gone and "norm" in n
    ]
    with torch.no_grad():
        net(torch.rand(4, 1, 8, 8))
    for hook in hooks:
        hook.remove()
    assert found and not any(channels.any() for channels in found)
    return sum(channels.shape[1] for channels in found)


def test_the_network_says_which_norm_reads_which_convolution() -> None:
    stage = [("stage1.0.conv1", "stage1.0.norm1"), ("stage1.0.conv2", "stage1.0.norm2")]
    found = units(MODEL, 1, 3, 8)
    assert list(found[:3]) == [("stem.conv", "stem.norm"), *stage] and len(found) == 12
    assert ("stage4.0.shortcut.conv", "stage4.0.shortcut.norm") in found
    assert all(len(unit) == 2 for unit in units(Model("resnet50", width=4), 1, 3, 8))
    assert [unit[0] for unit in units(Model("vgg11", width=2), 1, 3, 8)][:2] == [
        "stage1.0.conv",
        "stage2.0.conv",
    ]


class PreActivation(nn.Module):
    """DenseNet's layer: norm, convolution, norm, convolution, and what it was given joined to what
    it found.
    """

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(2), nn.Conv2d(2, 4, 1)
        self.norm2, self.conv2 = nn.BatchNorm2d(4), nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv1(torch.relu(self.norm1(torch.cat([x], dim=1))))
        return torch.cat([x, self.conv2(torch.relu(self.norm2(y)))], dim=1)


def test_a_norm_of_joined_maps_goes_alone_and_a_convolution_without_a_norm_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = Net(OrderedDict(stem=PreActivation()))
    monkeypatch.setattr("leak_atlas.pruning.skeleton", lambda *_: net.to("meta"))
    monkeypatch.setattr(
        "leak_atlas.pruning.blank", lambda *_: torch.empty(1, 2, 4, 4, device="meta")
    )
    found = units.__wrapped__(MODEL, 2, 3, 4)
    assert set(found) == {("stem.norm1",), ("stem.conv1", "stem.norm2"), ("stem.conv2",)}
    state = PreActivation().state_dict(prefix="stem.")
    state["stem.norm1.weight"][1], state["stem.norm2.weight"][:2] = 0.1, torch.tensor([0.2, 0.3])
    _, gone = prune_filters(state, found, 0.5, "scale")
    assert gone["stem.norm1.weight"].tolist() == [False, True] and gone["stem.norm2.bias"].tolist()[
        :2
    ] == [True, True]
    assert set(gone) == {
        f"stem.{n}.{p}" for n in ("norm1", "norm2", "conv1") for p in ("weight", "bias")
    }
    _, gone = prune_filters(state, found, 0.5, "l1")
    assert {name.split(".")[1] for name in gone} == {"conv1", "norm2", "conv2"}


@pytest.mark.parametrize("by", ["l1", "l2", "random", "scale"])
@pytest.mark.parametrize("sparsity", [0.0, 0.3, 0.55, 1.0])
def test_filters_go_whole_in_exact_numbers(by: Any, sparsity: float) -> None:
    model = Model("vgg11", width=3)
    before, parts = trained(model).state_dict(), units(model, 1, 3, 8)
    after, gone = prune_filters(before, parts, sparsity, by)
    counts = [int(gone[f"{conv}.weight"][:, 0, 0, 0].sum()) for conv, _ in parts]
    sizes = [len(before[f"{conv}.weight"]) for conv, _ in parts]
    if by == "scale":
        assert sum(counts) == round(sparsity * sum(sizes))
    else:
        assert counts == [round(sparsity * size) for size in sizes]
    for conv, norm in parts:
        which = gone[f"{norm}.weight"]
        for name in (f"{conv}.weight", f"{conv}.bias", f"{norm}.weight", f"{norm}.bias"):
            assert (
                gone[name].flatten(1).all(1).equal(which)
                if gone[name].dim() > 1
                else gone[name].equal(which)
            )
            assert not after[name][which].any() and after[name][~which].equal(before[name][~which])
        worth = {
            "l1": before[f"{conv}.weight"].abs().sum((1, 2, 3)),
            "l2": before[f"{conv}.weight"].flatten(1).norm(dim=1),
        }
        if by in worth and which.any() and not which.all():
            assert worth[by][which].max() <= worth[by][~which].min()
    assert set(gone) <= {
        f"{name}.{part}" for unit in parts for name in unit for part in ("weight", "bias")
    }
    scales = [(before[f"{norm}.weight"], gone[f"{norm}.weight"]) for _, norm in parts]
    if by == "scale" and 0 < sparsity < 1:
        assert max(s[g].max() for s, g in scales if g.any()) <= min(
            s[~g].min() for s, g in scales if not g.all()
        )


@pytest.mark.parametrize("by", ["l1", "random", "scale"])
def test_filters_that_are_gone_count_and_stay(by: Any) -> None:
    before, parts = trained(MODEL).state_dict(), units(MODEL, 1, 3, 8)
    once, gone = prune_filters(before, parts, 0.4, by, seed=3)
    _, more = prune_filters(once, parts, 0.7, by, seed=3, before=gone)
    assert all((more[name] | ~mask).all() for name, mask in gone.items())
    counts = sum(int(more[f"{norm}.weight"].sum()) for _, norm in parts)
    if by == "scale":
        assert counts == round(0.7 * sum(len(before[f"{norm}.weight"]) for _, norm in parts))
    other = prune_filters(before, parts, 0.4, by, seed=4)[1]
    assert (by == "random") != all(other[name].equal(mask) for name, mask in gone.items())


@pytest.mark.parametrize("by", ["l1", "scale"])
def test_a_channel_that_is_gone_is_zero_behind_its_norm_before_and_after_fine_tuning(
    by: Any,
) -> None:
    net, parts = trained(MODEL), units(MODEL, 1, 3, 8)
    values, gone = prune_filters(net.state_dict(), parts, 0.5, by)
    net.load_state_dict(values)
    count = silent(net.eval(), gone)
    assert count == sum(int(gone[f"{norm}.weight"].sum()) for _, norm in parts) > 20
    schedule = Schedule(3, batch=8, optimizer="adam", lr=0.01, weight_decay=0.1)
    end = fit(net, images(), torch.arange(24), schedule, seed=0, frozen=gone).states["last"]
    assert silent(net.eval(), gone) == count and silent(net.train(), gone) == count
    assert all(not end[name][mask].any() for name, mask in gone.items())
    assert not end["stage2.0.norm1.running_mean"].equal(values["stage2.0.norm1.running_mean"])


def test_filters_of_a_chain_are_pruned_by_its_recipe_and_refused_where_there_are_none() -> None:
    models = Setup(Data(pixels=8), RandomHalves(80, test=40), MODEL, Schedule(1, 32), 2).trained()
    pruned = models.prune_filters(0.5, "random")
    assert pruned[0] == PruneFilters(models[0], 0.5, "random") and pruned[0].pruned
    assert PruneFilters(models[0], 0.5).record() == {
        "kind": "PruneFilters",
        "parent": {"step": models[0].key},
        "sparsity": 0.5,
    }
    lab.realize(models)
    (_, _, first), (values, frozen, other) = map(weights, pruned)
    assert not frozen and any(not first[name].equal(mask) for name, mask in other.items())
    twice = weights(pruned[1].prune(0.8, scope="layer"))
    assert all((twice.gone[name] | ~mask).all() for name, mask in other.items())
    assert all(not values[name][mask].any() for name, mask in other.items())
    with pytest.raises(BadInput, match="unlike a vit: take a resnet"):
        replace(models[0].training, model=Model("vit", width=1)).prune_filters(0.5)
    with pytest.raises(BadInput, match="0 to 1"):
        models[0].prune_filters(1.5)


def test_pruners_by_name_and_their_controls_remove_as_much_of_the_same_tensors() -> None:
    design = RandomHalves(100)
    some = Setup(
        Data("fashion-mnist-small", 8), design, replace(MODEL, width=4), Schedule(1, 16), 2
    ).trained()
    lab.realize(some.score(Random()))
    gone = {}
    for pruner in get_args(Pruner):
        masks = weights(some.pruned(pruner, 0.5)[0]).gone
        gone[pruner] = {name: int(mask.sum()) for name, mask in masks.items()}
    assert gone["L1 unstructured"] == gone["random weights"]
    assert gone["L1 structured"] == gone["L2 structured"] == gone["random filters"]
    assert any("norm" in name for name in gone["slimming"])
    assert not any("norm" in name for name in gone["random weights"])
    with pytest.raises(BadInput, match="did you mean 'slimming'"):
        some.pruned("sliming", 0.5)  # type: ignore[arg-type]


# --- what is gone is counted ------------------------------------------------------------------------------------------


def test_sparsity_is_told_tensor_by_tensor() -> None:
    (dense,) = Setup(Data(pixels=8), RandomHalves(80, test=40), MODEL, Schedule(1, 32), 1).trained()
    states = dense, dense.prune(0.5, scope="layer"), dense.prune_filters(0.5).train(Schedule(1, 32))
    results = lab.realize([Sparsity(state) for state in states])
    none, single, whole = (results[Sparsity(state)] for state in states)
    names = bytes(whole["names"]).decode().split("\n")
    kinds = np.array(bytes(whole["kinds"]).decode().split("\n"))
    values, conv = weights(dense).values, kinds == "conv"
    assert names == [name for name in values if name.endswith("weight")] and set(kinds) == {
        "conv",
        "norm",
        "linear",
    }
    assert whole["weights"].tolist() == [values[name].numel() for name in names]
    assert not none["gone"].any() and none["network"] == none["convolutions"] == 0
    assert single["gone"][conv].tolist() == [round(0.5 * size) for size in single["weights"][conv]]
    assert (
        not single["gone"][kinds == "norm"].any()
        and 0.45 < single["network"] < 0.5 < single["convolutions"] + 0.01
    )
    assert whole["filters_gone"].tolist() == [round(0.5 * size) for size in whole["filters"]]
    assert whole["filters"][conv].tolist() == [len(values[name]) for name in np.array(names)[conv]]
    assert not whole["filters"][~conv].any() and whole["convolutions"] == pytest.approx(0.5)
    assert whole["network"] == whole["gone"].sum() / whole["weights"].sum() < 0.5
    for name, count in zip(np.array(names)[conv], whole["filters_gone"][conv], strict=True):
        which = whole[f"filter/{name}"]
        assert (
            which.sum() == count
            and not weights(states[2]).values[name][torch.from_numpy(which)].any()
        )


def test_one_round_would_prune_nothing() -> None:
    population = Setup(
        Data("digits-bits"), RandomHalves(100), Model("fc", 16), Schedule(1), 1
    ).trained()
    with pytest.raises(BadInput, match="takes two rounds or more, not 1"):
        population.iteratively("L1 unstructured", 0.6, Schedule(1), rounds=1)
    assert len(population.iteratively(None, 0.6, Schedule(1), rounds=1)) == 1


def test_iterative_pruning_goes_by_the_published_steps_and_may_spare_the_head() -> None:
    """Rounds at 0, .205, .368, .497 and .6 of the weights of each layer; what is gone stays gone."""
    short = Schedule(1, 32, "adam", 1e-3)
    setup = Setup(Data("digits-bits"), RandomHalves(100), Model("fc", 16), short, 1)
    rounds = setup.trained().iteratively("L1 unstructured", 0.6, short, head=False)
    whole = setup.trained().iteratively("L1 unstructured", 0.6, short, rounds=2)
    assert len({population[0].training.seed for population in (setup.trained(), *rounds)}) == 6, (
        "batches of its own"
    )
    results = lab.realize(
        [Sparsity(population[0]) for population in (*rounds, *whole)], rounds, whole
    )
    gone = [weights(population[0]).gone for population in rounds]
    assert gone[0] == {} and len(rounds) == 5
    for before, after, share in zip(gone, gone[1:], (0.205, 0.368, 0.497, 0.6), strict=False):
        assert after.keys() == {"stage1.fc.weight", "stage2.fc.weight"}
        for name, mask in after.items():
            assert float(mask.float().mean()) == pytest.approx(share, abs=0.5 / mask.numel() + 5e-4)
            assert name not in before or bool((mask | ~before[name]).all())
    assert results[Sparsity(rounds[-1][0])]["network"] < 0.6
    assert "head.fc.weight" in weights(whole[-1][0]).gone
