"""Which samples a window visits, as the training's own sampler does."""

import numpy as np
import pytest
import torch

from leak_atlas.localization.samples import split_by_group, window_visits
from leak_atlas.recipe import Window
from leak_atlas.training.sampling import places


@pytest.mark.parametrize("order", ["high-to-low", "low-to-high"])
def test_visits_of_members_are_those_of_the_training(order: str) -> None:
    rng = np.random.default_rng(0)
    window = Window(9, 2, order)
    epochs = 6
    member = rng.random((3, 120)) < 0.5
    labels = rng.integers(3, size=120)
    index = np.arange(5, 125)
    ranking = {"score": rng.permutation(200) // 4 / 50, "index": np.arange(200)}  # with ties
    scored = {"scores": np.zeros((3, 120)), "member": member, "index": index}
    found = window_visits(scored, ranking, {"labels": labels, "index": index}, window, epochs)
    for own, inside in zip(found, member, strict=True):
        score = torch.tensor(ranking["score"][index][inside])
        counts = np.zeros(inside.sum(), int)
        for epoch in range(epochs):
            counts[places(window, score, torch.tensor(labels[inside]), epoch)] += 1
        assert np.array_equal(own[inside], counts)
        assert 0 in counts
    with pytest.raises(ValueError, match="not among the known ones"):
        window_visits(scored, ranking, {"labels": labels[:9], "index": index[:9]}, window, epochs)


def test_non_members_stand_beside_the_member_whose_rank_they_would_take() -> None:
    scores = np.array([0.1, 0.3, 0.5, 0.0, 0.2, 0.4, 0.6])
    member = np.arange(7) < 3
    scored = {
        "scores": scores[None],
        "member": member,
        "thresholds": np.zeros(1),
        "index": np.arange(7),
    }
    table = {"score": scores, "labels": np.zeros(7, int), "index": np.arange(7)}
    found = window_visits(scored, table, table, Window(1, 1), 2)
    assert found.tolist() == [[1, 1, 0, 1, 1, 0, 0]]
    never, once = split_by_group(scored, found, 2)
    assert never[0]["scores"].tolist() == [[0.5, 0.4, 0.6]]
    assert once[0]["member"].sum() == 2
