"""CWRF end to end: scores, rewinding and holding single weights, pruning; planned, counted,
realized.
"""

import numpy as np
import pytest
import torch

from leak_atlas import BadInput, lab
from leak_atlas.data.designs import Role
from leak_atlas.engine import selection, store
from leak_atlas.lab.jobs import one_thread
from leak_atlas.lab.plans import plan
from leak_atlas.lab.prices import work
from leak_atlas.localization.score_maps import kinds, maps
from leak_atlas.localization.scores import taylor
from leak_atlas.models.subject import Subject, weights
from leak_atlas.recipe import (
    SNIP,
    At,
    Change,
    Criterion,
    Data,
    Learnability,
    Magnitude,
    Model,
    Random,
    RandomHalves,
    RelaxLoss,
    Schedule,
    Score,
    Setup,
    Signals,
    Threshold,
    Train,
    Vulnerability,
)

DATA = Data(pixels=8)
MODEL = Model("resnet10", width=2)
SHORT = Schedule(2, 32, optimizer="adam", lr=0.01, weight_decay=0.1)
DESIGN = RandomHalves(80, test=40, reference=20)
VULNERABLE = Vulnerability(4, 16)


def pool(models: int = 4):
    return Setup(DATA, DESIGN, MODEL, SHORT, models).trained()


def arrays(step: Train | At) -> dict[str, np.ndarray]:
    return {name: array for name, array in store.read(step.key).arrays.items() if "/" not in name}


def statistic(name: str) -> bool:
    return name.endswith(("running_mean", "running_var", "num_batches_tracked"))


@pytest.mark.parametrize(
    "criterion",
    [VULNERABLE, Learnability(4, 16), SNIP(), Magnitude(), Change(), Random()],
    ids=lambda c: type(c).__name__,
)
def test_a_score_has_a_map_for_each_scored_tensor(
    criterion: Criterion,
) -> None:
    (train,) = pool(1)
    score = train.score(criterion)
    first = lab.realize(score, train.at("init"))[score]
    own = arrays(train)
    init = arrays(train.at("init"))
    for name, values in maps(first).items():
        assert values.dtype == np.float32
        assert values.shape == own[name].shape
        assert (values >= 0).all()
        if isinstance(criterion, Magnitude):
            assert np.array_equal(values, np.abs(own[name]))
        if isinstance(criterion, Change):
            assert np.array_equal(values, np.abs(own[name] - init[name]))
    if isinstance(criterion, Vulnerability):
        assert first["history/kl"].shape == first["history/accuracy_reference"].shape == (4,)


def test_shuffled_scores_choose_the_same_number_of_each_tensor_but_others() -> None:
    models = pool(2)
    by = models.score(VULNERABLE)
    permuted = [score.shuffle() for score in by]
    found = lab.realize(by, permuted, permuted[0].shuffle(1))
    for score, shuffled in zip(by, permuted, strict=True):
        own = maps(found[score])
        other = maps(found[shuffled])
        assert all(
            np.array_equal(np.sort(own[name], None), np.sort(other[name], None)) for name in own
        )
        chosen = selection.highest(own, 0.1)
        instead = selection.highest(other, 0.1)
        assert all(chosen[name].sum() == instead[name].sum() for name in own)
        assert any(not np.array_equal(chosen[name], instead[name]) for name in own)
    order = [
        np.argsort(np.argsort(found[one]["head.fc.weight"], None))
        for one in (permuted[0], permuted[0].shuffle(1))
    ]
    assert not np.array_equal(*order)


def test_confined_scores_choose_weights_of_some_stages_alone() -> None:
    (train,) = pool(1)
    by = train.score(VULNERABLE)
    late, early = by.confine("stage4"), by.confine("stage4", before=True)
    found = lab.realize(by, late, early)
    whole, behind, before = (maps(found[each]) for each in (by, late, early))
    stage4 = {name for name in whole if name.startswith(("stage4", "head"))}
    for name, scores in whole.items():
        kept, other = (behind, before) if name in stage4 else (before, behind)
        assert np.array_equal(kept[name], scores)
        assert other[name].max() < min(each.min() for each in whole.values())
    chosen = selection.highest(behind, 0.02)
    assert {name for name, mask in chosen.items() if mask.any()} <= stage4
    assert kinds(found[late]) == kinds(found[by]) and not work(late)
    with pytest.raises(lab.Failed, match="no part 'stage44' has scores; did you mean 'stage4'"):
        lab.realize(by.confine("stage44"))


def test_nothing_rewound_is_nothing_changed_and_all_is_the_initialisation_bit_for_bit() -> None:
    (train,) = pool(1)
    score = train.score(VULNERABLE)
    lab.realize(score, train.at("init"))
    own = arrays(train)
    init = arrays(train.at("init"))
    none, held, _ = weights(train.rewind_weights(score, 0))
    assert not held
    assert all(np.array_equal(none[name].numpy(), own[name]) for name in own)
    whole, _, _ = weights(train.rewind_weights(score, 1))
    scored = set(maps(store.read(score.key).arrays))
    for name in own:
        assert np.array_equal(whole[name].numpy(), (init if name in scored else own)[name]), name
    some, _, _ = weights(train.rewind_weights(score, 0.1))
    chosen = selection.highest(maps(store.read(score.key).arrays), 0.1)
    for name, mask in chosen.items():
        assert np.array_equal(some[name].numpy(), np.where(mask, init[name], own[name]))


