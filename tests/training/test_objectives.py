"""Losses and their gradients against closed forms."""

import math
from typing import Any

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


def loss(objective: Objective, logits: Tensor, labels: Tensor, epoch: int) -> Tensor:
    return objectives.loss(objective, logits, labels, torch.tensor(epoch))


def gradient(objective: Objective, logits: Tensor, labels: Tensor, epoch: int) -> Tensor:
    leaf = logits.clone().requires_grad_()
    loss(objective, leaf, labels, epoch).backward()
    return leaf.grad


def at_loss(value: float, n: int = 4, classes: int = 3) -> tuple[Tensor, Tensor]:
    """Logits whose cross-entropy is `value` for every sample: the true logit stands out from equal
    others.
    """
    p = math.exp(-value)
    logits = torch.zeros(n, classes)
    labels = torch.arange(n) % classes
    logits[torch.arange(n), labels] = math.log(p * (classes - 1) / (1 - p))
    return logits, labels


def test_cross_entropy_and_smoothing() -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    assert loss(CrossEntropy(), logits, LABELS, 0) == functional.cross_entropy(logits, LABELS)
    soft = 0.9 * functional.one_hot(LABELS, 3) + 0.1 / 3
    expected = -(soft * logits.log_softmax(1)).sum(1).mean()
    torch.testing.assert_close(loss(CrossEntropy(0.1), logits, LABELS, 0), expected)


@pytest.mark.parametrize("form", ["paper", "code"])
@pytest.mark.parametrize(("level", "sign"), [(2.0, 1.0), (0.5, -1.0)])
def test_even_epochs_descend_above_alpha_and_ascend_below(
    form: str, level: float, sign: float
) -> None:
    logits, labels = at_loss(level)
    found = gradient(RelaxLoss(1.0, form=form), logits, labels, 0)
    torch.testing.assert_close(found, sign * gradient(CrossEntropy(), logits, labels, 0))
    value = loss(RelaxLoss(1.0, form=form), logits, labels, 4)
    assert float(value) == pytest.approx(abs(level - 1.0), abs=1e-6)


def test_at_alpha_nothing_moves() -> None:
    logits = torch.zeros(4, 2)
    labels = torch.tensor([0, 1, 0, 1])
    alpha = float(functional.cross_entropy(logits, labels))
    assert not gradient(RelaxLoss(alpha), logits, labels, 0).any()


@pytest.mark.parametrize("form", ["paper", "code"])
def test_odd_epochs_descend_above_alpha(form: str) -> None:
    logits, labels = at_loss(2.0)
    found = gradient(RelaxLoss(1.0, form=form), logits, labels, 1)
    torch.testing.assert_close(found, gradient(CrossEntropy(), logits, labels, 1))


def test_detached_flattening_leaves_the_true_logit_alone() -> None:
    logits = torch.tensor([[2.0, 0.5, -1.0], [0.1, 1.5, 0.3]])
    labels = torch.tensor([0, 1])
    found = gradient(RelaxLoss(5.0), logits, labels, 1)
    own = found.gather(1, labels[:, None])
    torch.testing.assert_close(own, torch.zeros(2, 1), atol=1e-7, rtol=0)
    p = logits.softmax(1)
    rest = (1 - p.gather(1, labels[:, None])) / 2  # what each wrong class should have
    wrong = torch.ones_like(p).scatter(1, labels[:, None], 0.0)
    torch.testing.assert_close(found, wrong * (p - rest) / 2)


def test_the_cap_pulls_the_true_logit_down() -> None:
    logits = torch.tensor([[4.0, 0.0, 0.0]])
    p = float(logits.softmax(1)[0, 0])
    found = gradient(RelaxLoss(5.0, upper=0.3), logits, torch.tensor([0]), 1)
    assert float(found[0, 0]) == pytest.approx(p - 0.3, abs=1e-6)


def test_the_code_form_ascends_for_samples_that_are_right() -> None:
    logits, labels = at_loss(0.5)
    found = gradient(RelaxLoss(1.0, form="code"), logits, labels, 1)
    torch.testing.assert_close(found, -gradient(CrossEntropy(), logits, labels, 1))


