"""The losses that a training minimizes. No branch depends on a tensor's value, so that a step can
be recorded as a CUDA graph.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from leak_atlas.engine.digests import generic
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


@generic
def loss(
    objective: Objective,
    logits: Tensor,
    labels: Tensor,
    epoch: Tensor,
) -> Tensor:
    """The objective on one batch, a scalar of the logits' type. Objectives that need the batch
    alone register their loss here.

    `logits (B, C)` float32, `labels (B,)`, `epoch ()` int64 from 0. TypeError for an objective
    without a loss.
    """
    raise TypeError(f"no loss is written for {type(objective).__name__}")


@loss.register
def cross_entropy(
    objective: CrossEntropy,
    logits: Tensor,
    labels: Tensor,
    epoch: Tensor,
) -> Tensor:
    return functional.cross_entropy(logits, labels)


@loss.register
def relaxed(
    objective: RelaxLoss,
    logits: Tensor,
    labels: Tensor,
    epoch: Tensor,
) -> Tensor:
    """RelaxLoss (Chen et al., ICLR 2022, Alg. 1) keeps the batch's mean cross-entropy at alpha.

    Even epochs descend the cross-entropy above alpha and ascend it below. Odd epochs descend it
    above alpha. Below alpha, odd epochs flatten the posterior: they minimize the cross-entropy with
    a soft label that has the true class's probability and spreads the rest evenly. The soft label
    is a constant, so the true logit's gradient is zero.
    """
    others = logits.shape[1] - 1  # classes
    log_p = functional.log_softmax(logits, dim=1)
    losses = -log_p.gather(1, labels[:, None])[:, 0]
    mean = losses.mean()
    p_true = (-losses).exp().clamp(max=1.0).detach()
    p_other = (1 - p_true) / others
    log_p_others = log_p.sum(dim=1) + losses
    soft_losses = p_true * losses - p_other * log_p_others
    even = (mean - objective.alpha).abs()
    odd = torch.where(mean > objective.alpha, mean, soft_losses.mean())
    return torch.where(epoch % 2 == 0, even, odd)


@loss.register
def high_entropy(
    objective: HAMP,
    logits: Tensor,
    labels: Tensor,
    epoch: Tensor,
) -> Tensor:
    """HAMP's training loss (Chen & Pattabiraman, NDSS 2024), a scalar: the mean over the batch,
    entropies in nats.
    """
    classes = logits.shape[1]
    p = soft_label(objective.entropy, classes)
    log_q = functional.log_softmax(logits, dim=1)
    is_label = labels[:, None] == torch.arange(classes, device=labels.device)
    soft = torch.where(is_label, p, (1 - p) / (classes - 1)).to(log_q.dtype)
    divergence = functional.kl_div(log_q, soft, reduction="batchmean")
    negative_entropy = (log_q.exp() * log_q).sum(dim=1).mean()
    return divergence + objective.weight * negative_entropy


def soft_label(share: float, classes: int) -> float:
    """The probability of the true class in a label of entropy `share` * ln C whose other classes
    have equal probabilities.

    Bisection between 1 / C (entropy ln C) and 1 (entropy 0), where the entropy decreases. The
    published code rounds the same value down to a multiple of .01.
    """
    target = share * math.log(classes)
    low = 1 / classes
    high = 1.0
    for _ in range(60):
        p = (low + high) / 2
        rest = (1 - p) * math.log((1 - p) / (classes - 1)) if p < 1 else 0.0
        entropy = -p * math.log(p) - rest
        if entropy > target:
            low = p
        else:
            high = p
    return low


@loss.register
def convex_concave(
    objective: CCL,
    logits: Tensor,
    labels: Tensor,
    epoch: Tensor,
) -> Tensor:
    """The convex-concave loss (Liu et al., ICML 2024), a scalar that may be negative: the mean over
    the batch.

    Its gradient in the logits is that of cross-entropy times beta * (alpha + (1 - alpha) p e^p).
    The gradient increases with the confidence. The focal variant of the authors' code adds e^p;
    this loss subtracts it.
    """
    convex = functional.cross_entropy(logits, labels, reduction="none")
    concave = (-convex).exp().exp()
    losses = objective.alpha * convex - (1 - objective.alpha) * concave
    return objective.beta * losses.mean()


@loss.register
def balanced(
    objective: PPB,
    logits: Tensor,
    labels: Tensor,
    epoch: Tensor,
) -> Tensor:
    """PPB (Yuan & Zhang, USENIX Security 2022, eq. 6, with means in place of sums), a scalar:
    cross-entropy plus `weight` times KL(second || first) of sorted posteriors, mean over pairs.

    Sample i of the first half of the batch and sample i of the second half are a pair.
    """
    value = functional.cross_entropy(logits, labels)
    pairs = len(logits) // 2
    if not pairs:  # the mean over no pairs is NaN
        return value
    sorted_logits = logits.sort(dim=1, descending=True).values
    log_p = functional.log_softmax(sorted_logits, dim=1)
    first = log_p[:pairs]
    second = log_p[pairs : 2 * pairs]
    divergence = functional.kl_div(first, second, reduction="batchmean", log_target=True)
    return value + objective.weight * divergence


def distillation(logits: Tensor, soft: Tensor) -> Tensor:
    """Cross-entropy of `logits (B, C)` with soft labels `(B, C)`, a float32 scalar (SELENA's second
    part).

    The official code takes the logarithm of a softmax, which underflows at a gap of 104 between two
    logits: the loss is infinite and the gradient NaN, the "gradient explosions" that PPTP reports.
    The log-softmax gives both correctly at any gap.
    """
    return functional.cross_entropy(logits.float(), soft)


def class_wise(
    objective: CSKD,
    logits: Tensor,
    teacher: Tensor,
    labels: Tensor,
) -> Tensor:
    """CS-KD (Yun et al., CVPR 2020, eq. 2 and 4): the mean over the batch, a float32 scalar; both
    logits `(B, C)`.
    """
    logits = logits.float()
    t = objective.temperature
    log_p = functional.log_softmax(logits / t, dim=1)
    log_q = functional.log_softmax(teacher.detach().float() / t, dim=1)
    divergence = functional.kl_div(log_p, log_q, reduction="batchmean", log_target=True)
    value = functional.cross_entropy(logits, labels)
    return value + objective.weight * t**2 * divergence


def adversarial(
    objective: AdversarialRegularization,
    logits: Tensor,
    labels: Tensor,
    membership: Tensor,
) -> Tensor:
    """Cross-entropy plus alpha times the inference net's gain; `membership (B,)` holds its
    probabilities of membership for the members of the batch.

    The gain is the mean probability minus a half, as in the codes of the paper's authors, SELENA
    and RelaxLoss. The paper's Algorithm 1 and the pruning papers' code take its logarithm, which
    has no lower bound.
    """
    value = functional.cross_entropy(logits.float(), labels)
    return value + objective.alpha * (membership.mean() - 0.5)
