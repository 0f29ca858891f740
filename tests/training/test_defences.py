"""Steps that need more than the batch: what they draw, what they learn, and what they leave alone."""

import copy
import dataclasses
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net
from leak_atlas.models.inference import InferenceNet
from leak_atlas.recipe import (
    CSKD,
    PAST,
    PPB,
    RMR,
    AdversarialRegularization,
    Augment,
    CrossEntropy,
    Distillation,
    Objective,
    Schedule,
)
from leak_atlas.training import graph, loop, objectives
from leak_atlas.training.defences import privacy_sensitivity, soft_labels
from tests.training.small import (
    MEMBERS,
    REFERENCE,
    SHORT,
    STILL,
    begun,
    difference,
    equal,
    masks,
    rehearsing,
    same,
    trained,
    values,
)

AUGMENTED = dataclasses.replace(SHORT, augment=Augment(1))
ADVERSARIAL = AdversarialRegularization(steps=2, width=32)
DEFENCES = {
    "adversarial": ADVERSARIAL,
    "one-step": dataclasses.replace(ADVERSARIAL, form="one_step"),
    "balancing": PPB(),
    "sparsity": PAST(0.1),
    "class-wise": CSKD(),
    "distillation": Distillation(),
    "risky": RMR(0.5),
    "risky, apart": RMR(0.5, form="code"),
}
defences = pytest.mark.parametrize("objective", DEFENCES.values(), ids=DEFENCES)


# ---------------------------------------------------------------- all of them


@defences
def test_the_same_seed_gives_the_same_bits(net: Net, data: Resident, objective: Objective) -> None:
    first, second, other = (trained(net, data, objective, AUGMENTED, seed=s) for s in (1, 1, 2))
    assert same(first, second)
    assert not same(first, other)
    assert not same(first, trained(net, data, CrossEntropy(), AUGMENTED))


@defences
@pytest.mark.parametrize("frozen", ["parts", "half"])
def test_a_recording_changes_nothing(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch, objective: Objective, frozen: str
) -> None:
    monkeypatch.setattr(graph, "record", rehearsing)
    options = {"frozen": masks(net, frozen), "wanted": ("init", 1)}
    eager = trained(net, data, objective, plan="eager", **options)
    assert same(eager, trained(net, data, objective, plan="graph", **options))


@defences
@pytest.mark.parametrize("frozen", ["parts", "half"])
def test_what_is_frozen_keeps_its_bits(
    net: Net, data: Resident, objective: Objective, frozen: str
) -> None:
    # Weights and statistics are not those of a new network.
    before = trained(net, data).states["last"]
    net.load_state_dict(before)
    mask = masks(net, frozen)
    after = trained(net, data, objective, AUGMENTED, frozen=mask).states["last"]
    assert all(torch.equal(before[name][keep], after[name][keep]) for name, keep in mask.items())
    assert not torch.equal(before["head.fc.weight"], after["head.fc.weight"])


@defences
def test_kept_features_are_the_eager_path(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch, objective: Objective
) -> None:
    options = {"frozen": masks(net, "parts")}
    kept = trained(net, data, objective, **options).states["last"]
    monkeypatch.setattr("leak_atlas.training.update.CACHE", 0)
    assert difference(kept, trained(net, data, objective, **options).states["last"]) < 1e-4


@defences
def test_a_weight_that_the_network_does_not_use_stays(
    net: Net, data: Resident, objective: Objective
) -> None:
    net.head.unused = nn.Parameter(torch.full((2, 2), 0.5))
    after = trained(net, data, objective).states["last"]
    assert (after["head.unused"] == 0.5).all()


@pytest.mark.parametrize(
    "objective", [dataclasses.replace(ADVERSARIAL, alpha=0), PAST(0)], ids=["adversarial", "PAST"]
)
def test_without_weight_it_is_cross_entropy_bit_for_bit(
    net: Net, data: Resident, objective: Objective
) -> None:
    plain = trained(net, data, CrossEntropy(), AUGMENTED)
    assert same(plain, trained(net, data, objective, AUGMENTED))