def test_the_state_after_a_scores_updates_is_the_one_that_it_would_score_next() -> None:
    (train,) = pool(1)
    still = train.updated(Learnability(3, 16, lr=0.0))
    moved = train.updated(VULNERABLE)
    one, two = (Vulnerability(steps, 16) for steps in (1, 2))
    found = lab.realize(
        still, moved, train.score(one), train.score(two), train.updated(one), Signals(moved)
    )
    own, held, after = (arrays(each) for each in (train, still, moved))
    assert all(np.array_equal(held[name], own[name]) for name in own)
    assert all(
        np.array_equal(after[name], own[name]) == statistic(name)
        for name in own
        if name.endswith("weight")
    )
    first, both = (maps(found[train.score(each)]) for each in (one, two))
    assert all((both[name] >= first[name]).all() for name in first)
    with pytest.raises(BadInput, match="not pruned"):
        train.prune(0.5).updated(VULNERABLE)
    with pytest.raises(BadInput, match="reference"):
        Setup(DATA, RandomHalves(80, test=40), MODEL, SHORT, 1).trained().updated(VULNERABLE)


def test_updates_that_see_every_other_member_are_those_of_these_members_alone() -> None:
    (train,) = pool(1)
    half = Learnability(3, 16, every=2)
    lab.realize(train.updated(half))
    own = Subject(train)
    with one_thread():  # as jobs are done: the last bits depend on the number of threads
        members = own.samples(Role.MEMBER)[::2]
        taylor(own.net, own.data, members, Learnability(3, 16), seed=train.seed)
    moved = {name: value.cpu().numpy() for name, value in own.net.state_dict().items()}
    assert all(
        np.array_equal(each, moved[name]) for name, each in arrays(train.updated(half)).items()
    )
    assert half.passes(80, 0) == 3 * 3 * 16
    assert half.passes(21, 0) == 3 * 3 * 11


def test_of_what_a1_removes_norms_or_all_others_may_go_alone() -> None:
    risky = pool(1)
    by = risky.score(VULNERABLE)
    lab.realize(by)
    every, norms, others = (
        weights(risky.remove(by, 0.2, part)[0]).gone for part in ("all", "norms", "others")
    )
    assert norms.keys() | others.keys() == every.keys()
    assert not norms.keys() & others.keys()
    assert norms
    assert all("norm" in name and mask.dim() == 1 for name, mask in norms.items())
    assert all(torch.equal((norms | others)[name], mask) for name, mask in every.items())
    assert risky.remove(by, 0.2, "all") == risky.remove(by, 0.2)


def test_a1_a2_and_a3_train_what_they_say_and_hold_the_rest_to_the_bit() -> None:
    risky = pool(1)
    by = risky.score(VULNERABLE)
    fine = Schedule(2, 32, optimizer="adam", lr=0.01, weight_decay=0.1)
    loss = RelaxLoss(0.5)
    r = 0.1
    a1 = risky.remove(by, r).train(fine, loss)
    a2 = risky.rewind_weights(by, r).freeze_weights(by, r, rest=True).train(fine, loss)
    a3 = risky.rewind_weights(by, r).freeze_weights(by, r).train(fine, loss)
    found = lab.realize(a1, a2, a3, by, risky.at("init"))
    own = arrays(risky[0])
    init = arrays(risky[0].at("init"))
    chosen = selection.highest(maps(found[by[0]]), r)
    assert sum(mask.sum() for mask in chosen.values()) > 10
    removed, only, frozen = (arrays(one[0]) for one in (a1, a2, a3))
    for name in own:
        if statistic(name):
            assert not np.array_equal(frozen[name], own[name]), name
            continue
        mask = chosen.get(name, np.zeros(own[name].shape, bool))
        assert not removed[name][mask].any()
        assert np.array_equal(frozen[name][mask], init[name][mask])
        assert np.array_equal(only[name][~mask], own[name][~mask])
    name = "stage4.0.conv1.weight"
    free = ~chosen[name]
    for end in (removed, frozen):
        assert np.mean(end[name][free] != own[name][free]) > 0.9
    assert np.mean(only[name][~free] != init[name][~free]) > 0.5


def test_what_follows_a_stored_score_needs_it_no_more_than_its_key() -> None:
    (train,) = pool(1)
    score = train.score(Learnability(2, 8))
    assert {type(job.step) for job in plan([[score]]).jobs.values()} == {Train, Score}
    lab.realize(score)
    store.discard(train.key)
    assert not plan([[score]]).jobs
    assert {
        type(job.step)
        for job in plan([[train.freeze_weights(score, 0.1).train(SHORT)]]).jobs.values()
    } == {Train}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda a, b: a.rewind_weights(b.score(Random()), 0.1), "another model"),
        (lambda a, b: a.freeze_weights(a.score(Random()), 1.1), "share takes 0 to 1, not 1.1"),
        (
            lambda a, b: Score(Setup(DATA, RandomHalves(80), MODEL, SHORT, 1).trained()[0]),
            "reference samples",
        ),
        (lambda a, b: Learnability(0), "steps takes 1 or more, not 0"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(make, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        make(*pool(2))
    assert "\n" not in str(caught.value)


def test_every_shadow_model_has_a_score_and_a_mask_of_its_own() -> None:
    risky = pool(6)
    by = risky.score(VULNERABLE)
    private = risky.rewind_weights(by, 0.05).freeze_weights(by, 0.05).train(SHORT, RelaxLoss(0.5))
    attack = private.attack(Threshold("loss"))
    results = lab.realize(attack, by)
    first, *others = (selection.highest(maps(results[score]), 0.05) for score in by)
    for other in others:
        assert any(not np.array_equal(first[name], other[name]) for name in other)
    assert results[attack]["scores"].shape == (6, 80)
