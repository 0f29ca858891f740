"""Differentially private training (DP-SGD, Abadi et al. 2016). Opacus clips the gradient of each
sample and adds noise to their sum.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from opacus.accountants import RDPAccountant
from opacus.grad_sample import GradSampleHooks
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.recipe import DPSGD
from leak_atlas.training.update import NOISE, POISSON, Batch, Task, Update, float32, sizes

# Most bytes that the gradients of single samples take at once. A larger batch is split into parts.
ROOM = 2**30


class Hooks(GradSampleHooks):  # type: ignore[misc]  # Opacus is not typed
    """Opacus' hooks without its own rule for `Conv2d`.

    That rule is wrong for activations in channels_last. Opacus then uses its general rule,
    functorch.
    """

    GRAD_SAMPLERS = {  # noqa: RUF012  # the base class declares it
        kind: rule for kind, rule in GradSampleHooks.GRAD_SAMPLERS.items() if kind is not nn.Conv2d
    }


class Private(Update):
    """Cross-entropy on Poisson samples of the members.

    An epoch has the same number of steps as without DP-SGD (`sizes`). Each member is in each batch
    with probability q = 1 / steps, drawn from the seed. The step divides the sum of clipped
    gradients and noise by the expected batch size, q n. For an empty batch this sum is the noise
    alone. Batches differ in size, so no step is recorded as a CUDA graph.

    Frozen weights are neither clipped nor noised. They are restored after the step, because weight
    decay changes them.
    """

    objective: DPSGD
    recordable = False

    def __init__(self, objective: DPSGD, task: Task) -> None:
        if any(isinstance(module, _BatchNorm) for module in task.net.modules()):
            raise BadInput(
                "DPSGD needs a network without BatchNorm, because samples share its statistics: "
                "take norm='group'"
            )
        super().__init__(objective, task)
        self.seed = task.seed
        self.steps = len(sizes(self.n, self.batch))
        numbers = sum(weight.numel() for weight in self.weights)
        self.part = max(1, ROOM // (4 * numbers))  # samples of a part, with float32 gradients
        # Of each weight tensor that is frozen in part, the mask of its free values.
        self.free: list[tuple[Any, Tensor]] = [
            (tensor, ~mask) for tensor, mask, _ in self.frozen.restored if tensor.requires_grad
        ]
        self.noise = torch.Generator(self.data.device)
        self.private = DPOptimizer(
            self.optimizer,
            noise_multiplier=objective.noise,
            max_grad_norm=objective.clip,
            expected_batch_size=self.n / self.steps,  # type: ignore[arg-type]  # int in Opacus
            generator=self.noise,
        )
        self.private.attach_step_hook(self._before_step)
        self.accountant = RDPAccountant()

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        """The tables of the drawn samples, step after step.

        `perm` is s n + i for place i among the n members in step s; `begin` takes both out again.
        """
        draws = augmentation.generator(seed, epoch, POISSON)
        uniform = torch.rand(self.steps * self.n, generator=draws)
        drawn = (uniform < 1 / self.steps).nonzero()[:, 0]
        views = augmentation.tables(seed, epoch, len(drawn), self.augment)
        return views._replace(perm=drawn)

    def begin(self, epoch: int, rate: float, tables: augmentation.Tables) -> None:
        step = tables.perm // self.n
        members = tables.perm % self.n
        self.counts: list[int] = step.bincount(minlength=self.steps).tolist()
        self.order = self.order.new_zeros(4, 1, len(members))
        super().begin(epoch, rate, tables._replace(perm=members))
        noise = augmentation.generator(self.seed, epoch, NOISE)
        self.noise.manual_seed(noise.initial_seed())

    def batches(self, epoch: int) -> Sequence[Batch]:
        return [Batch(count) for count in self.counts]

    def __call__(self, size: int, phase: str = "") -> None:
        """Learn from the next Poisson sample, which has `size` members."""
        drawn = self.order[:, 0].index_select(1, self.offsets[:size] + self.position)
        # Opacus needs gradients to add noise to: for an empty batch the loss of one sample times 0.
        parts = drawn.split(self.part, dim=1) if size else [drawn.new_zeros(4, 1)]
        hooks = Hooks(self.net, loss_reduction="mean")
        try:
            for number, part in enumerate(parts, 1):
                self._sample_gradients(part, empty=size == 0)
                self.private.signal_skip_step(number < len(parts))
                self.private.step()
        finally:
            hooks.cleanup()
        self.frozen.impose()
        self.position.add_(size)
        self.accountant.step(noise_multiplier=self.objective.noise, sample_rate=1 / self.steps)

    def _sample_gradients(self, drawn: Tensor, empty: bool) -> None:
        """Computes the gradient of each sample of `drawn (4, B)`, and counts loss and hits."""
        self.private.zero_grad(set_to_none=True)
        labels = self.labels(drawn[0])
        with float32(), warnings.catch_warnings():
            # Opacus hooks modules whose input needs no gradient.
            warnings.simplefilter("ignore")
            logits = self.logits(self.images(drawn))
            value = functional.cross_entropy(logits.float(), labels) * (not empty)
            value.backward()  # type: ignore[no-untyped-call]
        for parameter, free in self.free:
            parameter.grad_sample.mul_(free)
        hits = (logits.detach().argmax(dim=1) == labels).sum()
        self.loss.add_(value.detach(), alpha=drawn.shape[1])
        self.right.add_(hits * (not empty))

    def _before_step(self, _: DPOptimizer) -> None:
        """Opacus calls this between the noise and the step of the optimizer."""
        # Fused optimizers need gradients with the strides of the weights.
        for parameter in self.private.params:
            if parameter.grad.stride() != parameter.stride():
                parameter.grad = torch.empty_like(parameter).copy_(parameter.grad)
        for parameter, free in self.free:
            parameter.grad.mul_(free)

    def measures(self) -> dict[str, float]:
        """The `epsilon` of all steps so far, by Opacus' RDP accountant (conversion of Balle et
        al.).
        """
        with warnings.catch_warnings():
            # Opacus warns where its largest order is best: the bound is valid, not the tightest.
            warnings.simplefilter("ignore")
            return {"epsilon": float(self.accountant.get_epsilon(self.objective.delta))}
