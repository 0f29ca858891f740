"""An exact share of weights, however many scores are equal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from leak_atlas import BadInput
from leak_atlas.engine import selection

SCORES = st.lists(
    arrays.arrays(
        np.float32,
        arrays.array_shapes(max_dims=3, max_side=5),
        elements=st.sampled_from([0, 0.5, 1, 2]),
    ),
    min_size=1,
    max_size=4,
).map(lambda each: {f"t{i}": array for i, array in enumerate(each)})


@settings(deadline=None)
@given(SCORES, st.floats(0, 1))
def test_exactly_so_many_are_chosen_and_ties_go_to_the_first(
    scores: dict[str, np.ndarray], share: float
) -> None:
    flat = np.concatenate([array.ravel() for array in scores.values()])
    count = round(share * flat.size)
    for choose, sign in ((selection.highest, -1), (selection.lowest, 1)):
        masks = choose(scores, share)
        assert {name: mask.shape for name, mask in masks.items()} == {
            name: a.shape for name, a in scores.items()
        }
        chosen = np.concatenate([mask.ravel() for mask in masks.values()])
        expected = np.zeros(flat.size, bool)
        expected[np.argsort(sign * flat, kind="stable")[:count]] = True
        assert np.array_equal(chosen, expected)
        assert chosen.sum() == count


@settings(deadline=None)
@given(SCORES, st.floats(0, 1))
def test_ranks_say_who_is_chosen_at_any_share(scores: dict[str, np.ndarray], share: float) -> None:
    places = selection.ranks(scores)
    masks = selection.highest(scores, share)
    count = sum(int(mask.sum()) for mask in masks.values())
    assert list(places) == list(scores)
    for name, mask in masks.items():
        assert np.array_equal(places[name] < count, mask), name


def test_what_cannot_be_selected_is_refused() -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        selection.highest({"a": np.ones(3)}, 1.5)
    with pytest.raises(BadInput, match="1 of 3 scores are no finite numbers"):
        selection.highest({"a": np.array([1, np.nan, 2])}, 0.5)
    with pytest.raises(BadInput, match="1 of 3 scores are no finite numbers"):
        selection.ranks({"a": np.array([1, np.inf, 2])})