@pytest.mark.parametrize("objective", [ADVERSARIAL, PAST()], ids=["adversarial", "PAST"])
def test_looking_at_others_moves_no_statistics(
    net: Net, data: Resident, objective: Objective
) -> None:
    step = begun(net, data, objective)
    step.begin(0, 0.0, step.tables(0, 0))
    before = values(net)
    step.prepare(16)
    assert equal(before, values(net))
    assert net.training
    step(16)
    assert not torch.equal(before["stem.norm.running_mean"], net.stem.norm.running_mean)


# ---------------------------------------------------------------- adversarial regularization


def test_its_outsiders_may_be_dev_samples(net: Net, data: Resident) -> None:
    of_dev = dataclasses.replace(ADVERSARIAL, outsiders="dev")
    one = trained(net, data, ADVERSARIAL)
    assert same(one, trained(net, data, of_dev, samples={"dev": REFERENCE}))


def test_a_constant_h_adds_no_gradient(net: Net, data: Resident) -> None:
    """A last layer of zeros gives one half to everything: the gradient is cross-entropy's."""
    gradients = []
    for objective in (CrossEntropy(), AdversarialRegularization(alpha=50, width=32)):
        own = copy.deepcopy(net)
        step = begun(own, data, objective)
        if objective.further_samples:
            step.h_optimizer.param_groups[0]["lr"].zero_()
            torch.nn.init.zeros_(step.h.out.weight)
        step.begin(0, 0.0, step.tables(0, 0))
        step(16)
        gradients.append({name: weight.grad for name, weight in own.named_parameters()})
    assert equal(*gradients)


def test_the_classifier_hides_its_members(net: Net, data: Resident) -> None:
    """Against an h that stands still, the mean membership of members falls with its weight."""
    membership = []
    for alpha in (0.0, 5.0, 50.0):
        own = copy.deepcopy(net)
        step = begun(own, data, AdversarialRegularization(alpha, width=256))
        step.h_optimizer.param_groups[0]["lr"].zero_()
        for epoch in range(8):
            step.begin(epoch, 0.02, step.tables(1, epoch))
            step(28)
            step(28)
        with torch.no_grad():
            posterior = own.eval()(augmentation.plain(data, MEMBERS)).softmax(1)
            membership.append(float(step.h(posterior, torch.eye(3)[data.labels[MEMBERS]]).mean()))
    assert membership[0] > membership[1] > membership[2]


def test_h_learns_who_is_a_member(data: Resident, net: Net) -> None:
    """Random labels can only be learnt by heart: posteriors then separate members from reference
    samples.
    """
    data = copy.deepcopy(data)
    data.labels = torch.randint(3, (96,), generator=torch.Generator().manual_seed(1))
    loop.fit(net, data, MEMBERS, Schedule(60, batch=28, lr=0.1), seed=0)
    step = begun(net, data, AdversarialRegularization(alpha=0.0, width=256))
    for epoch in range(40):
        step.begin(epoch, 0.0, step.tables(0, epoch))  # the classifier stands still
        step(28)
        step(28)
    with torch.no_grad():
        index = torch.cat([MEMBERS, REFERENCE])
        posterior = net.eval()(augmentation.plain(data, index)).softmax(1)
        found = step.h(posterior, torch.eye(3)[data.labels[index]]) > 0.5
    # Of 16 reference samples a guess has more than 13 right (one in 500), or errs on members.
    assert float(found[:56].float().mean() + (~found[56:]).float().mean()) / 2 > 0.85


def test_what_h_looks_at(net: Net, data: Resident) -> None:
    step = begun(net, data, AdversarialRegularization(steps=3, width=32))
    first = step.tables(5, 0)
    own, members, others = first.perm.split([56, 3 * 56, 3 * 56])
    assert torch.equal(own, augmentation.tables(5, 0, 56, None).perm), "as under any objective"
    assert torch.equal(members.view(3, 56).sort(dim=1).values, torch.arange(56).expand(3, 56))
    counts = (others - 56).bincount(minlength=16)
    assert counts.max() - counts.min() <= 1
    later = step.tables(5, 1)
    assert not torch.equal(first.perm[56:], later.perm[56:]), "each epoch draws anew"
    step.begin(0, 0.0, first)
    assert torch.equal(step.further(16)[0], first.perm[56:].view(6, 56)[:, :16])


