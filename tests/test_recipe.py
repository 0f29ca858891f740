"""Recipes: their keys, what they refuse, and the chains of a population."""

import dataclasses
import json

import pytest

from leak_atlas import BadInput
from leak_atlas.recipe import (
    CSKD,
    DPSGD,
    HAMP,
    PAST,
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
    State,
    Threshold,
    Train,
    left_out,
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


def test_a_field_at_its_default_does_not_enter_the_key() -> None:
    same = [
        base(precision="fp32", seed=0, teachers=()),
        base(schedule=Schedule(3, lr=0.1)),
        base(schedule=Schedule(3, momentum=0.9)),
    ]
    assert {each.key for each in same} == {base().key}
    assert base(seed=1).key != base().key
    assert Schedule(3, optimizer="adam", momentum=0.5).key == Schedule(3, optimizer="adam").key
    assert HAMP(weight=1).record() == {"kind": "HAMP", "weight": 1.0}


def test_a_sub_model_names_its_base_and_a_student_its_teachers() -> None:
    design = LeftOut(RandomHalves(100, seed=3), 5, 2)
    base_record = {"kind": "RandomHalves", "pool": 100, "seed": 3}
    assert design.record() == {"kind": "LeftOut", "base": base_record, "models": 5, "leave_out": 2}
    teachers = left_out(base(), sub_models=3, leave_out=1)
    student = base(objective=Distillation(), teachers=teachers)
    assert student.record()["teachers"] == [{"step": teacher.key} for teacher in teachers]
    assert base(objective=Distillation(), teachers=teachers[:2]).key != student.key


def test_numbers_are_coerced_to_their_declared_type_before_the_key() -> None:
    assert Schedule(3, lr=1).key == Schedule(3, lr=1.0).key
    assert RelaxLoss(1).key == RelaxLoss(1.0).key


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Schedule(lr="1e-3"), "write 1.0e-3"),  # type: ignore[arg-type]
        (lambda: Schedule(epochs=1.5), "takes int"),  # type: ignore[arg-type]
        (lambda: Model("resnet81"), "resnet18"),  # type: ignore[arg-type]
        (lambda: Data("fashion-mnist-smal"), "fashion-mnist-small"),
        (lambda: base().at(4), "1 to 3"),
        (lambda: base(schedule=Schedule(3, patience=1)), "dev set"),
        (lambda: base().rewind("stage4").at(1), "no epochs"),
        (lambda: base(objective=Distillation()), "teachers="),
        (lambda: base(teachers=(base(row=1),)), "Distillation()"),
        (
            lambda: base(objective=Distillation(), teachers=(base(data=Data("mnist"), row=1),)),
            "same data",
        ),
        (lambda: base(objective=AdversarialRegularization()), "reference samples"),
        (lambda: base(objective=DPSGD()), "take norm='group'"),
        (lambda: DPSGD(clip=0), "DPSGD.clip takes"),
        (lambda: DPSGD(delta=1), "DPSGD.delta takes"),
        (lambda: PAST(float("nan")), "takes float"),
        (lambda: RandomHalves(100, dev=-1), "RandomHalves.dev takes 0 or more, not -1"),
        (lambda: LeftOut(RandomHalves(100), 5, 5), "1 to 4"),
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
    assert tuned.parent is start
    assert tuned.design == dataclasses.replace(start.design, reference=20)
    assert (
        start.train(Schedule(1), reference=start.design.reference).key
        == start.train(Schedule(1)).key
    )


def test_the_last_epoch_is_the_end_of_the_training() -> None:
    assert base().at(3) == base()
    assert base().at(2) == At(base(), 2)
    early = base(schedule=Schedule(3, patience=1), design=RandomHalves(100, dev=20))
    assert early.at(3) == At(early, 3), "with a patience the end is the best epoch, not the last"


def test_a_chain_goes_back_to_its_own_initialisation() -> None:
    chain = base(seed=7).train(Schedule(2)).rewind("stage4").freeze("stage4").train(Schedule(1))
    assert chain.origin() == base(seed=7)
    assert chain.seed == 7
    assert At(base(seed=7), "init") in Rewind(base(seed=7), "head").parents()
    assert chain.frozen_until == "stage4"
    assert chain.parent.training.frozen_until is None
    assert chain.prune(0.5).train(Schedule(1)).pruned
    assert not chain.pruned


