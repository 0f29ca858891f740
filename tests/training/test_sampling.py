"""Which members an epoch visits: WeMem's window against its formula, and trainings whose epochs
differ in length.
"""

import copy
import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from leak_atlas import BadInput
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net
from leak_atlas.recipe import (
    CSKD,
    PAST,
    RMR,
    AdversarialRegularization,
    Augment,
    CrossEntropy,
    Objective,
    Schedule,
)
from leak_atlas.recipe.sampling import Window
from leak_atlas.training import graph, loop
from leak_atlas.training.sampling import places
from tests.training.small import MEMBERS, RANKING, begun, masks, rehearsing, same, trained

EPOCHS = 21  # of a training in the published code


def visits(counts: list[int], sampling: Window, epochs: int = EPOCHS) -> list[list[Tensor]]:
    """By epoch and class: the ranks that are visited, where the first member of a class is first in
    its order.
    """
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    rank = torch.cat([torch.arange(n) for n in counts])
    ranking = (-rank if sampling.order == "high-to-low" else rank).double()
    shuffled = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    found = []
    for epoch in range(epochs):
        place = shuffled[places(sampling, ranking[shuffled], labels[shuffled], epoch)]
        of_class = [place[labels[place] == label] for label in range(len(counts))]
        found.append([rank[own].sort().values for own in of_class])
    return found


def times(found: list[list[Tensor]], label: int, n: int) -> Tensor:
    return torch.stack([epoch[label].bincount(minlength=n) for epoch in found]).sum(0)


@given(
    st.integers(1, 40),
    st.integers(1, 60),
    st.integers(1, 12),
    st.sampled_from(["high-to-low", "low-to-high"]),
)
def test_each_rank_is_visited_as_often_as_the_formula_says(
    n: int, width: int, step: int, order: str
) -> None:
    found = times(visits([n, 7], Window(width, step, order), 9), 0, n)
    assert found.tolist() == Window(width, step, order).visits(n, 9)


# Members of a class, width and step; in per cent the data of an epoch and the ranks ever visited,
# rounded to the last digit that is given; visits of the first, the middle and the last rank.
COVERAGE = [
    (2250, 1500, 50, 65, 100, (1, 21, 6)),
    (2250, 500, 50, 22, 67, (1, 8, 0)),
    (4050, 900, 100, 22, 72, (1, 9, 0)),
    (60, 15, 3, 21, 100, (1, 5, 5)),
]


@pytest.mark.parametrize(("n", "width", "step", "share", "ever", "of"), COVERAGE)
def test_the_papers_windows_cover_what_they_cover(
    n: int, width: int, step: int, share: int, ever: int, of: tuple[int, int, int]
) -> None:
    found = times(visits([n], Window(width, step)), 0, n)
    assert 100 * float(found.sum()) / EPOCHS / n == pytest.approx(share, abs=0.51)
    assert 100 * float((found > 0).float().mean()) == pytest.approx(ever, abs=0.51)
    assert (found[0], found[n // 2], found[-1]) == of


def test_of_equal_scores_the_first_member_is_first() -> None:
    for order in ("high-to-low", "low-to-high"):
        found = places(Window(2, 0, order), torch.zeros(6), torch.tensor([0, 1] * 3), 0)
        assert found.tolist() == [0, 2, 1, 3]


# ---------------------------------------------------------------- trainings

SLIDING = Window(8, 3)  # of classes of 19, 19, 18: epochs of 24, 24, 24, 24, 20 and 11 members
ADVERSARIAL = AdversarialRegularization(steps=2, width=32)
OBJECTIVES = {
    "cross-entropy": CrossEntropy(),
    "adversarial": ADVERSARIAL,
    "one-step": dataclasses.replace(ADVERSARIAL, form="one_step"),
    "sparsity": PAST(0.01),
    "class-wise": CSKD(),
    "risky": RMR(0.5),
    "risky, apart": RMR(0.5, form="code"),
}
objectives = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
augments = pytest.mark.parametrize("augment", [None, Augment(1)], ids=["plain", "augmented"])
LONG = Schedule(6, batch=16, lr=0.05)


@objectives
@augments
def test_a_window_of_all_members_is_no_window(
    net: Net, data: Resident, objective: Objective, augment: Augment | None
) -> None:
    schedule = Schedule(2, batch=16, lr=0.05, augment=augment)
    plain = trained(net, data, objective, schedule)
    assert same(plain, trained(net, data, objective, schedule, sampling=Window(19, 0)))


@objectives
@pytest.mark.parametrize("frozen", ["nothing", "parts"])
def test_a_recording_of_a_window_changes_nothing(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch, objective: Objective, frozen: str
) -> None:
    monkeypatch.setattr(graph, "record", rehearsing)
    options = {"frozen": masks(net, frozen), "wanted": (5,)}
    eager = trained(net, data, objective, LONG, sampling=SLIDING, plan="eager", **options)
    recorded = trained(net, data, objective, LONG, sampling=SLIDING, plan="graph", **options)
    assert same(eager, recorded)
    assert not same(eager, trained(net, data, objective, LONG, **options))


@objectives
def test_every_look_of_a_short_epoch_is_its_own(
    net: Net, data: Resident, objective: Objective
) -> None:
    """Learnt from and looked at are the members of the epoch, each as often as it has to be."""
    step = begun(net, data, objective, LONG, sampling=SLIDING)
    for epoch, count in enumerate((24, 24, 24, 24, 20, 11)):
        visited = places(SLIDING, RANKING, data.labels[MEMBERS], epoch).sort().values
        step.begin(epoch, 0.0, step.tables(7, epoch))
        own, *looks = step.order[0, :, :count]
        assert torch.equal(own.sort().values, visited)
        if isinstance(objective, AdversarialRegularization):
            assert all(torch.equal(look.sort().values, visited) for look in looks[:2])
            assert (torch.cat(looks[2:]) - 56).bincount(minlength=16).diff().abs().max() <= 1
        elif isinstance(objective, CSKD):
            assert torch.isin(looks[0], visited).all()
            assert not (looks[0] == own).any()
            assert torch.equal(data.labels[looks[0]], data.labels[own])
        elif isinstance(objective, PAST):
            assert (looks[0] >= 56).all()


@augments
def test_kept_features_and_augmented_images_follow_the_window(
    net: Net, data: Resident, augment: Augment | None
) -> None:
    """As if there were only the visited members."""
    schedule = Schedule(1, batch=16, lr=0.05, augment=augment)
    first = places(SLIDING, RANKING, data.labels[MEMBERS], 0).sort().values
    frozen = masks(net, "parts")
    own = copy.deepcopy(net)
    alone = loop.fit(own, data, MEMBERS[first], schedule, seed=4, frozen=frozen)
    found = trained(net, data, None, schedule, seed=4, frozen=frozen, sampling=SLIDING)
    assert same(alone, found)


def test_a_window_that_passes_all_members_is_refused(net: Net, data: Resident) -> None:
    with pytest.raises(BadInput, match="epoch 6"):
        trained(net, data, schedule=LONG, sampling=Window(8, 4))
