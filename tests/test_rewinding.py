"""Edits by stage and by weight: what is rewound, what is frozen, and that frozen values keep their
bits.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leak_atlas import BadInput
from leak_atlas.models import build, skeleton
from leak_atlas.recipe import Model
from leak_atlas.rewinding import freeze, freeze_weights, places, rewind, rewind_weights

MODEL = Model("resnet18", width=4)
BLOCKS = skeleton(MODEL, 1, 3).names("blocks")
PARTS = ("stem", "stage1", "stage2", "stage3", "stage4", "head")


def states() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """A trained state and its initialisation, different in every tensor."""
    init = build(MODEL, 1, 3, 0).state_dict()
    return {
        name: value + (0.01 if value.is_floating_point() else 1) for name, value in init.items()
    }, init


def test_places_are_parts_and_blocks_in_order() -> None:
    found = places(states()[0])
    assert [place for place in found if "." not in place] == list(PARTS)
    assert [place for place in found if place.startswith("stage4")] == [
        "stage4",
        "stage4.0",
        "stage4.1",
    ]
    assert found["stage4"] == found["stage4.0"] < found["stage4.1"] < found["head"]
    assert list(found.values()) == sorted(found.values())


@settings(deadline=None)
@given(st.sampled_from([*PARTS, "stage1.1", "stage4.1"]))
def test_rewind_and_freeze_meet_at_the_boundary(place: str) -> None:
    trained, init = states()
    start = next(block for block in BLOCKS if block.startswith(place))
    before = BLOCKS[: BLOCKS.index(start)]
    rewound = rewind(trained, init, place)
    frozen = freeze(trained, place)
    for name in trained:
        front = name in frozen
        assert torch.equal(rewound[name], trained[name] if front else init[name])
        assert front == name.startswith(before)
        if front:
            assert frozen[name].dtype == torch.bool
            assert frozen[name].shape == trained[name].shape
            assert frozen[name].all()


def test_freeze_later_is_all_that_freeze_leaves() -> None:
    trained, _ = states()
    early = freeze(trained, "stage3.1")
    late = freeze(trained, "stage3.1", later=True)
    assert not early.keys() & late.keys()
    assert [*early, *late] == list(trained)


def test_unknown_place_is_named() -> None:
    trained, init = states()
    with pytest.raises(BadInput, match=r"no part 'stage5'; did you mean 'stage"):
        rewind(trained, init, "stage5")
    with pytest.raises(BadInput, match=r"there is: .*stage1"):
        freeze(trained, "classifier-of-the-thing")


def masks(share: float) -> dict[str, torch.Tensor]:
    """Of a random share of each weight; biases and statistics have none."""
    generator = torch.Generator().manual_seed(0)
    weights = {name: value for name, value in states()[0].items() if name.endswith("weight")}
    return {
        name: torch.rand(value.shape, generator=generator) < share
        for name, value in weights.items()
    }


@settings(deadline=None)
@given(st.sampled_from([0.0, 0.3, 1.0]))
def test_chosen_weights_are_rewound_bit_for_bit(share: float) -> None:
    trained, init = states()
    chosen = masks(share)
    found = rewind_weights(trained, init, chosen)
    for name, value in found.items():
        mask = chosen.get(name, torch.zeros_like(value, dtype=torch.bool))
        assert torch.equal(value[mask], init[name][mask])
        assert torch.equal(value[~mask], trained[name][~mask])


@pytest.mark.parametrize("rest", [False, True])
def test_chosen_weights_or_all_others_are_frozen_and_statistics_are_free(rest: bool) -> None:
    trained, _ = states()
    chosen = masks(0.3)
    frozen = freeze_weights(trained, chosen, rest)
    for name, value in trained.items():
        if name.endswith(("running_mean", "running_var", "num_batches_tracked")):
            assert name not in frozen
            continue
        nothing = torch.zeros_like(value, dtype=torch.bool)
        expected = chosen.get(name, nothing)
        if rest:
            expected = ~expected
        assert torch.equal(frozen.get(name, nothing), expected), name