def test_every_shadow_model_goes_through_the_steps_of_its_target() -> None:
    """Adaptive: own initialisation, own data, and the same steps for each model of a population."""
    start = Setup(Data(), RandomHalves(100), MODEL, Schedule(3), 6).trained()
    private = start.rewind("stage4").freeze("stage4").train(Schedule(2), RelaxLoss(0.5))
    attack = private.attack(LiRA())
    assert not attack.shadows, "the targets are each other's shadows"

    def chain(state: State | None) -> list[str]:
        """Records along the chain, without what makes each model its own."""
        records = []
        while state is not None:
            own = {"row", "seed", "parent"}
            records.append(json.dumps({k: v for k, v in state.record().items() if k not in own}))
            state = state.before
        return records

    chains = [chain(state) for state in attack.targets]
    assert chains == [chains[0]] * 6
    assert [json.loads(step)["kind"] for step in chains[0]] == ["Train", "Hold", "Rewind", "Train"]
    origins = [state.origin() for state in attack.targets]
    assert len({origin.seed for origin in origins}) == len({origin.row for origin in origins}) == 6
    assert {signals.of for signals in attack.parents()} == set(private)


def test_each_checkpoint_is_attacked_by_the_shadows_of_that_checkpoint() -> None:
    models = Setup(Data(), RandomHalves(100), MODEL, Schedule(3), 8).trained()
    mine = Population(models.states[:4])
    others = Population(models.states[4:])
    found = mine.attack_over_time(Threshold(), (0, 2), shadows=others)
    first = mine.at("init").attack(Threshold(), shadows=others.at("init"))
    assert found == {0: first, 2: mine.at(2).attack(Threshold(), shadows=others.at(2))}
    assert models.attack_over_time(LiRA(), (2,), 1) == {2: models.at(2).attack(LiRA(), permuted=1)}


def test_a_pair_differs_by_its_data_alone() -> None:
    for place, pair in enumerate(Setup(Data(), Halves(100), MODEL, Schedule(3), 3, 2).pairs()):
        whole = pair.whole.training
        half = pair.half.training
        assert dataclasses.replace(half, row=whole.row) == whole
        assert (whole.row, half.row) == (2 * place, 2 * place + 1)
        assert Halves(100).members(half.row) * 2 == Halves(100).members(whole.row) == 100


def test_every_student_has_sub_models_of_its_own() -> None:
    """The same sub-models from scratch and inside PPTP; no two models share one."""
    models = {"sub_models": 5, "leave_out": 2}
    setup = Setup(Data(), RandomHalves(100), MODEL, Schedule(3), 4)
    students = setup.selena(Schedule(2), **models)
    plain = setup.trained()
    inside = plain.rewind("stage4").freeze("stage4").distil(Schedule(1), Schedule(2), **models)
    every = [teacher.training for student in students for teacher in student.training.teachers]
    for own in ([t.key for t in every], [t.seed for t in every], [t.row for t in every]):
        assert len(set(own)) == 20
    assert not {t.seed for t in every} & {s.training.seed for s in plain}
    assert {t.schedule for t in every} == {Schedule(2)}
    for student, own, start in zip(students, inside, plain, strict=True):
        teachers = student.training.teachers
        assert teachers == own.training.teachers, "trained once for both"
        by_hand = {"objective": Distillation(), "teachers": teachers}
        assert student == dataclasses.replace(start.training, **by_hand)
        assert [t.training.row // 5 for t in teachers] == 5 * [student.training.row]
        assert list(own.parents())[1:] == list(teachers)
        assert not own.train(Schedule(1)).teachers, "next steps forget the teachers"


def test_populations_of_different_seeds_share_no_model() -> None:
    setup = Setup(Data(), RandomHalves(100), MODEL, Schedule(3), 64)
    first = setup.trained()
    second = dataclasses.replace(setup, seed=1).trained()
    assert not {s.training.seed for s in first} & {s.training.seed for s in second}


def test_every_model_goes_by_its_own_score() -> None:
    models = Setup(Data(), RandomHalves(100, dev=10, reference=10), MODEL, Schedule(3), 4).trained()
    by = models.score()
    defence = (Schedule(1), RelaxLoss(0.5))
    found = models.rewind_weights(by, 0.01).freeze_weights(by, 0.01).train(*defence)
    pruned = models.prune(0.5, by, scope="layer")
    for place, (state, own) in enumerate(zip(models, by, strict=True)):
        rewound = state.rewind_weights(own, 0.01).freeze_weights(own, 0.01)
        assert found[place] == rewound.train(*defence)
        assert own.of == state
        assert pruned[place] == state.prune(0.5, own, "layer")
    with pytest.raises(BadInput, match="as many scores"):
        models.rewind_weights(by[:2], 0.01)
    with pytest.raises(BadInput, match="score of another model"):
        models[0].rewind_weights(by[1], 0.01)


def test_halvings_divide_a_population_between_its_pairs() -> None:
    whole = Setup(Data(pixels=8), RandomHalves(100), Model("cnn4", 2), Schedule(1), 12).trained()
    assert whole.pairs == (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5)
    found = whole.halvings(3)
    assert len(found) == 3
    assert found == whole.halvings(3)
    for one, other in found:
        assert {*one} | {*other} == {*whole}
        assert len(one) == len(other) == 6
        assert not {*one.pairs} & {*other.pairs}
