"""Steps that need more than the batch: what they draw, what they learn, and what they leave alone."""

import copy
import dataclasses
import math
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
import torch

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net, build
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
    Model,
    Objective,
    RelaxLoss,
    Schedule,
    Slimming,
)
from leak_atlas.training import graph, loop
from leak_atlas.training.defences import (
    Adversarial,
    ClassWise,
    Sparsity,
    sensitivity,
    soft_labels,
    update_for,
)
from leak_atlas.training.frozen import freezing
from leak_atlas.training.loop import Diverged
from leak_atlas.training.update import Task
from tests.training.test_plans import rehearsing, same
from tests.training.test_update import MEMBERS, OTHERS, RANKING, REFERENCE, masks

SHORT = Schedule(3, batch=16, lr=0.05)
SOFT = torch.rand(56, 3, generator=torch.Generator().manual_seed(0)).softmax(1)
DEFENCES = {
    "adversarial": AdversarialRegularization(steps=2, width=32),
    "one-step": AdversarialRegularization(steps=2, width=32, form="one_step"),
    "slimming": Slimming(1e-2),
    "balancing": PPB(),
    "sparsity": PAST(0.1),
    "class-wise": CSKD(),
    "distillation": Distillation(),
    "remembered": RMR(0.5),
    "remembered, apart": RMR(0.5, form="code"),
}
defences = pytest.mark.parametrize("objective", DEFENCES.values(), ids=DEFENCES)
fit = partial(loop.fit, samples=OTHERS, soft=SOFT, ranking=RANKING)


def adversarial(
    net: Net, data: Resident, objective: AdversarialRegularization, schedule: Schedule
) -> Adversarial:
    with freezing(net, {}) as hold:
        step = update_for(objective, Task(net, hold, data, MEMBERS, schedule, "fp32", 0, OTHERS))
    assert isinstance(step, Adversarial)
    return step


# ---------------------------------------------------------------- all of them


@defences
@pytest.mark.parametrize("augment", [None, Augment(1)], ids=["plain", "augmented"])
def test_the_same_seed_gives_the_same_bits(
    net: Net, data: Resident, objective: Objective, augment: Augment | None
) -> None:
    schedule = Schedule(2, batch=16, lr=0.05, augment=augment)
    first, second, other = (
        fit(copy.deepcopy(net), data, MEMBERS, schedule, objective, seed=s) for s in (1, 1, 2)
    )
    assert same(first, second) and not same(first, other)
    assert not same(first, fit(net, data, MEMBERS, schedule, CrossEntropy(), seed=1))


@defences
@pytest.mark.parametrize("frozen", ["nothing", "parts", "half"])
def test_a_recording_changes_nothing(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch, objective: Objective, frozen: str
) -> None:
    monkeypatch.setattr(graph, "record", rehearsing)
    options = {"frozen": masks(net, frozen), "seed": 3, "wanted": ("init", 1)}
    found = [
        fit(copy.deepcopy(net), data, MEMBERS, SHORT, objective, plan=p, **options)
        for p in ("eager", "graph")
    ]
    assert same(*found)


@defences
@pytest.mark.parametrize("augment", [None, Augment(1)], ids=["plain", "augmented"])
@pytest.mark.parametrize("frozen", ["parts", "half"])
def test_what_is_held_keeps_its_bits(
    net: Net, data: Resident, objective: Objective, frozen: str, augment: Augment | None
) -> None:
    # so that weights and statistics are not those of a fresh net
    fit(net, data, MEMBERS, SHORT, seed=0)
    mask, before = (
        masks(net, frozen),
        {name: value.clone() for name, value in net.state_dict().items()},
    )
    schedule = Schedule(3, batch=16, lr=0.05, augment=augment)
    after = fit(net, data, MEMBERS, schedule, objective, seed=1, frozen=mask).states["last"]
    assert mask and all(
        torch.equal(before[name][keep], after[name][keep]) for name, keep in mask.items()
    )
    assert not torch.equal(before["head.fc.weight"], after["head.fc.weight"])


