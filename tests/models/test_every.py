"""What is true of every architecture: seeds, finite gradients, blocks, rewinding, distances,
refusals.
"""

import pytest
import torch

from leak_atlas import BadInput
from leak_atlas.models import Net, build
from leak_atlas.recipe import Model, Schedule
from leak_atlas.rewinding import freeze, rewind
from leak_atlas.training import update
from leak_atlas.training.loop import fit
from tests.localization.small import images

WIDTHS = {
    "resnet18": 8,
    "resnet50": 4,
    "vgg19": 4,
    "densenet121": 4,
    "wrn16": 4,
    "cnn4": 4,
    "fc": 8,
    "atm-xt": 8,
    "vit": 2,
    "transformer": 8,
}
CHANNELS = {"transformer": 50, "fc": 40}
every = pytest.mark.parametrize("name", WIDTHS)


def made(name: str, seed: int = 0) -> Net:
    return build(Model(name, WIDTHS[name]), CHANNELS.get(name, 3), 10, seed, 16)


def batch(name: str, pixels: int = 16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    if name == "transformer":
        words = torch.randint(1, 50, (4, 16), generator=generator)
        words[0, 5:] = 0
        return words
    shape = (40,) if name == "fc" else (3, pixels, pixels)
    return torch.randn(4, *shape, generator=generator)


@every
def test_initialisation_depends_on_the_seed_alone(name: str) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, again, other = (made(name, seed).state_dict() for seed in (5, 5, 6))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


@every
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_forward_and_backward_are_finite(name: str, precision: torch.dtype) -> None:
    needs_size = name in ("cnn4", "vit", "transformer", "fc")
    for pixels in (16,) if needs_size else (8, 16, 32):
        net = made(name)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision is torch.bfloat16):
            out = net(batch(name, pixels))
        out.float().square().mean().backward()
        assert out.shape == (4, 10)
        assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in net.parameters())


@every
def test_blocks_hold_the_state_and_features_end_with_the_logits(name: str) -> None:
    net = made(name).eval()
    x = batch(name)
    in_blocks = [f"{block}.{own}" for block, module in net.blocks() for own in module.state_dict()]
    assert in_blocks == list(net.state_dict())
    for parts in ("stages", "blocks"):
        found = dict(net.features(x, parts))
        assert tuple(found) == net.names(parts)
        torch.testing.assert_close(found["head"], net(x))
    for module in net.modules():
        assert not getattr(module, "inplace", False)
        if isinstance(module, torch.nn.Conv2d):
            assert module.weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("model", "place"),
    [
        (Model("vgg11", width=2), "stage3.1"),
        (Model("densenet121", width=2), "stage2.5"),
        (Model("cnn4", width=4), "stage2"),
        (Model("atm-xt", width=8), "stage3.1"),
        (Model("vit", width=2, patch=8), "stage4"),
    ],
)
def test_a_frozen_front_stays_while_the_rest_learns(
    model: Model, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trained, rewound from `place` on, trained again with the front frozen: once with the front's
    features in memory, once without.
    """
    data = images(side=16)
    members = torch.arange(24)
    # At a high rate, a deep, thin network amplifies what batches of another size round.
    schedule = Schedule(2, batch=8, lr=0.005, weight_decay=0.1)
    first = fit(build(model, 1, 3, 0, 16), data, members, schedule, seed=0, wanted=("init",)).states
    start = rewind(first["last"], first["init"], place)
    frozen = freeze(start, place)
    ends = []
    for cache in (update.CACHE, 0):
        monkeypatch.setattr(update, "CACHE", cache)
        net = build(model, 1, 3, 1, 16)
        net.load_state_dict(start)
        calls: list[int] = []
        next(net.blocks())[1].register_forward_hook(lambda *_, calls=calls: calls.append(1))
        ends.append(fit(net, data, members, schedule, seed=1, frozen=frozen).states["last"])
        # One look at what a sample takes and one at all samples, or one a step.
        assert len(calls) == (2 if cache else 2 * 3 + 1)
    for name, value in ends[0].items():
        if name in frozen:
            assert torch.equal(value, first["last"][name]), name
        else:
            assert not torch.equal(value, first["init"][name]), name
        torch.testing.assert_close(value, ends[1][name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("vgg11", {"stem": "conv3-pool"}, "stem belongs to the"),
        ("resnet18", {"patch": 2}, "patch belongs to the atm and vit"),
        ("wrn16", {"dropout": 1.0}, "not 1.0"),
        ("densenet121", {"stage4_channels": 8}, "stage4_channels belongs to the"),
        ("densenet121", {"width": 5}, "half its width: give an even one, not 5"),
        ("resnet50", {"stage4_channels": 3}, "give stages at least 4"),
        ("vit", {"norm": "group"}, "norm belongs to the resnet and vgg and densenet"),
    ],
)
def test_fields_of_other_architectures_are_refused(
    name: str, fields: dict[str, object], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        Model(name, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "size", "words"),
    [
        (Model("atm-xt", width=2), 16, "multiples of 4, 4, 4 and 8 channels"),
        (Model("transformer", width=6), 16, "multiple of its 4 heads"),
        (Model("vit"), None, "say its size"),
        (Model("vit", patch=5), 32, "whole patches"),
    ],
)
def test_impossible_networks_are_refused(model: Model, size: int | None, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        build(model, 3, 10, 0, size)
