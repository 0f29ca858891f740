"""What a training minimizes. No branch depends on a tensor's value, so that a step can be captured as a graph."""

import torch
from torch import Tensor
from torch.nn import functional

from lib.recipe import CSKD, CrossEntropy, Objective, RelaxLoss


def loss(objective: Objective, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
    """The objective on one batch as a float32 scalar; `logits (B, C)`, `labels (B,)`, `epoch ()` int64 from 0."""
    logits = logits.float()
    if isinstance(objective, CrossEntropy):
        return functional.cross_entropy(logits, labels, label_smoothing=objective.smoothing)
    if isinstance(objective, RelaxLoss):
        return _relaxed(objective, logits, labels, epoch)
    raise TypeError(f"no loss is written for {type(objective).__name__}")


def _relaxed(objective: RelaxLoss, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
    """RelaxLoss (Chen et al., ICLR 2022, Alg. 1): keep the batch's mean cross-entropy at alpha.

    Even epochs descend above alpha and ascend below. Odd epochs descend above; below, the paper flattens the
    posterior: cross-entropy with a soft label that keeps the true class's own (capped) probability and spreads the
    rest evenly. The soft label is a constant there, so the true logit's gradient is zero unless the cap bites. The
    official CIFAR code does something else in that place: it ascends the cross-entropy of every sample, adds the
    soft term only for misclassified ones, and lets gradients through the soft label.
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


def distillation(logits: Tensor, soft: Tensor) -> Tensor:
    """Cross-entropy with soft labels `(B, C)`, a float32 scalar (SELENA's second part).

    The official code takes the logarithm of a softmax, which underflows at a gap of 104 between two logits: an infinite
    loss and a gradient that is no number, the "gradient explosions" that PPTP reports. From the log-softmax both are
    right at any gap.
    """
    return functional.cross_entropy(logits.float(), soft)


def class_wise(objective: CSKD, logits: Tensor, teacher: Tensor, labels: Tensor) -> Tensor:
    """CS-KD (Yun et al., CVPR 2020, eq. 2 and 4): the mean over the batch, a float32 scalar; both logits `(B, C)`."""
    logits, t = logits.float(), objective.temperature
    student, goal = (functional.log_softmax(z.float() / t, dim=1) for z in (logits, teacher.detach()))
    divergence = functional.kl_div(student, goal, reduction="batchmean", log_target=True)
    return functional.cross_entropy(logits, labels) + objective.weight * t**2 * divergence


def adversarial(alpha: float, logits: Tensor, labels: Tensor, membership: Tensor) -> Tensor:
    """Cross-entropy and alpha times the inference net's gain on members; `membership (B,)` is what it says of them.

    The gain is the mean probability less a half, as the codes of the paper's authors, SELENA and RelaxLoss have it;
    the paper's Algorithm 1 writes its logarithm, which has no lower bound.
    """
    return functional.cross_entropy(logits.float(), labels) + alpha * (membership.mean() - 0.5)
