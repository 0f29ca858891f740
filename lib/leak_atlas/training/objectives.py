"""What a training minimizes. No branch depends on a tensor's value, so that a step can be captured
as a graph.
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
def loss(objective: Objective, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
    """The objective on one batch, a scalar of the logits' type; a loss that needs no more registers
    itself here.

    `logits (B, C)` float32, `labels (B,)`, `epoch ()` int64 from 0. TypeError for an objective
    without a loss.
    """
    raise TypeError(f"no loss is written for {type(objective).__name__}")


@loss.register
def cross_entropy(objective: CrossEntropy, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
    return functional.cross_entropy(logits, labels, label_smoothing=objective.smoothing)


@loss.register
def relaxed(objective: RelaxLoss, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
    """RelaxLoss (Chen et al., ICLR 2022, Alg. 1): keep the batch's mean cross-entropy at alpha.

    Even epochs descend above alpha and ascend below. Odd epochs descend above; below, the paper
    flattens the posterior: cross-entropy with a soft label that keeps the true class's own (capped)
    probability and spreads the rest evenly. The soft label is a constant there, so the true logit's
    gradient is zero unless the cap bites. The official CIFAR code does something else in that
    place: it ascends the cross-entropy of every sample, adds the soft term only for misclassified
    ones, and lets gradients through the soft label.
    """
    log_p = functional.log_softmax(logits, dim=1)
    each = -log_p.gather(1, labels[:, None])[:, 0]
    mean = each.mean()
    kept = (-each).exp().clamp(max=objective.upper)
    if objective.form == "paper":
        kept = kept.detach()
    rest = (1 - kept) / (logits.shape[1] - 1)
    soft = kept * each - rest * (log_p.sum(dim=1) + each)
    if objective.form == "paper":
        below = soft.mean()
    else:
        wrong = (logits.argmax(dim=1) != labels).float()
        below = (wrong * soft - each).mean()
    even = (mean - objective.alpha).abs()
    odd = torch.where(mean > objective.alpha, mean, below)
    return torch.where(epoch % 2 == 0, even, odd)


@loss.register
def high_entropy(objective: HAMP, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
    """HAMP's training loss (Chen & Pattabiraman, NDSS 2024), a scalar: the mean over the batch,
    entropies in nats.
    """
    classes = logits.shape[1]
    p = soft_label(objective.entropy, classes)
    log_q = functional.log_softmax(logits, dim=1)
    own = labels[:, None] == torch.arange(classes, device=labels.device)
    soft = torch.where(own, p, (1 - p) / (classes - 1)).to(log_q.dtype)
    divergence = functional.kl_div(log_q, soft, reduction="batchmean")
    if objective.form == "code":
        divergence = divergence / classes
    return divergence + objective.weight * (log_q.exp() * log_q).sum(dim=1).mean()


def soft_label(share: float, classes: int) -> float:
    """The probability of the true class in a label of entropy `share` * ln C whose other classes
    share the rest evenly.

    By bisection between 1 / C (entropy ln C) and 1 (none), where the entropy falls. The published
    code has the same rounded down to a multiple of .01.
    """
    low, high = 1 / classes, 1.0
    for _ in range(60):
        p = (low + high) / 2
        entropy = -p * math.log(p) - ((1 - p) * math.log((1 - p) / (classes - 1)) if p < 1 else 0.0)
        low, high = (p, high) if entropy > share * math.log(classes) else (low, p)
    return low


@loss.register
def convex_concave(objective: CCL, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
    """The convex-concave loss (Liu et al., ICML 2024), a scalar that may be negative: the mean over
    the batch.

    In the logits its gradient is cross-entropy's times beta * (alpha + (1 - alpha) p e^p), or p +
    p^2 for p e^p in the quadratic form: it grows with the confidence. The repository's focal
    variant adds e^p where this subtracts it.
    """
    each = functional.cross_entropy(logits, labels, reduction="none")
    p = (-each).exp()
    concave = p.exp() if objective.form == "exponential" else p + p**2 / 2
    return objective.beta * (objective.alpha * each - (1 - objective.alpha) * concave).mean()


@loss.register
def balanced(objective: PPB, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
    """PPB (Yuan & Zhang, USENIX Security 2022, eq. 6), a scalar; sorted logits have sorted
    posteriors.
    """
    value, pairs = functional.cross_entropy(logits, labels), len(logits) // 2
    if not pairs:  # the mean over no pairs would be no number
        return value
    ranked = functional.log_softmax(logits.sort(dim=1, descending=True).values, dim=1)
    first, second = ranked[:pairs], ranked[pairs : 2 * pairs]
    return value + objective.weight * functional.kl_div(
        first, second, reduction="batchmean", log_target=True
    )


def distillation(logits: Tensor, soft: Tensor) -> Tensor:
    """Cross-entropy of `logits (B, C)` with soft labels `(B, C)`, a float32 scalar (SELENA's second
    part).

    The official code takes the logarithm of a softmax, which underflows at a gap of 104 between two
    logits: an infinite loss and a gradient that is no number, the "gradient explosions" that PPTP
    reports. From the log-softmax both are right at any gap.
    """
    return functional.cross_entropy(logits.float(), soft)


def class_wise(objective: CSKD, logits: Tensor, teacher: Tensor, labels: Tensor) -> Tensor:
    """CS-KD (Yun et al., CVPR 2020, eq. 2 and 4): the mean over the batch, a float32 scalar; both
    logits `(B, C)`.
    """
    logits, t = logits.float(), objective.temperature
    student, goal = (
        functional.log_softmax(z.float() / t, dim=1) for z in (logits, teacher.detach())
    )
    divergence = functional.kl_div(student, goal, reduction="batchmean", log_target=True)
    return functional.cross_entropy(logits, labels) + objective.weight * t**2 * divergence


def adversarial(
    objective: AdversarialRegularization, logits: Tensor, labels: Tensor, membership: Tensor
) -> Tensor:
    """Cross-entropy and alpha times the inference net's gain on members; `membership (B,)` is what
    it says of them.

    The gain is the mean probability less a half, as the codes of the paper's authors, SELENA and
    RelaxLoss have it; the paper's Algorithm 1 writes its logarithm, which has no lower bound, as
    does the pruning papers' (`code`).
    """
    value = functional.cross_entropy(logits.float(), labels)
    if objective.form == "code":
        return value - objective.alpha * functional.binary_cross_entropy(
            membership, torch.ones_like(membership)
        )
    return value + objective.alpha * (membership.mean() - 0.5)
