"""Defences end to end: planned, realized, attacked, from scratch and inside PPTP."""

import numpy as np
import pytest
import torch

from leak_atlas import BadInput, lab
from leak_atlas.data import designs, readers
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.lab.plans import plan
from leak_atlas.lab.training import prepared
from leak_atlas.models.subject import Subject
from leak_atlas.recipe import (
    CCL,
    CSKD,
    DPSGD,
    HAMP,
    PAST,
    PPB,
    RMIA,
    AdversarialRegularization,
    Data,
    Distillation,
    Model,
    Objective,
    Population,
    RandomHalves,
    Schedule,
    Setup,
    Signals,
    Threshold,
    Train,
    left_out,
    self_audit,
)

DATA = Data(pixels=8)
MODEL = Model("resnet10", width=2)
SHORT = Schedule(2, 32)
DESIGN = RandomHalves(80, test=40, reference=20)
SMALL = {"sub_models": 3, "leave_out": 1}
VIT = Model("vit", width=1)
ADVERSARIAL = AdversarialRegularization(steps=2, width=32)


def pool(objective: Objective | None = None, models: int = 4) -> Population:
    return Setup(DATA, DESIGN, MODEL, SHORT, models).trained(objective)


def inside(objective: Objective) -> Population:
    """The defence as PPTP's second training."""
    return pool().rewind("stage4").freeze("stage4").train(Schedule(1, 32), objective)


ONE_STEP = [ADVERSARIAL, CSKD(), HAMP(), CCL(), PAST(), PPB()]


@pytest.mark.parametrize("objective", ONE_STEP, ids=lambda objective: type(objective).__name__)
def test_a_defence_runs_from_scratch_and_inside_pptp(objective: Objective) -> None:
    scratch = pool(objective)
    chain = inside(objective)
    attacks = [scratch.attack(RMIA()), chain.attack(Threshold("loss"))]
    results = lab.realize(attacks, self_audit(chain))
    assert all(np.isfinite(results[attack]["scores"]).all() for attack in attacks)
    end = store.read(chain[0].key).arrays
    trained = store.read(pool()[0].key).arrays
    safe = [name for name in end if name.startswith(("stem", "stage1", "stage2", "stage3"))]
    assert safe
    assert all(np.array_equal(end[name], trained[name]) for name in safe)
    assert not np.array_equal(end["stage4.0.conv1.weight"], trained["stage4.0.conv1.weight"])


def test_private_training_runs_from_scratch_and_inside_pptp() -> None:
    """Its epsilon is reported from scratch; behind a training that was not private there is none to
    tell.
    """
    short = Schedule(2, 32, optimizer="adam", lr=0.01)
    plain, scratch = (Setup(DATA, DESIGN, VIT, short, 4).trained(o) for o in (None, DPSGD(noise=2)))
    chain = plain.rewind("stage4").freeze("stage4").train(short, DPSGD(noise=2))
    lab.realize(scratch.attack(Threshold("loss")), chain.signals())
    ends = {
        name: store.read(one[0].key).arrays
        for name, one in (("plain", plain), ("scratch", scratch), ("in", chain))
    }
    assert (np.diff([0, *ends["scratch"]["history/epsilon"]]) > 0).all()
    assert np.isnan(ends["in"]["history/epsilon"]).all()
    assert "history/epsilon" not in ends["plain"]
    assert not np.array_equal(
        ends["in"]["stage4.mlp.fc1.weight"], ends["plain"]["stage4.mlp.fc1.weight"]
    )


def test_selena_runs_from_scratch_and_inside_pptp() -> None:
    students = Setup(DATA, DESIGN, MODEL, SHORT, 4).selena(**SMALL)
    chain = pool().rewind("stage4").freeze("stage4").distil(Schedule(1, 32), SHORT, **SMALL)
    asked = [students.attack(RMIA()), chain.attack(Threshold("loss")), self_audit(students)]
    found = plan([asked])
    trainings = [job for job in found.jobs.values() if isinstance(job.step, Train)]
    assert len(trainings) == found.models_distinct == 4 * (3 + 1 + 1 + 1), (
        "sub-models are trained once for both"
    )
    for job in trainings:
        assert {t.key for t in job.step.teachers} <= set(job.needs)
    results = lab.realize(asked)
    assert all(np.isfinite(results[attack]["scores"]).all() for attack in asked[:2])
    # The target of an attack is a member of all its row's half, whatever its sub-models left out.
    role = store.read(Signals(students[0]).key).arrays["role"]
    assert (role == Role.MEMBER).sum() == (role == Role.NONMEMBER).sum() == 40


def test_a_label_is_the_mean_of_those_that_left_the_sample_out() -> None:
    student = Setup(DATA, DESIGN, MODEL, SHORT, 1).selena(sub_models=4, leave_out=2)[0].training
    lab.realize(list(student.teachers))
    given = prepared(student)[1]
    samples = readers.load(DATA.name, DATA.pixels)
    design = student.teachers[0].training.design
    table = designs.roles(design, samples.labels, samples.train, 4)
    from leak_atlas.data import augmentation

    x = augmentation.plain(given["data"], given["members"])
    with torch.no_grad():
        says = torch.stack([Subject(teacher).net(x).softmax(1) for teacher in student.teachers])
    for i, member in enumerate(given["members"].tolist()):
        unseen = table[:, member] == Role.NONMEMBER
        assert unseen.sum() == 2
        torch.testing.assert_close(given["soft"][i], says[unseen, i].mean(0))


def test_no_label_comes_from_a_model_that_saw_the_sample() -> None:
    """A teacher that went on from a model of all members has seen them, whatever its own last
    training left out.
    """
    whole = pool(models=1)[0].training
    honest = left_out(whole, SHORT, **SMALL)
    tainted = tuple(
        whole.train(SHORT) if number == 0 else teacher for number, teacher in enumerate(honest)
    )
    lab.realize([*honest, *tainted])
    student = whole.train(SHORT, Distillation(), honest)
    assert prepared(student)[1]["soft"].isfinite().all()
    with pytest.raises(BadInput, match="seen by every teacher"):
        prepared(whole.train(SHORT, Distillation(), tainted))
