"""Which samples a window visits, as the training's own sampler does."""

import numpy as np
import pytest
import torch

from leak_atlas.data.designs import Role
from leak_atlas.localization.samples import member_visits, split_by_group, window_visits
from leak_atlas.recipe import Window
from leak_atlas.training.sampling import places


@pytest.mark.parametrize("order", ["high-to-low", "low-to-high"])
def test_visits_of_members_are_those_of_the_training(order: str) -> None:
    rng, window, epochs = np.random.default_rng(0), Window(9, 2, order), 6
    member, labels, index = rng.random((3, 120)) < 0.5, rng.integers(3, size=120), np.arange(5, 125)
    ranking = {"score": rng.permutation(200) / 200, "index": np.arange(200)}
    scored = {"scores": np.zeros((3, 120)), "member": member, "index": index}
    found = window_visits(scored, ranking, {"labels": labels, "index": index}, window, epochs)
    for own, inside in zip(found, member, strict=True):
        score, counts = torch.tensor(ranking["score"][index][inside]), np.zeros(inside.sum(), int)
        for epoch in range(epochs):
            counts[places(window, score, torch.tensor(labels[inside]), epoch)] += 1
        assert np.array_equal(own[inside], counts) and 0 in counts
        signals = {
            "role": np.where(inside, Role.MEMBER, Role.NONMEMBER),
            "index": index,
            "labels": labels,
        }
        seen, known = member_visits(signals, ranking, window, epochs)
        assert np.array_equal(seen, counts) and np.array_equal(known, score)
    with pytest.raises(ValueError, match="does not know"):
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
    assert never[0]["scores"].tolist() == [[0.5, 0.4, 0.6]] and once[0]["member"].sum() == 2


def test_the_slip_takes_visits_from_a_class_after_a_smaller_one() -> None:
    labels = np.repeat([0, 1], [3, 6])
    signals = {"role": np.full(9, Role.MEMBER), "index": np.arange(9), "labels": labels}
    ranking = {"score": np.arange(9.0), "index": np.arange(9)}
    counts = [
        member_visits(signals, ranking, Window(4, 1, form=form), 1)[0] for form in ("paper", "code")
    ]
    assert counts[0].tolist() == [1, 1, 1, 1, 1, 1, 1, 0, 0] and counts[1].tolist() == [
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        0,
        0,
    ]