def test_each_step_of_h_is_on_evaluated_images_without_augmentation(
    net: Net, data: Resident
) -> None:
    objective = AdversarialRegularization(steps=2, width=32, attack_lr=0.01)
    step = begun(net, data, objective, AUGMENTED)
    step.begin(0, 0.0, step.tables(5, 0))
    seen = []
    step.h.posterior.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    step.prepare(16)
    assert step.h_optimizer.param_groups[0]["lr"] == 0.01
    members, outsiders = step.further(16)[0].split(2)
    for posterior, *rows in zip(seen, members, outsiders, strict=True):
        index = step.samples[torch.cat(rows)]
        with torch.no_grad():
            expected = net.eval()(augmentation.plain(data, index)).softmax(1)
        torch.testing.assert_close(posterior, expected)


def test_the_pruning_codes_take_one_classifier_step_an_epoch(net: Net, data: Resident) -> None:
    objective = dataclasses.replace(ADVERSARIAL, form="one_step")
    step = begun(net, data, objective)
    assert [step.batches(epoch) for epoch in range(3)] == [[(16, "")]] * 3


def test_the_inference_net_is_the_published_one() -> None:
    units = AdversarialRegularization().units(100)
    assert units == ((100, 1024, 512, 64), (100, 128, 64), (128, 512, 256, 128, 64))
    net = InferenceNet(100, seed=0)
    membership = net(torch.full((2, 100), 0.01), torch.eye(100)[:2])
    assert membership.shape == (2,)
    assert ((membership > 0) & (membership < 1)).all()
    weights = sum(value.numel() for value in net.parameters() if value.dim() > 1)
    layers = [layer for branch in units for layer in pairwise(branch)]
    assert weights == sum(a * b for a, b in layers) + 64


# ---------------------------------------------------------------- privacy-aware sparsity


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_where_there_is_no_gap_nothing_shrinks(net: Net, data: Resident, optimizer: str) -> None:
    """Reference samples that are the members of the batch have the same loss and gradients."""
    schedule = Schedule(2, batch=28, lr=0.01, optimizer=optimizer)
    ends = []
    for objective in (CrossEntropy(), PAST(1e3)):
        own = copy.deepcopy(net)
        step = begun(own, data, objective, schedule)
        tables = augmentation.tables(0, 0, 56, None)
        columns = [torch.cat([column] * (1 + objective.further_samples)) for column in tables]
        step.begin(0, 0.01, augmentation.Tables(*columns))
        step(28)
        step(28)
        ends.append(values(own))
    assert equal(*ends)


def test_outsiders_have_augmentations_of_their_own(net: Net, data: Resident) -> None:
    step = begun(net, data, PAST(), AUGMENTED)
    step.begin(0, 0.0, step.tables(0, 0))
    members, outsiders = step.order[1:].unbind(1)
    assert not torch.equal(members, outsiders)


def test_past_needs_both_gradients_at_the_same_free_weights(net: Net, data: Resident) -> None:
    with pytest.raises(BadInput, match="take sharpness 0"):
        begun(net, data, PAST(0.5), dataclasses.replace(SHORT, sharpness=0.1))
    frozen = {}
    for name, weight in net.named_parameters():
        if weight.dim() > 1:
            frozen[name] = torch.ones_like(weight, dtype=torch.bool)
    with pytest.raises(BadInput, match="PAST needs a free weight of a layer"):
        trained(net, data, PAST(0.5), frozen=frozen)