def test_the_code_form_adds_a_soft_term_with_gradient_where_it_is_wrong() -> None:
    logits = torch.tensor([[0.2, 0.5, 0.1], [1.0, 0.0, -1.0]])
    labels = torch.tensor([0, 0])
    leaf = logits.clone().requires_grad_()
    log_p = leaf.log_softmax(1)
    kept = log_p[0, 0].exp()
    soft = -(kept * log_p[0, 0] + (1 - kept) / 2 * (log_p[0, 1] + log_p[0, 2]))
    expected = (soft - functional.cross_entropy(leaf, labels, reduction="sum")) / 2
    expected.backward()
    objective = RelaxLoss(5.0, form="code")
    torch.testing.assert_close(loss(objective, logits, labels, 1), expected.detach())
    torch.testing.assert_close(gradient(objective, logits, labels, 1), leaf.grad)


def test_extreme_logits_stay_finite() -> None:
    logits = torch.tensor([[120.0, -120.0], [-1e4, 1e4]])
    ours = (HAMP(), HAMP(0), CCL(), CCL(form="quadratic"), PPB())
    for objective in (RelaxLoss(1.0), RelaxLoss(1e6), RelaxLoss(1e6, form="code"), *ours):
        for epoch in (0, 1):
            assert torch.isfinite(gradient(objective, logits, torch.tensor([0, 0]), epoch)).all()


# ---------------------------------------------------------------- high-entropy labels


@pytest.mark.parametrize(
    ("share", "classes", "grid"),
    [(0.95, 10, 26), (0.5, 100, 64), (0.8, 100, 33), (0.6, 100, 54), (0.5, 30, 68)],
)
def test_a_soft_label_has_the_entropy_that_is_asked_for(
    share: float, classes: int, grid: int
) -> None:
    """Published strengths: CIFAR-10, CIFAR-100, Purchase, Texas, Location, and what the codes' grid
    makes of them.
    """
    p = objectives.soft_label(share, classes)
    assert math.floor(100 * p) == grid
    entropy = -p * math.log(p) - (1 - p) * math.log((1 - p) / (classes - 1))
    assert entropy == pytest.approx(share * math.log(classes), rel=1e-12)


@given(st.floats(0, 1), st.integers(2, 1000))
def test_soft_labels_fall_from_one_to_even(share: float, classes: int) -> None:
    p = objectives.soft_label(share, classes)
    assert 1 / classes <= p <= 1
    assert objectives.soft_label(share / 2, classes) >= p


def test_the_softest_and_the_hardest_label() -> None:
    assert objectives.soft_label(0, 10) == pytest.approx(1, abs=1e-15)
    assert objectives.soft_label(1, 10) == pytest.approx(0.1, abs=1e-12)
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    hard = loss(HAMP(0, weight=0), logits, LABELS, 0)
    torch.testing.assert_close(hard, functional.cross_entropy(logits, LABELS))
    even = loss(HAMP(1, weight=0), logits, LABELS, 0)
    torch.testing.assert_close(even, -(logits.log_softmax(1) + math.log(3)).mean(1).mean())
    assert float(loss(HAMP(1, weight=0), torch.zeros(4, 3), LABELS, 0)) == pytest.approx(
        0, abs=1e-6
    )


def test_the_output_is_rewarded_for_its_entropy() -> None:
    logits = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    p = logits.softmax(1)
    entropy = -(p * p.log()).sum(1).mean()
    plain = loss(HAMP(0.7, weight=0), logits, LABELS, 0)
    torch.testing.assert_close(loss(HAMP(0.7, weight=3), logits, LABELS, 0), plain - 3 * entropy)


def test_the_published_code_is_a_c_times_smaller_loss() -> None:
    """Its divergence is the mean over samples and classes: times C it is the mean over samples."""
    logits = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    p = objectives.soft_label(0.7, 5)
    soft = torch.where(functional.one_hot(LABELS, 5).bool(), p, (1 - p) / 4)
    mean = (soft * (soft.log() - logits.log_softmax(1))).mean()
    torch.testing.assert_close(5 * mean, loss(HAMP(0.7, weight=0), logits, LABELS, 0))
    torch.testing.assert_close(mean, loss(HAMP(0.7, weight=0, form="code"), logits, LABELS, 0))
    code, ours = HAMP(0.7, weight=0.01, form="code"), HAMP(0.7, weight=0.05)
    torch.testing.assert_close(5 * loss(code, logits, LABELS, 0), loss(ours, logits, LABELS, 0))


