"""What every architecture must take: rewinding and holding in a training, and a walk beside another
net.
"""

import numpy as np
import pytest
import torch

from leak_atlas.data.resident import Resident
from leak_atlas.localization.layers import distances
from leak_atlas.models import build
from leak_atlas.recipe import Model, Schedule
from leak_atlas.rewinding import freeze, places, rewind
from leak_atlas.training import update
from leak_atlas.training.loop import fit


def images(n: int = 24, pixels: int = 16) -> Resident:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (n, pixels, pixels, 1), generator=generator, dtype=torch.uint8)
    return Resident(x, torch.arange(n) % 3, torch.full((1,), 0.5), torch.full((1,), 0.25), n, 3)


def assert_front_is_held(model: Model, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained, rewound from `place` on, trained again with the front held: once with its features
    kept, once not.
    """
    data, members, schedule = (
        images(),
        torch.arange(24),
        Schedule(2, batch=8, lr=0.02, weight_decay=0.1),
    )
    first = fit(build(model, 1, 3, 0, 16), data, members, schedule, seed=0, wanted=("init",)).states
    start, ends = rewind(first["last"], first["init"], place), []
    held = freeze(start, place)
    for cache in (update.CACHE, 0):
        monkeypatch.setattr(update, "CACHE", cache)
        net = build(model, 1, 3, 1, 16)
        net.load_state_dict(start)
        calls: list[int] = []
        next(net.blocks())[1].register_forward_hook(lambda *_, calls=calls: calls.append(1))
        ends.append(fit(net, data, members, schedule, seed=1, frozen=held).states["last"])
        # One look at what a sample takes and one at all samples, or one a step.
        assert len(calls) == (2 if cache else 2 * 3 + 1)
    known = places(start)
    for position, (name, value) in enumerate(ends[0].items()):
        assert (name in held) == (position < known[place])
        if name in held:
            assert torch.equal(value, first["last"][name]), name
        else:
            assert not torch.equal(value, first["init"][name]), name
    for name, value in ends[0].items():
        torch.testing.assert_close(value, ends[1][name], rtol=1e-3, atol=1e-4)


def assert_no_distance_before(model: Model, block: str, data: Resident) -> None:
    """Two nets that share all weights before `block` are at no distance there, and at some from it
    on.
    """
    a, b = build(model, 1, 3, 0, 16), build(model, 1, 3, 0, 16)
    b.load_state_dict(rewind(a.state_dict(), build(model, 1, 3, 1, 16).state_dict(), block))
    names = a.names("blocks")
    found = distances(a, b, data, torch.arange(24), "blocks")["euclidean"]
    first = names.index(block)
    assert not found[:first].any() and np.all(found[first:].mean(axis=1) > 0)
    whole = distances(a, b, data, torch.arange(24))["euclidean"]
    np.testing.assert_array_equal(whole[-1], found[-1])
    assert whole.shape == (len(a.parts()), 24)