@defences
def test_kept_features_are_the_eager_path(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch, objective: Objective
) -> None:
    other, frozen = copy.deepcopy(net), masks(net, "parts")
    kept = fit(net, data, MEMBERS, SHORT, objective, seed=1, frozen=frozen).states["last"]
    monkeypatch.setattr("leak_atlas.training.update.CACHE", 0)
    eager = fit(other, data, MEMBERS, SHORT, objective, seed=1, frozen=frozen).states["last"]
    assert max(float((kept[name] - value).abs().max()) for name, value in eager.items()) < 1e-4


@defences
def test_divergence_is_told(net: Net, data: Resident, objective: Objective) -> None:
    with pytest.raises(Diverged, match="epoch"):
        fit(net, data, MEMBERS, Schedule(6, batch=16, lr=1e30, decay="constant"), objective, seed=0)


def test_what_is_lacking_is_named(net: Net, data: Resident) -> None:
    for objective in (AdversarialRegularization(), PAST()):
        with pytest.raises(BadInput, match="reference"):
            loop.fit(net, data, MEMBERS, SHORT, objective, seed=0)
    for soft in (None, SOFT[:-1]):
        with pytest.raises(BadInput, match="soft label"):
            loop.fit(net, data, MEMBERS, SHORT, Distillation(), seed=0, soft=soft)


# ---------------------------------------------------------------- adversarial regularization


def test_its_outsiders_may_be_dev_samples(net: Net, data: Resident) -> None:
    own = {"dev": OTHERS["reference"]}
    asked = [
        (AdversarialRegularization(width=32), OTHERS),
        (AdversarialRegularization(width=32, outsiders="dev"), own),
    ]
    one, other = (
        loop.fit(copy.deepcopy(net), data, MEMBERS, SHORT, o, seed=0, samples=s) for o, s in asked
    )
    assert same(one, other)
    with pytest.raises(BadInput, match="dev samples"):
        fit(net, data, MEMBERS, SHORT, AdversarialRegularization(outsiders="dev"), seed=0)


@pytest.mark.parametrize("augment", [None, Augment(1)], ids=["plain", "augmented"])
def test_without_weight_it_is_cross_entropy_bit_for_bit(
    net: Net, data: Resident, augment: Augment | None
) -> None:
    schedule = Schedule(3, batch=16, lr=0.05, augment=augment)
    plain = fit(copy.deepcopy(net), data, MEMBERS, schedule, CrossEntropy(), seed=1)
    assert same(
        plain,
        fit(net, data, MEMBERS, schedule, AdversarialRegularization(alpha=0, width=32), seed=1),
    )


