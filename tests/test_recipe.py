import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leak_atlas import BadInput
from leak_atlas.recipe import (
    CCL,
    CSKD,
    DPSGD,
    HAMP,
    PAST,
    PPB,
    RMIA,
    AdversarialRegularization,
    At,
    Attack,
    Data,
    Distillation,
    Halves,
    LeftOut,
    LiRA,
    Model,
    Population,
    RandomHalves,
    RelaxLoss,
    Rewind,
    Schedule,
    Setup,
    Signals,
    Slimming,
    Threshold,
    Train,
    VictimAttacker,
    Window,
    left_out,
    load,
)

MODEL = Model("resnet10", width=8)


def base(**changes: object) -> Train:
    fields = {
        "data": Data(),
        "design": RandomHalves(100),
        "row": 0,
        "model": MODEL,
        "schedule": Schedule(3),
    }
    return Train(**(fields | changes))  # type: ignore[arg-type]


def test_keys_are_pinned() -> None:
    """A change here forgets every stored result of every user: raise a revision instead, or know
    what you do.
    """
    assert base().record() == {
        "kind": "Train",
        "data": {
            "kind": "Data",
            "name": "fashion-mnist-small",
            "digest": Data().record()["digest"],
        },
        "design": {"kind": "RandomHalves", "pool": 100},
        "row": 0,
        "model": {"kind": "Model", "name": "resnet10", "width": 8},
        "schedule": {"kind": "Schedule", "epochs": 3},
    }
    pinned = {base(): "05847b7138f1e66a", Signals(base()): "2e902c1fd33a4fe7"}
    pinned[Attack(LiRA(), tuple(base(row=row) for row in range(6)))] = "7b57366b68946347"
    assert {step: step.key[:16] for step in pinned} == pinned


def test_defences_are_described_by_what_differs_from_the_papers() -> None:
    assert AdversarialRegularization().record() == {"kind": "AdversarialRegularization"}
    assert CSKD(weight=3).record() == {"kind": "CSKD", "weight": 3.0}
    assert HAMP(weight=1).record() == {"kind": "HAMP", "weight": 1.0}
    assert CCL(form="quadratic").record() == {"kind": "CCL", "form": "quadratic"}
    assert [PAST().record(), DPSGD(noise=2).record()] == [
        {"kind": "PAST"},
        {"kind": "DPSGD", "noise": 2.0},
    ]
    assert [PPB(4).record(), DPSGD(group=1).record()] == [{"kind": "PPB"}, {"kind": "DPSGD"}]
    design = LeftOut(RandomHalves(100, seed=3), 5, 2)
    assert design.record() == {
        "kind": "LeftOut",
        "base": {"kind": "RandomHalves", "pool": 100, "seed": 3},
    } | {
        "models": 5,
        "leave_out": 2,
    }
    assert load(design.record(), step=lambda key: base()) == design
    assert "teachers" not in base().record() and base(teachers=()).key == base().key
    teachers = left_out(base(), sub_models=3, leave_out=1)
    student = base(objective=Distillation(), teachers=teachers)
    assert student.record()["teachers"] == [{"step": teacher.key} for teacher in teachers]
    assert base(objective=Distillation(), teachers=teachers[:2]).key != student.key


def test_a_field_at_its_default_does_not_enter_the_key() -> None:
    assert base(precision="fp32", seed=0).key == base().key
    assert base(seed=1).key != base().key
    assert base(schedule=Schedule(3, lr=0.1)).key == base().key


def test_numbers_are_coerced_to_their_declared_type_before_the_key() -> None:
    assert Schedule(3, lr=1).key == Schedule(3, lr=1.0).key
    assert RelaxLoss(1).key == RelaxLoss(1.0).key


@given(st.floats(1e-6, 10), st.integers(1, 500), st.booleans())
def test_a_recipe_comes_back_from_its_json(lr: float, epochs: int, nesterov: bool) -> None:
    schedule = Schedule(epochs, lr=lr, nesterov=nesterov, decay="steps", milestones=(1, 2))
    assert load(json.loads(json.dumps(schedule.record())), step=lambda key: base()) == schedule


