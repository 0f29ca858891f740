"""Losses and their gradients against closed forms."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from leak_atlas.recipe import (
    CCL,
    CSKD,
    HAMP,
    PPB,
    AdversarialRegularization,
    CrossEntropy,
    Objective,
    RelaxLoss,
)
from leak_atlas.training import objectives

LABELS = torch.tensor([0, 1, 2, 0])
LOGITS = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
PLAIN = functional.cross_entropy(LOGITS, LABELS)
close = torch.testing.assert_close


def loss(
    objective: Objective, logits: Tensor = LOGITS, labels: Tensor = LABELS, epoch: int = 0
) -> Tensor:
    return objectives.loss(objective, logits, labels, torch.tensor(epoch))


def gradient(objective: Objective, logits: Tensor, labels: Tensor, epoch: int = 0) -> Tensor:
    leaf = logits.clone().requires_grad_()
    loss(objective, leaf, labels, epoch).backward()
    return leaf.grad


# ---------------------------------------------------------------- RelaxLoss


def at_loss(value: float) -> tuple[Tensor, Tensor]:
    """Logits whose cross-entropy is `value` for every sample: the true logit stands out from equal
    others.
    """
    p = math.exp(-value)
    return functional.one_hot(LABELS, 3) * math.log(2 * p / (1 - p)), LABELS


@pytest.mark.parametrize(("epoch", "level", "sign"), [(0, 2.0, 1.0), (0, 0.5, -1.0), (1, 2.0, 1.0)])
def test_epochs_descend_above_alpha_and_even_ones_ascend_below(
    epoch: int, level: float, sign: float
) -> None:
    logits, labels = at_loss(level)
    found = gradient(RelaxLoss(1.0), logits, labels, epoch)
    close(found, sign * gradient(CrossEntropy(), logits, labels))
    expected = level if epoch else abs(level - 1.0)
    assert float(loss(RelaxLoss(1.0), logits, labels, epoch)) == pytest.approx(expected, abs=1e-6)


def test_at_alpha_nothing_moves() -> None:
    logits = torch.zeros(4, 2)
    labels = torch.tensor([0, 1, 0, 1])
    alpha = float(functional.cross_entropy(logits, labels))
    assert not gradient(RelaxLoss(alpha), logits, labels).any()


def test_flattening_leaves_the_true_logit_alone() -> None:
    """The gradient moves each wrong class to an equal share of the rest."""
    found = gradient(RelaxLoss(5.0), LOGITS, LABELS, epoch=1)
    p = LOGITS.softmax(1)
    rest = (1 - p.gather(1, LABELS[:, None])) / 2
    wrong = 1 - functional.one_hot(LABELS, 3)
    close(found, wrong * (p - rest) / 4)


def test_extreme_logits_have_finite_gradients() -> None:
    logits = torch.tensor([[120.0, -120.0], [-1e4, 1e4]])
    labels = torch.tensor([0, 0])
    for objective in (RelaxLoss(1.0), RelaxLoss(1e6), HAMP(), HAMP(0), CCL(), PPB()):
        for epoch in (0, 1):
            assert gradient(objective, logits, labels, epoch).isfinite().all()


# ---------------------------------------------------------------- high-entropy labels


@pytest.mark.parametrize(
    ("share", "classes", "grid"),
    [(0.95, 10, 26), (0.5, 100, 64), (0.5, 30, 68)],
)
def test_a_soft_label_has_its_entropy(share: float, classes: int, grid: int) -> None:
    """Published strengths: CIFAR-10, CIFAR-100, Location, and what the codes' grid
    makes of them.
    """
    p = objectives.soft_label(share, classes)
    assert math.floor(100 * p) == grid
    entropy = -p * math.log(p) - (1 - p) * math.log((1 - p) / (classes - 1))
    assert entropy == pytest.approx(share * math.log(classes), rel=1e-12)


def test_the_softest_and_the_hardest_label() -> None:
    close(loss(HAMP(0, weight=0)), PLAIN)
    close(loss(HAMP(1, weight=0)), -(LOGITS.log_softmax(1) + math.log(3)).mean(1).mean())


def test_the_output_is_rewarded_for_its_entropy() -> None:
    p = LOGITS.softmax(1)
    entropy = -(p * p.log()).sum(1).mean()
    close(loss(HAMP(0.7, weight=3)), loss(HAMP(0.7, weight=0)) - 3 * entropy)


# ---------------------------------------------------------------- the convex-concave loss


@given(st.floats(0, 1), st.floats(0.01, 10), st.floats(0, 20), st.integers(0, 100))
def test_its_gradient_is_cross_entropys_times_a_weight_of_the_confidence(
    alpha: float, beta: float, scale: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(4, 3, generator=generator, dtype=torch.float64)
    p = logits.softmax(1)
    own = p.gather(1, LABELS[:, None])
    weight = alpha + (1 - alpha) * own * own.exp()
    expected = beta * weight * (p - functional.one_hot(LABELS, 3)) / 4
    close(gradient(CCL(alpha, beta), logits, LABELS), expected, atol=1e-12, rtol=0)


def test_the_convex_part_is_cross_entropy_and_a_certain_sample_has_the_lowest_loss() -> None:
    assert loss(CCL(1, 1)) == PLAIN
    lowest = loss(CCL(0.5, 0.05), torch.tensor([[80.0, 0.0, 0.0]]), torch.tensor([0]))
    assert float(lowest) == pytest.approx(-0.05 * 0.5 * math.e)


# ---------------------------------------------------------------- PPB


def test_rows_that_differ_by_the_order_of_classes_are_balanced() -> None:
    row = torch.tensor([2.0, -1.0, 0.5])
    logits = torch.stack([row, row[[1, 2, 0]], row[[2, 0, 1]], row.flip(0)])
    assert loss(PPB(16.0), logits) == functional.cross_entropy(logits, LABELS)


def test_two_classes_by_hand() -> None:
    """KL of (.9, .1) from (.6, .4), whichever class is the larger one; five samples make two pairs."""
    p = math.log(0.6 / 0.4)
    q = math.log(0.9 / 0.1)
    logits = torch.tensor([[p, 0.0], [1.0, 1.0], [0.0, q], [1.0, 1.0], [7.0, 0.0]])
    labels = torch.tensor([0, 1, 0, 1, 1])
    divergence = 0.9 * math.log(0.9 / 0.6) + 0.1 * math.log(0.1 / 0.4)
    found = loss(PPB(3.0), logits, labels) - functional.cross_entropy(logits, labels)
    assert float(found) == pytest.approx(3 * divergence / 2, rel=1e-5)


def test_both_sides_of_a_pair_are_moved_and_a_single_sample_is_in_none() -> None:
    logits = torch.cat([LOGITS, LOGITS[:1]])
    labels = torch.tensor([0, 1, 2, 0, 1])
    moved = gradient(PPB(), logits, labels) - gradient(CrossEntropy(), logits, labels)
    assert (moved[:4].abs().amax(dim=1) > 1e-3).all()
    assert not moved[4].any()
    assert loss(PPB(), LOGITS[:1], LABELS[:1]) == loss(CrossEntropy(), LOGITS[:1], LABELS[:1])


# ---------------------------------------------------------------- defences that need more than the batch


def test_distillation_is_cross_entropy_for_one_hot_teachers_and_still_at_the_teacher() -> None:
    close(objectives.distillation(LOGITS, functional.one_hot(LABELS, 3).float()), PLAIN)
    leaf = LOGITS.clone().requires_grad_()
    objectives.distillation(leaf, LOGITS.softmax(1)).backward()
    close(leaf.grad, torch.zeros(4, 3), atol=1e-7, rtol=0)


@pytest.mark.parametrize("gap", [120.0, 1e4])
def test_distillation_survives_any_gap(gap: float) -> None:
    """The published form, the logarithm of a softmax, is infinite here."""
    soft = torch.tensor([[0.25, 0.5, 0.25]])
    leaf = torch.tensor([[gap, 0.0, 0.0]]).requires_grad_()
    assert (-(soft * leaf.softmax(1).log()).sum()).isinf()
    value = objectives.distillation(leaf, soft)
    value.backward()
    assert float(value.detach()) == pytest.approx(0.75 * gap)
    close(leaf.grad, torch.tensor([[0.75, -0.5, -0.25]]))


def test_class_wise_is_cross_entropy_and_a_divergence() -> None:
    teacher = LOGITS.flip(0)
    close(objectives.class_wise(CSKD(weight=7), LOGITS, LOGITS, LABELS), PLAIN)
    q = (teacher / 2).softmax(1)
    p = (LOGITS / 2).softmax(1)
    expected = PLAIN + 3 * 4 * (q * (q / p).log()).sum(1).mean()
    close(objectives.class_wise(CSKD(2.0, 3.0), LOGITS, teacher, LABELS), expected)


def test_class_wise_sends_no_gradient_to_the_teacher() -> None:
    student = LOGITS.clone().requires_grad_()
    teacher = LOGITS.clone().requires_grad_()
    objectives.class_wise(CSKD(), student, teacher, LABELS).backward()
    assert student.grad is not None
    assert teacher.grad is None


def test_the_gain_is_the_mean_membership_less_a_half() -> None:
    membership = torch.tensor([0.9, 0.7, 0.8, 1.0])
    half = torch.full((4,), 0.5)

    def value(membership: Tensor, objective: AdversarialRegularization) -> Tensor:
        return objectives.adversarial(objective, LOGITS, LABELS, membership)

    close(value(membership, AdversarialRegularization(2.0)), PLAIN + 2 * 0.35)
    assert value(half, AdversarialRegularization(9.0, form="one_step")) == PLAIN
