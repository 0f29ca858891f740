"""Differentially private training (Abadi et al. 2016): Opacus clips each sample's gradient, and
adds the noise.
"""

import warnings
from collections.abc import Sequence

import torch
from opacus.accountants import RDPAccountant
from opacus.grad_sample import GradSampleHooks
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.recipe import DPSGD
from leak_atlas.training.update import NOISE, POISSON, Batch, Task, Update, float32, sizes

# Bytes that the gradients of single samples may take at once; larger batches are worked off in
# parts.
ROOM = 2**30


class Hooks(GradSampleHooks):  # type: ignore[misc]  # Opacus is not typed
    """Without Opacus' own rule for convolutions: it reads maps as contiguous, and gets those in
    channels_last wrong.
    """

    GRAD_SAMPLERS = {  # noqa: RUF012  # the base class declares it
        kind: rule for kind, rule in GradSampleHooks.GRAD_SAMPLERS.items() if kind is not nn.Conv2d
    }


class Private(Update):
    """Cross-entropy on Poisson samples of the members. Steps are run one by one: no two need be of
    one size.

    An epoch has as many steps as batches cover the members, and each member is in each with the
    same probability q = 1 / steps, drawn from the seed. What the gradients sum up to is divided by
    q n, how many are expected. A batch may be empty: its step is noise.

    Held weights are out of what is clipped and out of the noise, and are imposed after the step as
    ever, since weight decay and momentum move them too.
    """

    objective: DPSGD
    recordable = False

    def __init__(self, objective: DPSGD, task: Task) -> None:
        if task.diet is not None:
            raise BadInput("DPSGD draws each batch from all members: train without a diet")
        if any(isinstance(module, _BatchNorm) for module in task.net.modules()):
            raise BadInput(
                "DPSGD needs a network without BatchNorm, whose statistics samples share: take norm='group'"
            )
        super().__init__(objective, task)
        self.seed, self.steps = task.seed, len(sizes(self.n, self.batch))
        learning = self.optimizer.param_groups[0]["params"]
        self.part = (
            max(1, ROOM // (4 * objective.group * sum(one.numel() for one in learning)))
            * objective.group
        )
        held = {id(tensor): mask for tensor, mask, _ in self.hold.pinned}
        self.free = [
            (parameter, ~held[id(parameter)]) for parameter in learning if id(parameter) in held
        ]
        self.noise = torch.Generator(self.data.device)
        self.private = DPOptimizer(
            self.optimizer,
            noise_multiplier=objective.noise,
            max_grad_norm=objective.clip,
            expected_batch_size=self.n / self.steps / objective.group,  # type: ignore[arg-type]  # which only divides
            generator=self.noise,
        )
        self.private.attach_step_hook(self._noised)
        self.accountant = RDPAccountant()

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        """Those of the samples drawn, step after step; `perm` goes on by n from step to step, so
        that it tells both.
        """
        draws = augmentation.generator(seed, epoch, POISSON)
        drawn = (torch.rand(self.steps * self.n, generator=draws) < 1 / self.steps).nonzero()[:, 0]
        return augmentation.tables(seed, epoch, len(drawn), self.augment)._replace(perm=drawn)

    def begin(self, epoch: int, rate: float, tables: augmentation.Tables) -> None:
        self.counts: list[int] = (tables.perm // self.n).bincount(minlength=self.steps).tolist()
        self.order = self.order.new_zeros(4, 1, len(tables.perm))
        super().begin(epoch, rate, tables._replace(perm=tables.perm % self.n))
        self.noise.manual_seed(augmentation.generator(self.seed, epoch, NOISE).initial_seed())

    def batches(self, epoch: int) -> Sequence[Batch]:
        return [Batch(count) for count in self.counts]

    def __call__(self, size: int, phase: str = "") -> None:
        """Learn from the next Poisson sample, which has `size` members."""
        drawn = self.order[:, 0].index_select(1, self.ahead[:size] + self.position)
        # Opacus wants a gradient of every weight: where nobody is drawn, somebody counts nothing.
        parts = drawn.split(self.part, dim=1) if size else [drawn.new_zeros(4, 1)]
        hooks = Hooks(self.net, loss_reduction="mean")
        try:
            for number, part in enumerate(parts, 1):
                self.private.zero_grad(set_to_none=True)
                labels = self.labels(part[0])
                with float32(), warnings.catch_warnings():
                    # Opacus hooks modules whose input needs no gradient
                    warnings.simplefilter("ignore")
                    logits = self.logits(self.images(part))
                    value = functional.cross_entropy(logits.float(), labels) * bool(size)
                    value.backward()  # type: ignore[no-untyped-call]
                for parameter, free in self.free:
                    parameter.grad_sample.mul_(free)
                if (group := self.objective.group) > 1:
                    for parameter in self.private.params:
                        parameter.grad_sample = torch.stack(
                            [g.mean(dim=0) for g in parameter.grad_sample.split(group)]
                        )
                self.private.signal_skip_step(number < len(parts))
                self.private.step()
                self.loss.add_(value.detach(), alpha=part.shape[1])
                self.right.add_((logits.detach().argmax(dim=1) == labels).sum() * bool(size))
        finally:
            hooks.cleanup()
        self.hold.impose()
        self.position.add_(size)
        self.accountant.step(noise_multiplier=self.objective.noise, sample_rate=1 / self.steps)

    def _noised(self, _: DPOptimizer) -> None:
        # the fused optimizers read gradients in the order of the weights
        for parameter in self.private.params:
            if parameter.grad.stride() != parameter.stride():
                parameter.grad = torch.empty_like(parameter).copy_(parameter.grad)
        for parameter, free in self.free:
            parameter.grad.mul_(free)

    def measures(self) -> dict[str, float]:
        """`epsilon` that all steps so far have spent, by Opacus' RDP accountant (Balle et al.'s
        conversion).
        """
        if self.objective.group > 1:
            return {"epsilon": float("nan")}
        with warnings.catch_warnings():
            # the best order is the last one looked at: a valid bound, not the tightest
            warnings.simplefilter("ignore")
            return {"epsilon": float(self.accountant.get_epsilon(self.objective.delta))}