# ---------------------------------------------------------------- the convex-concave loss


@pytest.mark.parametrize("form", ["exponential", "quadratic"])
@given(
    alpha=st.floats(0, 1),
    beta=st.floats(0.01, 10),
    scale=st.floats(0, 20),
    seed=st.integers(0, 100),
)
def test_its_gradient_is_cross_entropys_times_a_weight_of_the_confidence(
    form: str, alpha: float, beta: float, scale: float, seed: int
) -> None:
    logits = scale * torch.randn(
        4, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    leaf = logits.clone().requires_grad_()
    loss(CCL(alpha, beta, form), leaf, LABELS, 0).backward()
    p = logits.softmax(1)
    own = p.gather(1, LABELS[:, None])
    weight = alpha + (1 - alpha) * (own * own.exp() if form == "exponential" else own + own**2)
    expected = beta * weight * (p - functional.one_hot(LABELS, 3)) / 4
    torch.testing.assert_close(leaf.grad, expected, atol=1e-12, rtol=0)


def test_the_convex_part_alone_is_cross_entropy() -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    for form in ("exponential", "quadratic"):
        assert loss(CCL(1, 1, form), logits, LABELS, 0) == functional.cross_entropy(logits, LABELS)


def test_a_sure_sample_has_the_lowest_loss() -> None:
    logits = torch.tensor([[80.0, 0.0, 0.0]])
    label = torch.tensor([0])
    assert float(loss(CCL(0.5, 0.05), logits, label, 0)) == pytest.approx(-0.05 * 0.5 * math.e)
    assert float(loss(CCL(0.5, 0.05, "quadratic"), logits, label, 0)) == pytest.approx(
        -0.05 * 0.5 * 1.5
    )


def test_adam_does_not_see_beta() -> None:
    """Without weight decay: a factor of the loss is one of both of Adam's moments."""
    weights = []
    for beta in (1.0, 0.05):
        leaf = torch.randn(
            4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64
        ).requires_grad_()
        optimizer = torch.optim.Adam([leaf], 0.01, eps=0.0)
        for _ in range(20):
            optimizer.zero_grad()
            loss(CCL(0.5, beta), leaf, LABELS, 0).backward()
            optimizer.step()
        weights.append(leaf.detach())
    torch.testing.assert_close(*weights, atol=1e-12, rtol=0)


def test_an_unknown_objective_is_an_error() -> None:
    with pytest.raises(TypeError, match="Objective"):
        loss(Objective(), torch.zeros(1, 2), torch.tensor([0]), 0)


# ---------------------------------------------------------------- defences that need more than the batch


def test_distillation_is_cross_entropy_for_one_hot_teachers_and_entropy_at_the_teacher() -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    hot = functional.one_hot(LABELS, 3).float()
    torch.testing.assert_close(
        objectives.distillation(logits, hot), functional.cross_entropy(logits, LABELS)
    )
    p = logits.softmax(1)
    leaf = logits.clone().requires_grad_()
    value = objectives.distillation(leaf, p)
    value.backward()
    torch.testing.assert_close(value.detach(), -(p * p.log()).sum(1).mean())
    torch.testing.assert_close(leaf.grad, torch.zeros(4, 3), atol=1e-7, rtol=0)


@pytest.mark.parametrize("gap", [120.0, 1e4])
def test_distillation_survives_any_gap(gap: float) -> None:
    """The published form, the logarithm of a softmax, is infinite here and its gradient is no
    number.
    """
    soft = torch.tensor([[0.25, 0.5, 0.25]])
    leaf = torch.tensor([[gap, 0.0, 0.0]]).requires_grad_()
    published = -(soft * leaf.softmax(1).log()).sum()
    published.backward()
    assert published.isinf() and leaf.grad.isnan().any()
    leaf.grad = None
    value = objectives.distillation(leaf, soft)
    value.backward()
    assert float(value.detach()) == pytest.approx(0.75 * gap)
    torch.testing.assert_close(leaf.grad, torch.tensor([[0.75, -0.5, -0.25]]))


def test_class_wise_is_cross_entropy_and_a_divergence() -> None:
    generator = torch.Generator().manual_seed(0)
    student, teacher = torch.randn(2, 4, 3, generator=generator)
    plain = functional.cross_entropy(student, LABELS)
    torch.testing.assert_close(
        objectives.class_wise(CSKD(weight=7), student, student, LABELS), plain
    )
    torch.testing.assert_close(
        objectives.class_wise(CSKD(weight=0), student, teacher, LABELS), plain
    )
    q, p = (teacher / 2).softmax(1), (student / 2).softmax(1)
    expected = plain + 3 * 4 * (q * (q / p).log()).sum(1).mean()
    torch.testing.assert_close(
        objectives.class_wise(CSKD(2.0, 3.0), student, teacher, LABELS), expected
    )


def test_class_wise_sends_no_gradient_to_the_teacher() -> None:
    student, teacher = torch.zeros(2, 4, 3).unbind()
    student.requires_grad_(), teacher.requires_grad_()
    objectives.class_wise(CSKD(), student, teacher, LABELS).backward()
    assert student.grad is not None and teacher.grad is None


def test_the_gain_is_the_mean_membership_less_a_half() -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    plain = functional.cross_entropy(logits, LABELS)
    says = torch.tensor([0.9, 0.7, 0.8, 1.0])

    def value(alpha: float, says: Tensor, form: Any = "epoch") -> Tensor:
        return objectives.adversarial(
            AdversarialRegularization(alpha, form=form), logits, LABELS, says
        )

    torch.testing.assert_close(value(2.0, says), plain + 2 * 0.35)
    assert value(0.0, says) == plain == value(0.0, says, "code")
    assert (
        value(9.0, torch.full((4,), 0.5)) == plain == value(9.0, torch.full((4,), 0.5), "one_step")
    )
    torch.testing.assert_close(value(2.0, says, "code"), plain + 2 * says.log().mean())
    assert value(2.0, torch.full((4,), 1e-6), "code") < plain - 27, "without a bound"


# ---------------------------------------------------------------- ranked posteriors


def test_rows_that_differ_by_the_order_of_classes_are_balanced() -> None:
    row = torch.tensor([2.0, -1.0, 0.5])
    logits = torch.stack([row, row[[1, 2, 0]], row[[2, 0, 1]], row.flip(0)])
    assert loss(PPB(16.0), logits, LABELS, 0) == functional.cross_entropy(logits, LABELS)


def test_two_classes_by_hand() -> None:
    """KL of (.9, .1) from (.6, .4), whichever class is the larger one; five samples make two pairs."""
    p, q = math.log(0.6 / 0.4), math.log(0.9 / 0.1)
    logits = torch.tensor([[p, 0.0], [1.0, 1.0], [0.0, q], [1.0, 1.0], [7.0, 0.0]])
    labels = torch.tensor([0, 1, 0, 1, 1])
    divergence = 0.9 * math.log(0.9 / 0.6) + 0.1 * math.log(0.1 / 0.4)
    found = loss(PPB(3.0), logits, labels, 0) - functional.cross_entropy(logits, labels)
    assert float(found) == pytest.approx(3 * divergence / 2, rel=1e-5)


def test_both_sides_of_a_pair_are_moved_and_a_single_sample_is_in_none() -> None:
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 2, 0, 1])
    moved = (
        (gradient(PPB(), logits, labels, 0) - gradient(CrossEntropy(), logits, labels, 0))
        .abs()
        .amax(dim=1)
    )
    assert (moved[:4] > 1e-3).all() and moved[4] == 0
    assert loss(PPB(), logits[:1], labels[:1], 0) == functional.cross_entropy(
        logits[:1], labels[:1]
    )
    assert torch.equal(
        gradient(PPB(0.0), logits, labels, 0), gradient(CrossEntropy(), logits, labels, 0)
    )