def test_a_constant_h_adds_no_gradient(net: Net, data: Resident) -> None:
    """A last layer of zeros says one half of everything: the loss and the weights' gradient are
    cross-entropy's.
    """
    gradients = []
    for objective in (CrossEntropy(), AdversarialRegularization(alpha=50, width=32)):
        own = copy.deepcopy(net)
        with freezing(own, {}) as hold:
            step = update_for(objective, Task(own, hold, data, MEMBERS, SHORT, "fp32", 0, OTHERS))
        if isinstance(step, Adversarial):
            step.h_optimizer.param_groups[0]["lr"].zero_()
            torch.nn.init.zeros_(step.h.out.weight)
        step.begin(0, 0.0, step.tables(0, 0))
        step(16)
        gradients.append([parameter.grad for parameter in own.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_the_classifier_learns_to_look_like_no_member(net: Net, data: Resident) -> None:
    """Against an h that stands still, the gain on members falls with its weight."""
    says = []
    for alpha in (0.0, 5.0, 50.0):
        own = copy.deepcopy(net)
        with freezing(own, {}) as hold:
            objective = AdversarialRegularization(alpha, width=256)
            step = update_for(objective, Task(own, hold, data, MEMBERS, SHORT, "fp32", 0, OTHERS))
            assert isinstance(step, Adversarial)
            step.h_optimizer.param_groups[0]["lr"].zero_()
            for epoch in range(8):
                step.begin(epoch, 0.02, step.tables(1, epoch))
                for size in (28, 28):
                    step(size)
        with torch.no_grad():
            posterior = own.eval()(augmentation.plain(data, MEMBERS)).softmax(1)
            says.append(float(step.h(posterior, torch.eye(3)[data.labels[MEMBERS]]).mean()))
    assert says[0] > says[1] > says[2]


def test_h_learns_who_is_a_member(data: Resident, net: Net) -> None:
    """Labels drawn at random can only be learnt by heart: members are then told from reference
    samples by posterior.
    """
    noise = torch.Generator().manual_seed(1)
    data = copy.deepcopy(data)
    data.labels = torch.randint(3, (96,), generator=noise)
    loop.fit(net, data, MEMBERS, Schedule(60, batch=28, lr=0.1), seed=0)
    step = adversarial(
        net, data, AdversarialRegularization(alpha=0.0, width=256), Schedule(1, batch=28)
    )

    def told() -> float:
        with torch.no_grad():
            index = torch.cat([MEMBERS, REFERENCE])
            posterior = net.eval()(augmentation.plain(data, index)).softmax(1)
            says = (
                step.h(posterior, torch.nn.functional.one_hot(data.labels[index], 3).float()) > 0.5
            )
        return (float(says[:56].float().mean()) + float((~says[56:]).float().mean())) / 2

    for epoch in range(40):
        step.begin(epoch, 0.0, step.tables(0, epoch))  # the classifier stands still
        step(28)
        step(28)
    # Of 16 reference samples a guess has more than 13 right (one in 500), or errs on members.
    assert told() > 0.85


def test_what_h_looks_at(net: Net, data: Resident) -> None:
    step = adversarial(net, data, AdversarialRegularization(steps=3, width=32), SHORT)
    first, again, later = step.tables(5, 0), step.tables(5, 0), step.tables(5, 1)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    members, others = first.perm[56 : 4 * 56].view(3, 56), first.perm[4 * 56 :]
    assert torch.equal(members.sort(dim=1).values, torch.arange(56).expand(3, 56))
    counts = (others - 56).bincount(minlength=16)
    assert len(counts) == 16 and counts.max() - counts.min() <= 1, (
        "each reference sample as often as any other"
    )
    assert not torch.equal(first.perm[56:], later.perm[56:])
    plain = augmentation.tables(5, 0, 56, None)
    assert torch.equal(first.perm[:56], plain.perm), (
        "the classifier's order is that of any other objective"
    )
    step.begin(0, 0.0, first)
    assert torch.equal(step.beside(16)[0], first.perm[56:].view(6, 56)[:, :16])


def test_looking_moves_no_statistics(net: Net, data: Resident) -> None:
    step = adversarial(net, data, AdversarialRegularization(width=32), SHORT)
    step.begin(0, 0.0, step.tables(0, 0))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    step.prepare(16)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert net.training


def test_one_step_is_a_single_classifier_step_an_epoch(net: Net, data: Resident) -> None:
    step = adversarial(net, data, DEFENCES["one-step"], SHORT)
    assert [step.batches(epoch) for epoch in range(3)] == [[(16, "")]] * 3
    found = fit(net, data, MEMBERS, SHORT, DEFENCES["one-step"], seed=0)
    assert found.history["loss"].shape == (3,) and found.history["accuracy"].max() <= 1


def test_the_pruning_codes_attacker_descends_alpha_times_the_cross_entropy(
    net: Net, data: Resident
) -> None:
    objective = AdversarialRegularization(2.0, steps=7, width=32, form="code")
    step = adversarial(net, data, objective, SHORT)
    says, member = torch.tensor([0.2, 0.9]), torch.tensor([0.0, 1.0])
    assert float(step.error(says, member)) == pytest.approx(-math.log(0.8) - math.log(0.9))
    assert [step.batches(epoch) for epoch in range(3)] == [[(16, "")]] * 3
    assert objective.looks == 14 and same(
        *(fit(copy.deepcopy(net), data, MEMBERS, SHORT, objective, seed=0),) * 2
    )


def test_the_inference_net_is_the_published_one() -> None:
    assert AdversarialRegularization().units(100) == (
        (100, 1024, 512, 64),
        (100, 128, 64),
        (128, 512, 256, 128, 64),
    )
    net = InferenceNet(100, seed=0)
    posterior, label = torch.full((2, 100), 0.01), torch.eye(100)[:2]
    assert (
        net(posterior, label).shape == (2,)
        and ((net(posterior, label) > 0) & (net(posterior, label) < 1)).all()
    )
    weights = sum(
        value.numel() for name, value in net.named_parameters() if name.endswith("weight")
    )
    assert (
        weights
        == sum(
            a * b for units in AdversarialRegularization().units(100) for a, b in pairwise(units)
        )
        + 64
    )


# ---------------------------------------------------------------- sparse scales


def test_the_penalty_on_scales_is_the_sum_of_their_sizes(net: Net, data: Resident) -> None:
    scales = {
        name: value
        for name, value in net.named_parameters()
        if "norm" in name and name.endswith("weight")
    }
    with torch.no_grad():
        for value in scales.values():
            value.copy_(torch.linspace(-1, 1, len(value)))
            value[0] = 0
    plain, total = (
        copy.deepcopy(net),
        sum(float(value.detach().abs().sum()) for value in scales.values()),
    )
    schedule = Schedule(1, batch=56, lr=0.1, momentum=0.0, weight_decay=0.0)
    ends = [
        fit(n, data, MEMBERS, schedule, o, seed=0)
        for n, o in ((net, Slimming(0.5)), (plain, CrossEntropy()))
    ]
    penalised, without = (end.states["last"] for end in ends)
    assert torch.equal(penalised["stem.conv.weight"], without["stem.conv.weight"])
    for name in scales:
        sign = torch.linspace(-1, 1, len(without[name])).sign()
        sign[0] = 0
        torch.testing.assert_close(penalised[name], without[name] - 0.1 * 0.5 * sign)
    losses = [float(end.history["loss"][0]) for end in ends]
    assert len(scales) == 12 and losses[0] - losses[1] == pytest.approx(0.5 * total, rel=1e-5)


def test_slimming_makes_scales_small_and_needs_some(net: Net, data: Resident) -> None:
    def scales(objective: Objective) -> float:
        found = fit(
            copy.deepcopy(net), data, MEMBERS, Schedule(10, 16, lr=0.05), objective, seed=0
        ).states["last"]
        return sum(
            float(v.abs().sum()) for n, v in found.items() if "norm" in n and n.endswith("weight")
        )

    assert scales(Slimming(0.05)) < 0.8 * scales(Slimming(0.0)) == 0.8 * scales(CrossEntropy())
    with pytest.raises(BadInput, match="needs a network with BatchNorm"):
        fit(build(Model("vit", width=1), 1, 3, 0, 8), data, MEMBERS, SHORT, Slimming(), seed=0)


# ---------------------------------------------------------------- privacy-aware sparsity


def sparse(
    net: Net, data: Resident, objective: PAST, schedule: Schedule = SHORT, frozen: str = "nothing"
) -> Sparsity:
    with freezing(net, masks(net, frozen)) as hold:
        step = update_for(objective, Task(net, hold, data, MEMBERS, schedule, "fp32", 0, OTHERS))
    assert isinstance(step, Sparsity)
    return step


@pytest.mark.parametrize("augment", [None, Augment(1)], ids=["plain", "augmented"])
def test_a_penalty_without_weight_is_cross_entropy_bit_for_bit(
    net: Net, data: Resident, augment: Augment | None
) -> None:
    schedule = Schedule(3, batch=16, lr=0.05, augment=augment)
    plain = fit(copy.deepcopy(net), data, MEMBERS, schedule, CrossEntropy(), seed=1)
    assert same(plain, fit(net, data, MEMBERS, schedule, PAST(0), seed=1))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_where_there_is_no_gap_nothing_shrinks(net: Net, data: Resident, optimizer: str) -> None:
    """Reference samples that are the members of the batch: both losses are one, and so are their
    gradients.
    """
    schedule = Schedule(2, batch=28, lr=0.01, optimizer=optimizer)
    plain, heavy = copy.deepcopy(net), net
    for own, objective in ((plain, CrossEntropy()), (heavy, PAST(1e3))):
        with freezing(own, {}) as hold:
            step = update_for(
                objective, Task(own, hold, data, MEMBERS, schedule, "fp32", 0, OTHERS)
            )
            tables = augmentation.tables(0, 0, 56, None)
            twice = augmentation.Tables(
                *(torch.cat([column] * (1 + objective.looks)) for column in tables)
            )
            step.begin(0, 0.01, twice)
            step(28)
            step(28)
    assert all(
        torch.equal(value, heavy.state_dict()[name]) for name, value in plain.state_dict().items()
    )


def test_an_even_gap_is_the_plain_l1_penalty(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All sensitivities are one: each weight comes rate * lambda nearer to zero, and stays there."""
    monkeypatch.setattr(
        "leak_atlas.training.defences.sensitivity",
        lambda gap, free: sensitivity(torch.ones_like(gap), free),
    )
    plain, schedule = copy.deepcopy(net), Schedule(1, batch=16, lr=0.05, optimizer="adam")
    for own, objective in ((plain, CrossEntropy()), (net, PAST(0.4))):
        with freezing(own, {}) as hold:
            step = update_for(
                objective, Task(own, hold, data, MEMBERS, schedule, "fp32", 0, OTHERS)
            )
            step.begin(0, 0.05, step.tables(0, 0))
            step(16)
    shrunk = 0
    for name, weight in plain.named_parameters():
        expected = weight.detach()
        if weight.dim() > 1:
            expected = torch.nn.functional.softshrink(expected, 0.05 * 0.4)
            shrunk += int((expected == 0).sum())
        torch.testing.assert_close(net.get_parameter(name).detach(), expected, atol=1e-7, rtol=0)
    assert shrunk > 10


def test_sensitivity_is_the_gradient_of_the_gap(net: Net, data: Resident) -> None:
    """Of mean one over the weights that may move, larger where the losses of members and others
    part.
    """
    step = sparse(
        net,
        data,
        PAST(0.5),
        Schedule(1, batch=16, lr=1.0, momentum=0.0, weight_decay=0.0),
        frozen="half",
    )
    own = copy.deepcopy(net)
    step.begin(0, 1.0, step.tables(2, 0))
    members, others = step.order[0, :, :16]
    losses = []
    for place in (members, others):
        index = step.samples[place]
        losses.append(
            torch.nn.functional.cross_entropy(
                own(augmentation.plain(data, index)), data.labels[index]
            )
        )
    weights = dict(own.named_parameters())
    gap = torch.autograd.grad(
        (losses[0] - losses[1]).abs(), list(weights.values()), retain_graph=True
    )
    descent = torch.autograd.grad(losses[0], list(weights.values()))
    step(16)
    frozen = masks(net, "half")
    for (name, before), difference, slope in zip(weights.items(), gap, descent, strict=True):
        after, free = net.get_parameter(name).detach(), ~frozen[name]
        assert torch.equal(after[~free], before.detach()[~free])
        moved = before.detach() - slope
        if before.dim() > 1:
            gamma = difference.abs() / difference[free].abs().mean()
            moved = moved.sign() * (moved.abs() - 0.5 * gamma).clamp(min=0)
        torch.testing.assert_close(after[free], moved[free], atol=1e-4, rtol=1e-3)


def test_sensitivity_of_what_does_not_matter_is_zero() -> None:
    gap, free = (
        torch.tensor([[2.0, -4.0], [0.0, 100.0]]),
        torch.tensor([[True, True], [True, False]]),
    )
    torch.testing.assert_close(sensitivity(gap, free), torch.tensor([[1.0, 2.0], [0.0, 0.0]]))
    assert not sensitivity(torch.zeros(2, 2), free).any()
    torch.testing.assert_close(
        sensitivity(torch.full((3,), -7.0), torch.ones(3).bool()), torch.ones(3)
    )


def test_a_heavier_penalty_leaves_fewer_weights(net: Net, data: Resident) -> None:
    def zeros(weight: float) -> float:
        last = fit(copy.deepcopy(net), data, MEMBERS, SHORT, PAST(weight), seed=1).states["last"]
        return float(
            torch.cat([value.flatten() for value in last.values() if value.dim() > 1])
            .eq(0)
            .float()
            .mean()
        )

    # Corners of a 3x3 kernel on a map of one pixel meet padding alone: no gap depends on them, and
    # they stay.
    assert zeros(0) == 0 and 0.01 < zeros(0.1) < zeros(1)


def test_reference_samples_leave_no_trace_in_the_statistics(net: Net, data: Resident) -> None:
    step = sparse(net, data, PAST())
    step.begin(0, 0.0, step.tables(0, 0))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    step.prepare(16)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert all(m.track_running_stats for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d))
    step(16)
    assert not torch.equal(
        before["stem.norm.running_mean"], net.state_dict()["stem.norm.running_mean"]
    )


def test_all_reference_samples_are_asked_alike(net: Net, data: Resident) -> None:
    step = sparse(net, data, PAST(), Schedule(1, batch=16, augment=Augment(1)))
    first, later = step.tables(5, 0), step.tables(5, 1)
    counts = (first.perm[56:] - 56).bincount(minlength=16)
    assert len(counts) == 16 and counts.max() - counts.min() <= 1
    assert not torch.equal(first.perm[56:], later.perm[56:]) and not torch.equal(
        first.dy[:56], first.dy[56:]
    )
    own = augmentation.tables(5, 0, 56, Augment(1))
    assert all(torch.equal(a[:56], b) for a, b in zip(first, own, strict=True))


# ---------------------------------------------------------------- class-wise self-distillation


@pytest.mark.parametrize("sizes", [(20, 30, 6), (1, 54, 1)])
def test_partners_are_other_members_of_the_class(
    net: Net, data: Resident, sizes: tuple[int, ...]
) -> None:
    data = copy.deepcopy(data)
    shuffled = torch.randperm(56, generator=torch.Generator().manual_seed(0))
    data.labels[shuffled] = torch.arange(3).repeat_interleave(torch.tensor(sizes))
    with freezing(net, {}) as hold:
        step = update_for(CSKD(), Task(net, hold, data, MEMBERS, SHORT, "fp32", 0))
    assert isinstance(step, ClassWise)
    met: list[set[int]] = [set() for _ in range(56)]
    for epoch in range(300):
        place, partner = step.tables(0, epoch).perm.view(2, 56)
        assert torch.equal(data.labels[place], data.labels[partner])
        alone = torch.tensor([sizes[label] == 1 for label in data.labels[place].tolist()])
        assert torch.equal(place == partner, alone)
        for a, b in zip(place.tolist(), partner.tolist(), strict=True):
            met[a].add(b)
    others = [max(sizes[label] - 1, 1) for label in data.labels[MEMBERS].tolist()]
    assert all(0.9 * n <= len(partners) <= n for n, partners in zip(others, met, strict=True)), (
        "each has a chance"
    )


def test_a_partner_that_is_the_sample_itself_adds_nothing(net: Net, data: Resident) -> None:
    with freezing(net, {}) as hold:
        step = update_for(CSKD(weight=100), Task(net, hold, data, MEMBERS, SHORT, "fp32", 0))
        own = augmentation.tables(0, 0, 56, None)
        step.begin(0, 0.0, augmentation.Tables(*(torch.cat([column, column]) for column in own)))
        step(16)
        loss = float(step.loss) / 16
        with torch.no_grad():
            logits = net(augmentation.plain(data, own.perm[:16]))
    assert loss == pytest.approx(
        float(torch.nn.functional.cross_entropy(logits, data.labels[own.perm[:16]])), rel=1e-5
    )


def test_both_passes_are_in_training_mode(net: Net, data: Resident) -> None:
    with freezing(net, {}) as hold:
        step = update_for(CSKD(), Task(net, hold, data, MEMBERS, SHORT, "fp32", 0))
        step.begin(0, 0.0, step.tables(0, 0))
        before = int(net.stem.norm.num_batches_tracked)
        step(16)
    assert int(net.stem.norm.num_batches_tracked) == before + 2


# ---------------------------------------------------------------- distillation


def test_one_hot_teachers_are_labels(net: Net, data: Resident) -> None:
    hot = torch.nn.functional.one_hot(data.labels[MEMBERS], 3).float()
    soft = loop.fit(copy.deepcopy(net), data, MEMBERS, SHORT, Distillation(), seed=1, soft=hot)
    plain = loop.fit(net, data, MEMBERS, SHORT, CrossEntropy(), seed=1)
    np.testing.assert_allclose(soft.history["loss"], plain.history["loss"], rtol=1e-5)
    last = [found.states["last"] for found in (soft, plain)]
    assert max(float((last[0][name] - value).abs().max()) for name, value in last[1].items()) < 1e-4


def test_soft_labels_are_of_those_who_never_saw_the_sample() -> None:
    posteriors = torch.rand(4, 6, 3, generator=torch.Generator().manual_seed(0)).softmax(2)
    seen = torch.tensor(
        [[1, 0, 0, 1, 0, 1], [1, 1, 0, 0, 0, 1], [0, 1, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]]
    ).bool()
    posteriors[seen] = torch.nan  # what a teacher says of its own samples is not even looked at
    found = soft_labels(posteriors, seen)
    for i in range(6):
        torch.testing.assert_close(found[i], posteriors[~seen[:, i], i].mean(0))
    torch.testing.assert_close(found.sum(1), torch.ones(6))
    with pytest.raises(BadInput, match="1 members were seen by every teacher"):
        soft_labels(posteriors, seen | torch.tensor([True] + 5 * [False]))


def test_other_objectives_ignore_what_they_do_not_need(net: Net, data: Resident) -> None:
    given = fit(copy.deepcopy(net), data, MEMBERS, SHORT, RelaxLoss(0.5), seed=1)
    assert same(given, loop.fit(net, data, MEMBERS, SHORT, RelaxLoss(0.5), seed=1))


# ---------------------------------------------------------------- risky memory regularization


@pytest.mark.parametrize("form", ["paper", "code"])
@pytest.mark.parametrize(
    "by", [{"share": 1.0}, {"tau": -1.0}, {"share": 0.0}, {"tau": 2.0}], ids=str
)
def test_members_that_are_all_alike_have_the_weight_decay_of_all(
    net: Net, data: Resident, by: dict[str, float], form: Literal["paper", "code"]
) -> None:
    decay = 0.3 if by in ({"share": 1.0}, {"tau": -1.0}) else 0.02
    plain, schedule = (
        copy.deepcopy(net),
        dataclasses.replace(SHORT, optimizer="adam", lr=0.003, weight_decay=decay),
    )
    ends = [
        fit(n, data, MEMBERS, schedule, o, seed=0).states["last"]
        for n, o in ((plain, CrossEntropy()), (net, RMR(0.3, 0.02, form=form, **by)))
    ]
    for name, value in ends[0].items():
        torch.testing.assert_close(ends[1][name], value, atol=1e-4, rtol=1e-3, msg=name)


def test_a_batch_decays_by_the_mean_of_its_members(net: Net, data: Resident) -> None:
    """One step of plain descent: the weights move by -lr (gradient + mean lambda * weight)."""
    schedule = Schedule(1, batch=56, lr=0.1, momentum=0.0, weight_decay=0.0)
    before = {name: value.clone() for name, value in net.named_parameters()}
    plain = fit(copy.deepcopy(net), data, MEMBERS, schedule, CrossEntropy(), seed=0).states["last"]
    ends = [
        fit(copy.deepcopy(net), data, MEMBERS, schedule, o, seed=0).states["last"]
        for o in (RMR(2.0, 0.5, share=0.25), RMR(2.0, 0.5, tau=float(RANKING.sort().values[42])))
    ]
    for end in ends:
        for name, value in before.items():
            expected = plain[name] - 0.1 * (0.25 * 2.0 + 0.75 * 0.5) * value.detach()
            torch.testing.assert_close(end[name], expected, atol=1e-6, rtol=1e-5, msg=name)


def test_a_member_that_is_risky_alone_goes_with_the_others(net: Net, data: Resident) -> None:
    alone = RMR(0.5, 0.01, tau=float(RANKING.max()), form="code")
    with freezing(net, {}) as hold:
        step = update_for(alone, Task(net, hold, data, MEMBERS, SHORT, "fp32", 0, ranking=RANKING))
    assert [tuple(batch) for batch in step.batches(0)] == [(16, ""), (16, ""), (16, ""), (8, "")]
    with pytest.raises(BadInput, match="each member"):
        loop.fit(net, data, MEMBERS, SHORT, RMR(), seed=0)