def test_an_even_gap_is_the_plain_l1_penalty(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All sensitivities are one: each weight comes rate * lambda nearer to zero, and stays there."""
    module = "leak_atlas.training.defences.privacy_sensitivity"
    monkeypatch.setattr(module, lambda gap, free: privacy_sensitivity(torch.ones_like(gap), free))
    schedule = Schedule(1, batch=16, lr=0.05, optimizer="adam")
    plain = copy.deepcopy(net)
    for own, objective in ((plain, CrossEntropy()), (net, PAST(0.4))):
        step = begun(own, data, objective, schedule)
        step.begin(0, 0.05, step.tables(0, 0))
        step(16)
    shrunk = 0
    for name, weight in plain.named_parameters():
        expected = weight.detach()
        if weight.dim() > 1:
            expected = functional.softshrink(expected, 0.05 * 0.4)
            shrunk += int((expected == 0).sum())
        torch.testing.assert_close(net.get_parameter(name).detach(), expected, atol=1e-7, rtol=0)
    assert shrunk > 10


def test_sensitivity_is_the_gradient_of_the_gap(net: Net, data: Resident) -> None:
    """Its mean is one over the free weights; it is the gradient of the difference of both losses."""
    step = begun(net, data, PAST(0.5), Schedule(1, batch=16, lr=1.0, **STILL), frozen="half")
    own = copy.deepcopy(net)
    step.begin(0, 1.0, step.tables(2, 0))

    def error(places: torch.Tensor) -> torch.Tensor:
        index = step.samples[places]
        return functional.cross_entropy(own(augmentation.plain(data, index)), data.labels[index])

    inside, outside = map(error, step.order[0, :, :16])
    weights = dict(own.named_parameters())
    gap = torch.autograd.grad((inside - outside).abs(), [*weights.values()], retain_graph=True)
    descent = torch.autograd.grad(inside, [*weights.values()])
    step(16)
    frozen = masks(net, "half")
    for (name, weight), slope, down in zip(weights.items(), gap, descent, strict=True):
        before = weight.detach()
        after = net.get_parameter(name).detach()
        free = ~frozen[name]
        assert torch.equal(after[~free], before[~free])
        moved = before - down
        if before.dim() > 1:
            gamma = slope.abs() / slope[free].abs().mean()
            moved = moved.sign() * (moved.abs() - 0.5 * gamma).clamp(min=0)
        torch.testing.assert_close(after[free], moved[free], atol=1e-4, rtol=1e-3)


# ---------------------------------------------------------------- class-wise self-distillation


def test_partners_are_other_members_of_the_class(net: Net, data: Resident) -> None:
    sizes = (1, 34, 21)
    data = copy.deepcopy(data)
    shuffled = torch.randperm(56, generator=torch.Generator().manual_seed(0))
    data.labels[shuffled] = torch.arange(3).repeat_interleave(torch.tensor(sizes))
    step = begun(net, data, CSKD())
    met = torch.zeros(56, 56, dtype=torch.bool)
    size = torch.tensor(sizes)[data.labels[MEMBERS]]
    for epoch in range(200):
        place, partner = step.tables(0, epoch).perm.view(2, 56)
        assert torch.equal(data.labels[place], data.labels[partner])
        assert torch.equal(place == partner, size[place] == 1)
        met[place, partner] = True
    others = (size - 1).clamp(min=1)
    assert (met.sum(1) <= others).all()
    assert (met.sum(1) >= 0.9 * others).all()


def test_a_partner_that_is_the_sample_itself_adds_nothing(net: Net, data: Resident) -> None:
    """Both passes are in training mode, so that BatchNorm counts two batches."""
    step = begun(net, data, CSKD(weight=100))
    own = augmentation.tables(0, 0, 56, None)
    step.begin(0, 0.0, augmentation.Tables(*(torch.cat([column, column]) for column in own)))
    step(16)
    assert int(net.stem.norm.num_batches_tracked) == 2
    rows = own.perm[:16]
    with torch.no_grad():
        expected = functional.cross_entropy(net(augmentation.plain(data, rows)), data.labels[rows])
    assert float(step.loss) / 16 == pytest.approx(float(expected), rel=1e-5)


def test_the_teacher_is_the_network_on_the_partners(net: Net, data: Resident) -> None:
    objective = CSKD(2.0, 3.0)
    step = begun(net, data, objective)
    step.begin(0, 0.0, step.tables(0, 0))
    step(16)
    rows, partners = step.order[0, :, :16]
    with torch.no_grad():
        student = net(augmentation.plain(data, rows))
        teacher = net(augmentation.plain(data, partners))
    expected = objectives.class_wise(objective, student, teacher, data.labels[rows])
    assert float(step.loss) / 16 == pytest.approx(float(expected), rel=1e-5)


# ---------------------------------------------------------------- distillation


def test_one_hot_teachers_are_labels(net: Net, data: Resident) -> None:
    soft = trained(net, data, Distillation(), soft=torch.eye(3)[data.labels[MEMBERS]])
    plain = trained(net, data, CrossEntropy())
    np.testing.assert_allclose(soft.history["loss"], plain.history["loss"], rtol=1e-5)
    assert difference(soft.states["last"], plain.states["last"]) < 1e-4


def test_soft_labels_are_of_teachers_that_did_not_train_on_the_sample() -> None:
    posteriors = torch.rand(4, 6, 3, generator=torch.Generator().manual_seed(0)).softmax(2)
    seen = torch.tensor(
        [[1, 0, 0, 1, 0, 1], [1, 1, 0, 0, 0, 1], [0, 1, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]]
    )
    seen = seen.bool()
    posteriors[seen] = torch.nan  # a teacher's posteriors of its own samples are not read
    found = soft_labels(posteriors, seen)
    for i in range(6):
        torch.testing.assert_close(found[i], posteriors[~seen[:, i], i].mean(0))
    seen[:, 0] = True
    with pytest.raises(BadInput, match="1 members were seen by every teacher"):
        soft_labels(posteriors, seen)


# ---------------------------------------------------------------- risky memory regularization


@pytest.mark.parametrize("form", ["paper", "code"])
@pytest.mark.parametrize(("share", "decay"), [(1.0, 0.3), (0.0, 0.02)])
def test_members_that_are_all_alike_have_the_weight_decay_of_all(
    net: Net, data: Resident, share: float, decay: float, form: str
) -> None:
    schedule = dataclasses.replace(SHORT, optimizer="adam", lr=0.003, weight_decay=decay)
    plain = trained(net, data, CrossEntropy(), schedule).states["last"]
    found = trained(net, data, RMR(0.3, 0.02, share, form), schedule).states["last"]
    for name, value in plain.items():
        torch.testing.assert_close(found[name], value, atol=1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize(("first", "decay"), [(0, (14 * 2.0 + 2 * 0.5) / 16), (16, 0.5)])
def test_a_batch_decays_by_the_mean_of_its_members(
    net: Net, data: Resident, first: int, decay: float
) -> None:
    """One step of plain descent: the weights move by -lr (gradient + mean lambda * weight)."""
    schedule = Schedule(1, batch=16, lr=0.1, **STILL)
    ranking = torch.arange(56, 0, -1.0)  # the first 14 members are risky
    in_order = augmentation.tables(0, 0, 56, None)._replace(perm=torch.arange(56))
    ends = []
    for objective in (CrossEntropy(), RMR(2.0, 0.5, share=0.25)):
        own = copy.deepcopy(net)
        step = begun(own, data, objective, schedule, ranking=ranking)
        step.begin(0, 0.1, in_order)
        step.position.fill_(first)
        step(16)
        ends.append(values(own))
    plain, found = ends
    for name, weight in net.named_parameters():
        expected = plain[name] - 0.1 * decay * weight.detach()
        torch.testing.assert_close(found[name], expected, atol=1e-6, rtol=1e-5, msg=name)


def test_a_member_that_is_risky_alone_goes_with_the_others(net: Net, data: Resident) -> None:
    step = begun(net, data, RMR(0.5, 0.01, share=1 / 56, form="code"))
    assert step.batches(0) == [(16, ""), (16, ""), (16, ""), (8, "")]
