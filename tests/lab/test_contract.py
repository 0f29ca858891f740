"""What a training takes and gives, and who is attacked with what: the promises that whole chains
rest on.
"""

import numpy as np
import pytest

from leak_atlas import BadInput, lab
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.lab.plans import plan
from leak_atlas.lab.training import prepared
from leak_atlas.models.subject import weights
from leak_atlas.recipe import (
    BASE,
    RMIA,
    RMR,
    SAMIA,
    At,
    Data,
    Learnt,
    LiRA,
    Memorization,
    Model,
    Network,
    RandomHalves,
    Schedule,
    Setup,
    Signals,
    State,
    Subsets,
    Threshold,
    Train,
    VictimAttacker,
    Window,
)

DATA = Data(pixels=8)
MODEL = Model("resnet10", width=2)
SHORT = Schedule(2, 32)
DESIGN = RandomHalves(80, test=40)


def pool(models: int = 4, design=DESIGN, schedule: Schedule = SHORT):
    return Setup(DATA, design, MODEL, schedule, models).trained()


def sparsity(state: State) -> float:
    """Zeros among the weights of convolutions and linear maps."""
    values = [
        value
        for name, value in weights(state).values.items()
        if name.endswith("weight") and value.dim() > 1
    ]
    return sum(float((value == 0).sum()) for value in values) / sum(
        value.numel() for value in values
    )


# --- what is pruned stays pruned ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        (lambda dense: dense.prune(0.2).train(SHORT).train(SHORT), 0.2),
        (lambda dense: dense.prune(0.5).train(SHORT).at(1).train(SHORT), 0.5),
        (lambda dense: dense.prune(0.2).train(SHORT).rewind("stage4").train(SHORT), 0.2),
        (lambda dense: dense.prune(0.2).train(SHORT).rewind("stem", fresh=True), 0.2),
        (lambda dense: dense.prune(0.2).train(SHORT).prune(0.4).train(SHORT).train(SHORT), 0.4),
        (
            lambda dense: (
                dense.prune(0.3, scope="layer")
                .freeze("stage2")
                .train(SHORT)
                .freeze("stage3")
                .train(SHORT)
            ),
            0.3,
        ),
    ],
    ids=["train train", "epoch", "rewind", "fresh", "again", "by layer and held"],
)
def test_what_is_pruned_stays_pruned_down_the_whole_chain(chain, expected: float) -> None:
    end = chain(pool(1)[0])
    lab.realize(end)
    assert sparsity(end) == pytest.approx(expected, abs=2e-3)


def test_rewinding_a_pruned_network_gives_its_survivors_their_initial_values() -> None:
    (dense,) = pool(1)
    rewound = dense.prune(0.5).train(SHORT).rewind("stem")
    lab.realize(rewound, dense.at("init"))
    init, (values, held, gone) = weights(dense.at("init")).values, weights(rewound)
    assert gone
    assert not held
    for name, value in values.items():
        assert value.equal(init[name].masked_fill(gone[name], 0) if name in gone else init[name]), (
            name
        )


# --- a training gives readings --------------------------------------------------------------------------------------


def test_signals_of_epochs_are_read_off_the_network_and_no_weights_are_kept() -> None:
    models = pool(2)
    epochs = [Signals(models[0].at(when)) for when in ("init", 1)]
    results = lab.realize(epochs, models.signals())
    assert not store.has(At(models[0], 1).key)
    assert not store.has(At(models[0], "init").key)
    read = [results[step]["logits"] for step in epochs]
    for step in epochs:
        store.discard(step.key)
    lab.realize(models[0].at(1), models[0].at("init"))
    again = lab.realize(epochs)
    assert all(
        np.array_equal(again[step]["logits"], before)
        for step, before in zip(epochs, read, strict=True)
    )
    assert not np.array_equal(*read)


def test_a_coarser_grid_is_looked_up_and_a_finer_one_trains_again() -> None:
    longer = Schedule(4, 32)
    models = pool(1, schedule=longer)

    def trained(*epochs: int) -> int:
        found = plan([[models.at(epoch).signals() for epoch in epochs]])
        return sum(isinstance(job.step, Train) for job in found.jobs.values())

    assert trained(1, 2) == 1
    lab.realize([models.at(e).signals() for e in (1, 2)])
    assert trained(2) == 0
    assert trained(1, 2, 3) == 1
    (job,) = plan([[models.at(3).signals()]]).jobs.values()
    assert job.states == []
    assert [step.of.when for step in job.signals] == [3]


# --- who is attacked with what --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attacker", [LiRA(), LiRA("offline_cdf"), RMIA(), BASE()], ids=lambda a: type(a).__name__
)
def test_shadows_that_know_other_samples_are_refused_where_samples_are_compared(attacker) -> None:
    other = pool(4, RandomHalves(80, test=40, seed=1))
    with pytest.raises(
        BadInput, match=r"designs draw others.*seed=1.*give both one pool"
    ) as caught:
        pool().attack(attacker, targets=1, shadows=other)
    assert "\n" not in str(caught.value)


def test_attackers_that_learn_across_samples_take_shadows_of_another_draw_sample_by_sample() -> (
    None
):
    mine = pool(1)
    other = pool(4, RandomHalves(80, test=40, seed=1))
    attacks = [
        mine.attack(a, 1, other)
        for a in (Threshold("loss", by_class=False), Network(hidden=(8,), epochs=1))
    ]
    results = lab.realize(attacks, mine.signals(), other.signals())
    own = results[mine.signals()[0]]
    chosen = np.isin(own["role"], (Role.MEMBER, Role.NONMEMBER))
    found = results[attacks[0]]
    assert np.array_equal(found["index"], own["index"][chosen])
    z = own["logits"][chosen].astype(np.float64)
    loss = np.log(np.exp(z).sum(axis=1)) - z[np.arange(80), own["labels"][chosen]]
    np.testing.assert_allclose(found["scores"][0], -loss, rtol=1e-9)


