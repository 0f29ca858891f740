"""Recipes: their keys, what they refuse, and the chains of a population."""

import dataclasses
import json

import pytest

from leak_atlas import BadInput
from leak_atlas.recipe import (
    DPSGD,
    HAMP,
    RMIA,
    AdversarialRegularization,
    At,
    Attack,
    Data,
    Distillation,
    Halves,
    LeftOut,
    LiRA,
    Memorization,
    Model,
    Network,
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


def test_numbers_are_coerced_to_their_declared_type_before_the_key() -> None:
    assert Schedule(3, lr=1).key == Schedule(3, lr=1.0).key
    assert RelaxLoss(1).key == RelaxLoss(1.0).key


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Schedule(lr="1e-3"), "as in 1.0e-3"),  # type: ignore[arg-type]
        (lambda: Schedule(epochs=1.5), "takes int"),  # type: ignore[arg-type]
        (lambda: Model("resnet81"), "resnet18"),  # type: ignore[arg-type]
        (lambda: Data("fashion-mnist-smal"), "fashion-mnist-small"),
        (lambda: base().at(4), "1 to 3"),
        (lambda: base(schedule=Schedule(3, patience=1)), "dev set"),
        (lambda: base(objective=Distillation()), "teachers="),
        (
            lambda: base(objective=Distillation(), teachers=(base(data=Data("mnist"), row=1),)),
            "same data",
        ),
        (lambda: base(objective=AdversarialRegularization()), "reference samples"),
        (lambda: base(objective=DPSGD()), "take norm='group'"),
        (lambda: LeftOut(RandomHalves(100), 5, 5), "1 to 4"),
        (lambda: Signals(base(), views=2.0), "views cannot be 2.0"),  # type: ignore[arg-type]
        (lambda: Memorization(()), "needs networks"),
        (lambda: Network(hidden=(8,), dropout=(0.1, 0.2)), "2 rates for 1 hidden layers"),
        (lambda: RMIA(a=2), "a takes 0 to 1"),
        (lambda: Setup(Data(), RandomHalves(100), MODEL, Schedule(3), 0), "a network or more"),
        (lambda: RandomHalves(7).check(100, 0), "give an even number"),
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
    assert At(base(seed=7), "init") in Rewind(base(seed=7), "head").parents()
    assert chain.frozen_until == "stage4"
    assert base().freeze("stage4", later=True).train(Schedule(1)).frozen_until is None
    assert chain.prune(0.5).train(Schedule(1)).pruned


def test_frozen_parts_cost_no_gradients_of_their_weights() -> None:
    """A pass costs three forward passes. First parts that are frozen run once, forwards; of later
    ones the weights' gradients are saved.
    """

    def count(what: str, data: Data, model: Model, start: str | None = None) -> float:
        return {None: 10.0, "stage3": 4.0}[start]

    start = base()
    free = start.train(Schedule(2))
    visits = 2.0 * start.members
    assert free.operations(count) == visits * 3 * 10
    front = start.freeze("stage3").train(Schedule(2))
    assert front.operations(count) == visits * 3 * 4 + start.members * 6
    back = start.freeze("stage3", later=True).train(Schedule(2))
    assert back.operations(count) == visits * (3 * 10 - 4)


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


def test_each_checkpoint_is_attacked_by_the_shadows_of_that_checkpoint() -> None:
    models = Setup(Data(), RandomHalves(100), MODEL, Schedule(3), 8).trained()
    mine = Population(models.states[:4])
    others = Population(models.states[4:])
    found = mine.attack_over_time(Threshold(), (0, 2), shadows=others)
    first = mine.at("init").attack(Threshold(), shadows=others.at("init"))
    assert found == {0: first, 2: mine.at(2).attack(Threshold(), shadows=others.at(2))}
    assert models.attack_over_time(LiRA(), (2,), 1) == {2: models.at(2).attack(LiRA(), permuted=1)}
    with pytest.raises(BadInput, match="shadows has no models"):
        mine.attack(Threshold(), shadows=Population(()))


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
    every = []
    for student in students:
        every += [teacher.training for teacher in student.training.teachers]
    assert len({t.seed for t in every}) == len({t.row for t in every}) == 20
    assert not {t.seed for t in every} & {s.training.seed for s in plain}
    for student, own, start in zip(students, inside, plain, strict=True):
        teachers = student.training.teachers
        assert teachers == own.training.teachers, "trained once for both"
        by_hand = {"objective": Distillation(), "teachers": teachers}
        assert student == dataclasses.replace(start.training, **by_hand)
        assert [t.training.row // 5 for t in teachers] == 5 * [student.training.row]
        assert not own.train(Schedule(1)).teachers, "next steps forget the teachers"


def test_populations_of_different_seeds_share_no_model() -> None:
    setup = Setup(Data(), RandomHalves(100), MODEL, Schedule(3), 64)
    first = setup.trained()
    second = dataclasses.replace(setup, seed=1).trained()
    assert not {s.training.seed for s in first} & {s.training.seed for s in second}


def test_halvings_divide_a_population_between_its_pairs() -> None:
    whole = Setup(Data(pixels=8), RandomHalves(100), Model("cnn4", 2), Schedule(1), 12).trained()
    found = whole.halvings(3)
    assert found == whole.halvings(3)
    assert len({frozenset(one.complement_pairs) for one, _ in found}) == 3
    for one, other in found:
        assert {*one} | {*other} == {*whole}
        assert len(one) == len(other) == 6
        assert not {*one.complement_pairs} & {*other.complement_pairs}
