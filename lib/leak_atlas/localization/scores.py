"""Scores of single weights: sums over a few updates of one network (CWRF, eq. 2-4), SNIP,
magnitude, change and random numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from leak_atlas import BadInput, nearest
from leak_atlas.data import augmentation
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident
from leak_atlas.engine import store
from leak_atlas.engine.compute import Arrays, Of, compute, text
from leak_atlas.engine.digests import generic
from leak_atlas.models import Net
from leak_atlas.models.subject import Subject
from leak_atlas.models.transformer import Attention
from leak_atlas.recipe import Confined, Schedule, Score, Shuffled, Updated
from leak_atlas.recipe.criteria import (
    SNIP,
    Change,
    Criterion,
    Learnability,
    Magnitude,
    Random,
    Taylor,
    Vulnerability,
)
from leak_atlas.training.answers import logits as logits_of
from leak_atlas.training.defences import turns
from leak_atlas.training.schedule import optimizer
from leak_atlas.training.update import float32

# Streams of random numbers beside those of the defences. A stream keeps its number for ever.
MEMBERS, REFERENCE = 21, 22

Maps = Mapping[str, NDArray[np.float32] | Tensor]  # a score of each weight, by state-dict name
History = dict[str, Tensor]  # of each of T updates, `(T,)`


# --- what is scored -----------------------------------------------------------------------------


def kinds(net: Net) -> dict[str, str]:
    """The scored tensors of a network by state-dict name, in its order, each with its layer type.

    Weights without biases: "conv", "linear", "norm"; "attention", in a transformer, for all linear
    maps of its blocks (attention and MLP, as CWRF's Tab. 1 joins them); "embedding", of words or,
    there, of patches.
    """
    transformer = any(isinstance(module, Attention) for module in net.modules())
    types: dict[str, str] = {}
    for name, parameter in net.named_parameters():
        if name.endswith("weight"):
            module = net.get_submodule(name.rpartition(".")[0])
            part = name.partition(".")[0] if transformer else ""
            types[name] = "norm" if parameter.dim() < 2 else _kind(module, part)
    return types


def _kind(module: nn.Module, part: str) -> str:
    """The type of a weight matrix; `part` names the part of a transformer, "" of other networks."""
    if isinstance(module, nn.Embedding) or part == "stem":
        return "embedding"
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        return "conv"
    return "linear" if part in ("", "head") else "attention"


@generic
def weigh(
    criterion: Criterion,
    own: Subject,
    init: Subject | None,
) -> tuple[Maps, History]:
    """Scores of a state's weights, and the history of computing them.

    `own` is the state that is scored, `init` its initialisation where the criterion compares with
    it. Raises TypeError for an unknown criterion.
    """
    raise TypeError(f"nothing says what {type(criterion).__name__} makes of weights")


# --- Taylor scores ------------------------------------------------------------------------------


@weigh.register(Taylor)
def _(
    criterion: Taylor,
    own: Subject,
    init: Subject | None,
) -> tuple[Maps, History]:
    return taylor(
        own.net,
        own.data,
        own.samples(Role.MEMBER)[:: criterion.every],
        criterion,
        seed=own.training.seed,
        reference=own.samples(Role.REFERENCE),
        init=init.net if init else None,
    )


def taylor(
    net: Net,
    data: Resident,
    members: Tensor,
    criterion: Taylor,
    *,
    seed: int,
    reference: Tensor | None = None,
    init: Net | None = None,
) -> tuple[dict[str, Tensor], History]:
    """Taylor scores of a network's weights, and the history of the T updates that they sum over.

    `members (n,)` are samples of `data`; for a `Vulnerability` so are `reference (r,)`, and `init`
    is the network as it was initialised. Batches depend on `seed` and `criterion.draw` alone. The
    history has `ce` and `accuracy`; of a vulnerability also `kl` and `accuracy_reference`. `net` is
    trained: give a copy. All float32, on the CPU. Raises BadInput if the updates diverge.
    """
    samples, goal = members[:0], None
    if isinstance(criterion, Vulnerability):
        assert reference is not None and init is not None
        samples = reference
        logits, _ = logits_of(init, data, reference)
        goal = logits.to(data.device).log_softmax(dim=1)
    history: list[dict[str, Tensor]] = []
    net.eval()  # members and reference samples share BatchNorm's statistics, which are kept
    with float32():
        losses = _losses(
            net,
            data,
            members,
            samples,
            criterion,
            goal,
            seed,
            history,
        )
        sums = summed_updates(net, criterion, losses)
    scores = {name: value.cpu().contiguous() for name, value in sums.items()}
    if not all(bool(value.isfinite().all()) for value in scores.values()):
        raise BadInput(
            f"scoring diverged within {criterion.steps} updates: lower lr, {criterion.lr:g}"
        )
    traces = {}
    for name in history[0]:
        values = [row[name] for row in history]
        traces[name] = torch.stack(values).cpu()
    return scores, traces


def summed_updates(
    net: Net,
    criterion: Taylor,
    losses: Iterable[Tensor],
) -> dict[str, Tensor]:
    """|g w| of each scored weight, summed over updates that descend `losses`.

    The losses are computed one after another, each with the weights before its update.
    """
    schedule = Schedule(
        1,
        criterion.batch,
        criterion.optimizer,
        criterion.lr,
        momentum=0.0,
        weight_decay=0.0,
        decay="constant",
    )
    update = optimizer(schedule, list(net.parameters()))
    weights = {name: net.get_parameter(name) for name in kinds(net)}
    sums = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    for loss in losses:
        update.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        for name, weight in weights.items():
            if weight.grad is not None:
                term = weight.grad * weight.detach()
                sums[name] += term.abs()
        update.step()
    net.zero_grad(set_to_none=True)
    return sums


def _losses(
    net: Net,
    data: Resident,
    members: Tensor,
    reference: Tensor,
    criterion: Taylor,
    goal: Tensor | None,
    seed: int,
    history: list[dict[str, Tensor]],
) -> Iterator[Tensor]:
    """Yield the loss of each update, and add a row to the history.

    `goal (r, C)` has the logarithms of the outputs that the r reference samples shall have.
    """
    own_batches = _batches(len(members), criterion, seed, MEMBERS)
    other_batches = _batches(len(reference), criterion, seed, REFERENCE)
    for own, others in zip(own_batches, other_batches, strict=True):
        index = torch.cat([members[own], reference[others]]).to(data.device)
        logits = net(augmentation.plain(data, index)).float()
        labels = data.labels[index]
        right = (logits.argmax(dim=1) == labels).float()
        fitted = len(own)
        loss = functional.cross_entropy(logits[:fitted], labels[:fitted])
        row = {"ce": loss.detach(), "accuracy": right[:fitted].mean()}
        if goal is not None and isinstance(criterion, Vulnerability):
            kl = divergence(logits[fitted:], goal[others.to(data.device)])
            loss = (1 - criterion.weight) * loss + criterion.weight * kl
            row |= {"kl": kl.detach(), "accuracy_reference": right[fitted:].mean()}
        history.append(row)
        yield loss


def _batches(
    n: int,
    criterion: Taylor,
    seed: int,
    stream: int,
) -> Tensor:
    """Batches of n samples, `(steps, batch)`: permutations one after another."""
    size = min(criterion.batch, n)
    draws = augmentation.generator(seed, criterion.draw, stream)
    return turns(n, criterion.steps * size, draws).view(criterion.steps, size)


def divergence(logits: Tensor, goal: Tensor) -> Tensor:
    """KL divergence of a model's outputs from the initial network's, mean over a batch.

    From `logits (B, C)` and `goal (B, C)`, the logarithms of the initial outputs. A scalar.
    """
    model = functional.log_softmax(logits, dim=1)
    return functional.kl_div(goal, model, reduction="batchmean", log_target=True)


# --- other scores -------------------------------------------------------------------------------


@weigh.register(SNIP)
def _(
    criterion: SNIP,
    own: Subject,
    init: Subject | None,
) -> tuple[Maps, History]:
    members = own.samples(Role.MEMBER)
    return snip(own.net, own.data, members, criterion, seed=own.training.seed), {}


def snip(
    net: Net,
    data: Resident,
    members: Tensor,
    criterion: SNIP,
    *,
    seed: int,
) -> dict[str, Tensor]:
    """|g w| / sum |g w| on one batch of the members (Lee et al. 2019, eq. 6), on the CPU.

    The batch is as class-balanced as the members allow. `net` is trained: give a copy.
    """
    draws = augmentation.generator(seed, 0, MEMBERS)
    order = members[torch.randperm(len(members), generator=draws)].to(data.device)
    labels = data.labels[order]
    number_in_class = functional.one_hot(labels, data.classes).cumsum(dim=0)  # (n, C)
    turn = number_in_class.gather(1, labels[:, None])[:, 0]
    batch = order[turn.argsort(stable=True)[: criterion.batch]]
    net.eval()
    with float32():
        logits = net(augmentation.plain(data, batch)).float()
        loss = functional.cross_entropy(logits, data.labels[batch])
        products = summed_updates(net, Learnability(steps=1), [loss])
    sums = [product.double().sum() for product in products.values()]
    total = torch.stack(sums).sum()
    return {name: (product / total).cpu() for name, product in products.items()}


@weigh.register(Magnitude)
@weigh.register(Change)
def _(
    criterion: Magnitude | Change,
    own: Subject,
    init: Subject | None,
) -> tuple[Maps, History]:
    state = own.weights.values
    start = init.weights.values if init else {}
    scores = {}
    for name in kinds(own.net):
        scores[name] = (state[name] - start.get(name, 0)).abs()
    return scores, {}


@weigh.register(Random)
def _(
    criterion: Random,
    own: Subject,
    init: Subject | None,
) -> tuple[Maps, History]:
    draws = np.random.default_rng([criterion.seed, own.training.seed])
    state = own.weights.values
    scores = {}
    for name in kinds(own.net):
        scores[name] = draws.random(state[name].shape, np.float32)
    return scores, {}


# --- steps --------------------------------------------------------------------------------------


def _weighed(
    step: Score | Updated,
    own: Subject,
    of: Of,
) -> tuple[Maps, History]:
    init = of(step.of.initial()) if step.criterion.compares else None
    return weigh(step.criterion, own, init)


@compute.register(Score)
def _(step: Score, of: Of) -> Arrays:
    own = of(step.of)
    types = []
    for name, kind in kinds(own.net).items():
        types.append(f"{name} {kind}")
    maps, history = _weighed(step, own, of)
    arrays = {name: np.asarray(values) for name, values in maps.items()}
    for name, values in history.items():
        arrays[f"history/{name}"] = np.asarray(values)
    arrays["scored/kinds"] = text(types)
    return arrays


@compute.register(Shuffled)
def _(step: Shuffled, of: Of) -> Arrays:
    (score,) = step.parents()
    draws = np.random.default_rng([step.seed, step.of.training.seed])
    arrays = dict(store.read(score.key).arrays)
    for name, array in arrays.items():
        if "/" not in name:
            arrays[name] = draws.permutation(array.ravel()).reshape(array.shape)
    return arrays


@compute.register(Confined)
def _(step: Confined, of: Of) -> Arrays:
    (score,) = step.parents()
    arrays = dict(store.read(score.key).arrays)
    names = [name for name in arrays if "/" not in name]
    parts = list(dict.fromkeys(name.partition(".")[0] for name in names))
    if step.start not in parts:
        raise BadInput(f"no part '{step.start}' has scores{nearest(step.start, parts)}")
    least = min(float(arrays[name].min()) for name in names)
    behind = parts[parts.index(step.start) :]
    for name in names:
        is_behind = name.partition(".")[0] in behind
        is_allowed = not is_behind if step.before else is_behind
        if not is_allowed:
            arrays[name] = np.full_like(arrays[name], least - 1)
    return arrays


@compute.register(Updated)
def _(step: Updated, of: Of) -> Arrays:
    own = of(step.of)
    _weighed(step, own, of)
    return {name: value.cpu().numpy() for name, value in own.net.state_dict().items()}