def test_each_victim_is_judged_on_its_own_pool() -> None:
    halves = pool(5, VictimAttacker(400, test=40, dev=20))
    attack = halves.attack(Threshold("loss"), targets=3, shadows=halves)
    found = lab.realize(attack)[attack]
    assert found["member"].sum(axis=1).tolist() == [90, 90, 90]
    assert found["scores"].shape == (
        3,
        180,
    )
    assert found["index"].shape == (3, 180)
    assert len(set(found["index"][0]) & set(found["index"][1])) == 0


def test_victims_never_help_each_other() -> None:
    halves = pool(5, VictimAttacker(400, test=40, dev=20, victims=3))
    attack = halves.attack(Threshold("loss"), targets=3, shadows=halves)
    assert all(attack.shadows_of(target) == (*halves[3:],) for target in attack.targets)
    with pytest.raises(BadInput, match="row 0 has 0 shadows outside its own pair"):
        pool(3, VictimAttacker(400, test=40, dev=20, victims=3)).attack(Threshold("loss"))


def test_what_is_learnt_from_undefended_shadows_serves_all_victims_and_defences() -> None:
    """Sensitivities of each row's own half, aligned with signals of all samples; the victim is no
    shadow.
    """
    design = VictimAttacker(400, test=40, dev=20, victims=2)
    plain = pool(5, design)
    defences = plain, plain.prune(0.5, scope="layer").train(SHORT)
    for attacker in (
        SAMIA(epochs=1),
        Network("posterior_sensitivity_label", hidden=(8,), epochs=1),
    ):
        attacks = [models.attack(attacker, targets=2, shadows=plain) for models in defences]
        for attack in attacks:
            (learnt,) = [step for step in attack.parents() if isinstance(step, Learnt)]
            assert learnt.shadows == plain.states[2:]
            assert not attack.targets_are_shadows
        results = lab.realize(attacks, plain.sensitivity())
        for attack in attacks:
            found = results[attack]
            assert found["scores"].shape == (2, 180)
            assert np.isfinite(found["scores"]).all()
            assert np.array_equal(found["index"][0], results[plain.sensitivity()[0]]["index"])
    assert not np.array_equal(results[attacks[0]]["scores"], results[attacks[1]]["scores"])


def test_an_attack_that_cannot_be_done_is_refused_before_anything_is_trained() -> None:
    for make, words in (
        (
            lambda: pool(4).attack(
                Threshold(), 1, Setup(Data(pixels=10), DESIGN, MODEL, SHORT, 4).trained()
            ),
            "same data",
        ),
        (lambda: pool(4, RandomHalves(12_000)), "does not fit the 6,000 train samples"),
        (lambda: pool(4, RandomHalves(81)), "even number"),
    ):
        with pytest.raises(BadInput, match=words):
            make()


# --- rankings -------------------------------------------------------------------------------------------------------


def test_of_scores_by_folds_each_sample_has_one_network_that_saw_it() -> None:
    ranking = Setup(DATA, DESIGN, MODEL, SHORT, 4).fold_memorization(4)
    seen = [state.training.design.members(state.training.row) for state in ranking.models]
    found = lab.realize(ranking)[ranking]
    assert seen == [20] * 4
    assert len(found["score"]) == 80
    assert np.isfinite(found["score"]).all()
    assert np.isinf(found["error"]).all()


def test_a_training_may_follow_a_ranking_of_the_samples() -> None:
    """A window over the first ranks of each class, by two rankings."""
    models = pool(6, Subsets(80, test=40, share=0.5))
    ranking = Memorization(models.states, "confidence")
    window = Window(width=2, step=0, order="high-to-low")
    asked = {
        by: models[0].train(SHORT, sampling=window, ranking=by)
        for by in (ranking, ranking.shuffle())
    }
    plain = models[0].train(SHORT)
    results = lab.realize(plain, asked, ranking)
    trained, permuted, all_of_them = (
        store.read(one.key).arrays for one in (*asked.values(), plain)
    )
    assert not np.array_equal(trained["head.fc.weight"], permuted["head.fc.weight"]), (
        "another ranking, other samples"
    )
    assert not np.array_equal(trained["head.fc.weight"], all_of_them["head.fc.weight"])
    assert "sampling" not in plain.record()
    score_of = dict(zip(results[ranking]["index"], results[ranking]["score"], strict=True))
    _, arguments = prepared(asked[ranking])
    expected = [score_of[sample] for sample in arguments["members"].tolist()]
    assert arguments["ranking"].tolist() == expected


def test_a_ranking_of_other_samples_is_reported() -> None:
    models = pool(4, Subsets(80, test=40))
    others = pool(4, Subsets(80, test=40, seed=1))
    with pytest.raises(lab.Failed, match=r"the ranking says nothing of [0-9]+ members"):
        lab.realize(models[0].train(SHORT, sampling=Window(), ranking=Memorization(others.states)))
    for lacking in (
        {"sampling": Window()},
        {"objective": RMR()},
        {"ranking": Memorization(models.states)},
    ):
        with pytest.raises(BadInput, match="a ranking comes with"):
            models[0].train(SHORT, **lacking)