def test_a_chain_comes_back_from_its_records() -> None:
    attack = Attack(
        LiRA(variance="code"),
        tuple(Setup(Data(), RandomHalves(100), MODEL, Schedule(3), 6).trained()),
    )
    chain = base().rewind("stage4").freeze("stage4").train(Schedule(2), RelaxLoss(0.5))
    known = {step.key: step for step in (*attack.targets, base(), base().rewind("stage4"))}
    known[chain.parent.key] = chain.parent  # type: ignore[union-attr]
    sampling = base().train(Schedule(2), sampling=Window(step=7), ranking=Signals(base()))
    for parent in sampling.parents():
        known[parent.key] = parent
    for step in (attack, chain, sampling):
        assert load(json.loads(json.dumps(step.record())), known.__getitem__).key == step.key


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Schedule(lr="1e-3"), "write 1.0e-3"),  # type: ignore[arg-type]
        (lambda: Schedule(epochs=1.5), "takes int"),  # type: ignore[arg-type]
        (lambda: Schedule(epochs=True), "takes int"),
        (lambda: Model("resnet81"), "resnet18"),  # type: ignore[arg-type]
        (lambda: Data("fashion-mnist-smal"), "fashion-mnist-small"),
        (lambda: base().at(4), "1 to 3"),
        (lambda: base(schedule=Schedule(3, patience=1)), "dev set"),
        (lambda: base().rewind("stage4").at(1), "no epochs"),
        (lambda: RMIA(views=2, temperature=2.0), "views=1"),
        (lambda: base(objective=Distillation()), "teachers="),
        (lambda: base(teachers=(base(row=1),)), "Distillation()"),
        (
            lambda: base(objective=Distillation(), teachers=(base(data=Data("mnist"), row=1),)),
            "same data",
        ),
        (lambda: base(objective=AdversarialRegularization()), "reference samples"),
        (lambda: base().train(Schedule(1), AdversarialRegularization()), "reference samples"),
        (lambda: AdversarialRegularization(steps=0), "steps takes 1 or more, not 0"),
        (lambda: base(objective=PAST()), "reference samples"),
        (lambda: base(objective=DPSGD()), "take norm='group'"),
        (lambda: base(objective=Slimming(), model=Model("vit")), "unlike a vit: take a resnet"),
        (lambda: DPSGD(group=0), "1 or more"),
        (lambda: DPSGD(clip=0), "positive clip"),
        (lambda: DPSGD(delta=1), "between 0 and 1"),
        (lambda: HAMP(entropy=1.1), "HAMP.entropy takes 0 to 1, not 1.1"),
        (lambda: CCL(alpha=-1), "0 to 1"),
        (lambda: PAST(-1), "0 or more"),
        (lambda: PAST(float("nan")), "takes float"),
        (lambda: AdversarialRegularization(width=8), "16 or more"),
        (lambda: Window(step=-1), "0 or more"),
        (lambda: RandomHalves(100, dev=-1), "RandomHalves.dev takes 0 or more, not -1"),
        (lambda: DPSGD(noise="1e-3"), "write 1.0e-3"),  # type: ignore[arg-type]
        (lambda: LeftOut(RandomHalves(100), 5, 5), "1 to 4"),
        (lambda: LeftOut(RandomHalves(100), 5, 0), "1 to 4"),
        (lambda: CSKD(temperature=0), "temperature"),
    ],
)
def test_bad_input_is_one_line_that_says_what_to_do(make, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        make()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_defence_may_see_samples_that_what_goes_before_did_not() -> None:
    """The reference alone is new, so nothing before is trained anew; without it the recipe is the
    old one.
    """
    start = base()
    tuned = start.train(Schedule(1), AdversarialRegularization(), reference=20)
    assert tuned.parent is start and tuned.design == dataclasses.replace(start.design, reference=20)
    assert (
        start.train(Schedule(1), reference=start.design.reference).key
        == start.train(Schedule(1)).key
    )


def test_the_last_epoch_is_the_end_of_the_training() -> None:
    assert base().at(3) == base()
    assert base().at(2) == At(base(), 2)
    early = base(schedule=Schedule(3, patience=1), design=RandomHalves(100, dev=20))
    assert early.at(3) == At(early, 3), "with a patience the end is the best epoch, not the last"


def test_a_chain_walks_back_to_its_own_initialisation() -> None:
    chain = base(seed=7).train(Schedule(2)).rewind("stage4").freeze("stage4").train(Schedule(1))
    assert chain.origin() == base(seed=7)
    assert At(base(seed=7), "init") in list(Rewind(base(seed=7), "head").parents())
    assert chain.seed == 7


def test_every_shadow_walks_every_step_of_its_target() -> None:
    """Adaptive is adaptive: own initialisation, own data, and the same steps for each model of a
    population.
    """
    start = Setup(Data(), RandomHalves(100), MODEL, Schedule(3), 6).trained()
    private = start.rewind("stage4").freeze("stage4").train(Schedule(2), RelaxLoss(0.5))
    attack = private.attack(LiRA())

    def walk(step):
        """Kinds and descriptions along the chain, with what makes each model its own left out."""
        out = []
        while step is not None:
            record = {k: v for k, v in step.record().items() if k not in ("row", "seed", "parent")}
            out.append(json.dumps(record))
            step = getattr(step, "parent", None)
        return out

    assert not attack.shadows, "the targets are each other's shadows"
    chains = [walk(state) for state in attack.targets]
    assert all(chain == chains[0] for chain in chains)
    assert [json.loads(step)["kind"] for step in chains[0]] == ["Train", "Hold", "Rewind", "Train"]
    origins = [state.origin() for state in attack.targets]
    assert len({origin.seed for origin in origins}) == len({origin.row for origin in origins}) == 6
    assert {signals.of for signals in attack.parents()} == set(private)


def test_a_course_attacks_each_checkpoint_by_the_shadows_of_that_checkpoint() -> None:
    models = Setup(Data(), RandomHalves(100), MODEL, Schedule(3), 8).trained()
    mine, others = Population(models.states[:4]), Population(models.states[4:])
    course = mine.attack_over_time(Threshold(), (0, 2), shadows=others)
    assert course == {
        t: mine.at(at).attack(Threshold(), shadows=others.at(at)) for t, at in ((0, "init"), (2, 2))
    }
    assert models.attack_over_time(LiRA(), (2,), 1) == {2: models.at(2).attack(LiRA(), permuted=1)}


def test_a_pair_differs_by_its_data_alone() -> None:
    for place, pair in enumerate(Setup(Data(), Halves(100), MODEL, Schedule(3), 3, 2).pairs()):
        whole, half = pair.whole.training, pair.half.training
        assert dataclasses.replace(half, row=whole.row) == whole
        assert (whole.row, half.row) == (2 * place, 2 * place + 1)
        assert Halves(100).members(half.row) * 2 == Halves(100).members(whole.row) == 100


def test_every_student_has_sub_models_of_its_own() -> None:
    """Adaptive: whole chains that share nothing, from scratch and inside PPTP, and next steps
    forget the teachers.
    """
    design, models = RandomHalves(100), {"sub_models": 5, "leave_out": 2}
    students = Setup(Data(), design, MODEL, Schedule(3), 4).selena(Schedule(2), **models)
    plain = Setup(Data(), design, MODEL, Schedule(3), 4).trained()
    inside = plain.rewind("stage4").freeze("stage4").distil(Schedule(1), Schedule(2), **models)
    every = [teacher for student in students for teacher in student.training.teachers]
    assert (
        len({t.key for t in every})
        == len({t.training.seed for t in every})
        == len({t.training.row for t in every})
        == 20
    )
    assert not {t.training.seed for t in every} & {s.training.seed for s in plain}
    for student, own, start in zip(students, inside, plain, strict=True):
        assert student.training.teachers == own.training.teachers, "trained once for both"
        assert student == dataclasses.replace(
            start.training, objective=Distillation(), teachers=student.training.teachers
        )
        assert [t.training.row // 5 for t in student.training.teachers] == 5 * [
            student.training.row
        ]
        assert {t.training.schedule for t in student.training.teachers} == {Schedule(2)}
        assert list(own.parents())[1:] == list(own.training.teachers)
        assert not own.train(Schedule(1)).teachers
    assert {t.training.schedule for t in left_out(base(), sub_models=2, leave_out=1)} == {
        Schedule(3)
    }


def test_designs_count_their_members() -> None:
    assert LeftOut(RandomHalves(1000), 25, 10).members(49) == 300
    assert (
        LeftOut(Halves(1000), 5, 1).members(4) == 800
        and LeftOut(Halves(1000), 5, 1).members(5) == 400
    )
    assert RandomHalves(1000).members(3) == 500
    assert VictimAttacker(1000, dev=50).members(0) == 225


def test_populations_of_different_seeds_share_no_model() -> None:
    seeds = [
        {
            s.training.seed
            for s in Setup(Data(), RandomHalves(100), MODEL, Schedule(3), 64, i).trained()
        }
        for i in (0, 1)
    ]
    assert not seeds[0] & seeds[1]


def test_signals_of_a_state_do_not_depend_on_who_asks() -> None:
    assert Signals(base()).key == Signals(base(), views=1).key != Signals(base(), views=2).key


def test_every_model_walks_cwrf_by_its_own_score() -> None:
    models = Setup(Data(), RandomHalves(100, dev=10, reference=10), MODEL, Schedule(3), 4).trained()
    by = models.score()
    walked = (
        models.rewind_weights(by, 0.01).freeze_weights(by, 0.01).train(Schedule(1), RelaxLoss(0.5))
    )
    for state, own, one in zip(models, by, walked, strict=True):
        assert one == state.rewind_weights(own, 0.01).freeze_weights(own, 0.01).train(
            Schedule(1), RelaxLoss(0.5)
        )
        assert one.origin() == state and own.of == state
    with pytest.raises(BadInput, match="as many scores"):
        models.rewind_weights(by[:2], 0.01)


def test_halvings_part_a_population_between_its_pairs() -> None:
    whole = Setup(
        Data("fashion-mnist-small", 8), RandomHalves(100), Model("cnn4", 2), Schedule(1), 12
    ).trained()
    assert whole.pairs == (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5)
    found = whole.halvings(3)
    assert len(found) == 3 and found == whole.halvings(3) != whole.halvings(3, seed=1)
    for one, other in found:
        assert (
            {*one} | {*other} == {*whole}
            and not {*one.pairs} & {*other.pairs}
            and len(one) == len(other) == 6
        )
