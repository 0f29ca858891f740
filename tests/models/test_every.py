"""What holds for every architecture: seeds, finite gradients, blocks, rewinding, distances, refusals."""

import pytest
import torch

from leak_atlas import BadInput
from leak_atlas.models import Net, build
from leak_atlas.recipe import Model
from tests.models.chains import assert_front_is_held, assert_no_distance_before, images

MODELS = {
    name: Model(name, width=width)
    for name, width in {
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
    }.items()
}
CHANNELS = {"transformer": 50, "fc": 40}
every = pytest.mark.parametrize("name", MODELS)


def made(name: str, seed: int = 0) -> Net:
    return build(MODELS[name], CHANNELS.get(name, 3), 10, seed, 16)


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
    net, x = made(name).eval(), batch(name)
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
        (Model("vgg11", width=2), "stage3"),
        (Model("vgg11", width=2), "stage3.1"),
        (Model("vgg11", width=2), "head"),
        (Model("densenet121", width=2), "stage2.5"),
        (Model("wrn16", width=2), "stage2"),
        (Model("cnn4", width=4), "stage2"),
        (Model("atm-xt", width=8), "stage1"),
        (Model("atm-xt", width=8), "stage3.1"),
    ],
)
def test_the_front_is_held_and_kept(
    model: Model, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_front_is_held(model, place, monkeypatch)


@pytest.mark.parametrize(
    ("model", "block"),
    [
        (Model("vgg13", width=2), "stage4.1"),
        (Model("densenet121", width=2), "stage4.1"),
        (Model("wrn16", width=2), "stage2.1"),
        (Model("cnn4", width=4), "stage2.1"),
        (Model("atm-xt", width=8), "stage2.0"),
        (Model("atm-xt", width=8), "stage3.1"),
    ],
)
def test_distances_begin_where_two_nets_part(model: Model, block: str) -> None:
    assert_no_distance_before(model, block, images())


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("vgg11", {"width": 0}, "width"),
        ("vgg11", {"stem": "conv3-pool"}, "stem belongs to the"),
        ("vgg11", {"patch": 2}, "patch belongs to the"),
        ("resnet18", {"patch": 2}, "patch belongs to the atm and vit"),
        ("resnet18", {"dropout": 0.3}, "dropout belongs to the wrn"),
        ("wrn16", {"dropout": 1.0}, "cannot be 1"),
        ("densenet121", {"stage4_channels": 8}, "stage4_channels belongs to the"),
        ("densenet121", {"hidden": 8}, "hidden belongs to the"),
        ("densenet121", {"width": 5}, "half its width: give an even one, not 5"),
        ("fc", {"width": 7}, "give an even one, not 7"),
        ("cnn2", {"norm": "group"}, "norm belongs to the"),
        ("atm-xt", {"stem": "conv3-pool"}, "leave it out of a"),
        ("vit", {"stage4_stride": 1}, "leave it out of a vit"),
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
        (Model(stage4_stride=3), 16, "stage4_stride of 1, 2 or 4"),
        (Model("resnet50", stage4_channels=30), 16, "multiples of 4"),
        (Model("atm-xt", width=2), 16, "a multiple of 4 channels"),
        (Model("atm-t", patch=3), 16, "a patch of 1, 2 or 4"),
        (Model("atm-s", stage4_channels=12), 16, "a multiple of 8 channels"),
        (Model("transformer", width=6), 16, "multiple of its 4 heads"),
        (Model("transformer", width=8), None, "say its size"),
        (Model("vit"), None, "say its size"),
        (Model("vit", patch=5), 32, "whole patches"),
        (Model("cnn2"), None, "say its size"),
    ],
)
def test_impossible_networks_are_refused(model: Model, size: int | None, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        build(model, 3, 10, 0, size)
