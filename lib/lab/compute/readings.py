"""What is read off models, architectures and designs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lib import BadInput, store
from lib.lab.compute.states import Arrays, device, load, roles, table, tensor
from lib.recipe import (
    SNIP,
    Anatomy,
    At,
    Change,
    Choose,
    Distance,
    Magnitude,
    Random,
    Score,
    SelfAudit,
    Shuffled,
    Signals,
    Similarity,
    StageMembership,
    StageProbe,
    Taylor,
    Vulnerability,
)

if TYPE_CHECKING:
    import torch


def signals(step: Signals) -> Arrays:
    from lib.data.designs import Role
    from lib.data.resident import resident
    from lib.training.signals import logits

    own = step.of.training
    role, index, labels = table(own)
    found = logits(load(step.of), resident(own.data, device()), tensor(index), step.views)
    plain, views = (part.cpu().numpy() for part in found)
    right = plain.argmax(1) == labels
    shares = {
        f"accuracy_{r.name.lower()}": right[role[0] == r] for r in (Role.MEMBER, Role.NONMEMBER, Role.TEST, Role.DEV)
    }
    return {
        "logits": plain,
        "views": views,
        "labels": labels,
        "index": index,
        "role": role[0],
        **{name: np.asarray(part.mean()) for name, part in shares.items() if len(part)},
    }


def choose(step: Choose) -> Arrays:
    from lib import audit
    from lib.data.designs import Role

    read = [store.read(Signals(state).key).arrays for state in step.candidates]
    role = read[0]["role"]
    looked_at = np.isin(role, (Role.MEMBER, Role.DEV))
    found = audit.choose(
        np.stack([arrays["accuracy_dev"] for arrays in read]),
        np.stack([arrays["views"][looked_at, 0] for arrays in read]),
        role[looked_at] == Role.MEMBER,
        step.slack,
    )
    return {"chosen": np.asarray(found.chosen), "accuracy": found.accuracy, "leak": found.leak}


def distance(step: Distance) -> Arrays:
    from lib.data.designs import Role
    from lib.data.resident import resident
    from lib.localization.layers import distances, part_names

    a, b = step.a.training, step.b.training
    role_a, index, _ = table(a)
    role_b, _, _ = table(b)
    pool = np.isin(role_a[0], (Role.MEMBER, Role.NONMEMBER))
    net_a, net_b = load(step.a), load(step.b)
    found = distances(net_a, net_b, resident(a.data, device()), tensor(index[pool]), step.parts)
    return found | {
        "parts": _text(part_names(net_a, step.parts)),
        "index": index[pool],
        "seen_a": role_a[0][pool] == Role.MEMBER,
        "seen_b": role_b[0][pool] == Role.MEMBER,
    }


def similarity(step: Similarity) -> Arrays:
    from lib.data.designs import Role
    from lib.data.resident import resident
    from lib.localization.layers import part_names
    from lib.localization.similarity import similarity as compare

    a, b = step.a.training, step.b.training
    role_a, index, _ = table(a)
    role_b, _, _ = table(b)
    fitted, judged = _halved(np.flatnonzero(role_a[0] == Role.MEMBER), a.design.seed)
    both = role_b[0] == Role.MEMBER
    net_a, net_b = load(step.a), load(step.b)
    halves = tensor(index[fitted]), tensor(index[judged])
    seen = both[np.concatenate([fitted, judged])]
    found = compare(net_a, net_b, resident(a.data, device()), *halves, seen, step.parts)
    return found | {
        "parts": _text(part_names(net_a, step.parts)),
        "index": index[judged],
        "seen_a": np.ones(len(judged), bool),
        "seen_b": both[judged],
    }


def _halved(samples: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two random halves, each ascending: the same whenever the samples and the seed are."""
    order = np.random.default_rng(seed).permutation(len(samples))
    fitted, judged = np.split(samples[order], [len(samples) // 2])
    return np.sort(fitted), np.sort(judged)


def _text(words: list[str] | tuple[str, ...]) -> np.ndarray:
    """Words as an array of bytes: safetensors holds numbers."""
    return np.frombuffer("\n".join(words).encode(), dtype=np.uint8)


def stage_probe(step: StageProbe) -> Arrays:
    from lib.data.designs import Role
    from lib.data.resident import resident
    from lib.localization.layers import part_names, probe

    own = step.of.training
    role, index, _ = table(own)
    net = load(step.of)
    fitted, held_out = (tensor(index[role[0] == r]) for r in (Role.MEMBER, Role.TEST))
    accuracy = probe(net, resident(own.data, device()), fitted, held_out, step.dimensions, own.seed)
    return {"accuracy": np.asarray(accuracy), "parts": _text(part_names(net, "stages")[: len(accuracy)])}


def stage_membership(step: StageMembership) -> Arrays:
    from lib.data.designs import Role
    from lib.data.resident import resident
    from lib.localization.layers import part_names
    from lib.localization.membership import membership

    own = step.of.training
    role, index, _ = table(own)
    sides = [np.flatnonzero(role[0] == each) for each in (Role.MEMBER, Role.NONMEMBER)]
    if min(map(len, sides)) < 4:
        raise BadInput(
            f"row {own.row} has too few non-members to be told from members: take a row that trains on a half"
        )
    known, judged = (
        np.sort(np.concatenate(half)) for half in zip(*(_halved(s, own.design.seed) for s in sides), strict=True)
    )
    chosen = np.concatenate([known, judged])
    member, net = role[0][chosen] == Role.MEMBER, load(step.of)
    told = np.arange(len(chosen)) < len(known)
    data = resident(own.data, device())
    return {
        "scores": membership(net, data, tensor(index[chosen]), member, told, step.dimensions, own.seed),
        "member": member[~told],
        "index": index[judged],
        "parts": _text(part_names(net)),
    }


def score(step: Score) -> Arrays:
    from lib.data.designs import Role
    from lib.data.resident import resident
    from lib.localization import scores

    own, criterion, net = step.of.training, step.criterion, load(step.of)
    kinds = scores.kinds(net)
    history: dict[str, torch.Tensor] = {}
    init = load(At(step.of.origin(), "init")) if isinstance(criterion, Vulnerability | Change) else None
    match criterion:
        case Taylor() | SNIP():
            role, index, _ = table(own)
            members, reference = (tensor(index[role[0] == one]) for one in (Role.MEMBER, Role.REFERENCE))
            data = resident(own.data, device())
            if isinstance(criterion, SNIP):
                found = scores.snip(net, data, members, criterion, seed=own.seed)
            else:
                found, history = scores.taylor(
                    net, data, members, criterion, seed=own.seed, reference=reference, init=init
                )
            maps = {name: value.numpy() for name, value in found.items()}
        case Random():
            draws = np.random.default_rng(np.random.SeedSequence([criterion.seed, own.seed]))
            state = net.state_dict()
            maps = {name: draws.random(tuple(state[name].shape), np.float32) for name in kinds}
        case Magnitude() | Change():
            state, start = net.state_dict(), init.state_dict() if init else {}
            maps = {name: (state[name] - start.get(name, 0)).abs().cpu().numpy() for name in kinds}
        case _:
            raise BadInput(f"{type(criterion).__name__} says nothing about weights")
    return (
        maps
        | {f"history/{name}": value.numpy() for name, value in history.items()}
        | {"scored/kinds": _text([f"{name} {kind}" for name, kind in kinds.items()])}
    )


def shuffled(step: Shuffled) -> Arrays:
    (score,) = step.parents()
    arrays = store.read(score.key).arrays
    draws = np.random.default_rng(np.random.SeedSequence([step.seed, step.of.training.seed]))
    return {
        name: array if "/" in name else draws.permutation(array.ravel()).reshape(array.shape)
        for name, array in arrays.items()
    }


def anatomy(step: Anatomy) -> Arrays:
    from lib.training.cost import anatomy as count

    counts = count(step.model, step.data.channels, step.data.classes, step.data.size)
    return {name: _text(list(value)) if name == "parts" else np.asarray(value) for name, value in counts.items()}


def self_audit(step: SelfAudit) -> Arrays:
    """`duplicates (rows,)`; `blind (3,)`: the blind classifier's AUC on the first row, with its interval."""
    from lib.data import honesty, readers
    from lib.data.designs import Role

    role, index, labels = roles(step.data, step.design, step.rows)
    x = readers.load(step.data.name, step.data.pixels).x[index]
    halved = next((row for row in role if (row == Role.NONMEMBER).any()), None)
    found = {"duplicates": np.asarray([honesty.duplicates(x, row) for row in role])}
    if halved is not None:
        pool = np.isin(halved, (Role.MEMBER, Role.NONMEMBER))
        blind = honesty.blind(x[pool], halved[pool] == Role.MEMBER, labels[pool], step.design.seed)
        found["blind"] = np.asarray([blind.value, blind.low, blind.high])
    return found
