"""Variants of the same networks under several attackers: declared, realized once and compared."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from leak_atlas import BadInput, lab, nearest
from leak_atlas.audit import Comparison, FloatArray, described
from leak_atlas.data.designs import Role
from leak_atlas.lab import plans, prices
from leak_atlas.localization.divergence import losses
from leak_atlas.recipe import At, Attack, Attacker, Population

__all__ = ["Checkpoint", "compare", "member_losses", "operations"]

Epochs = Sequence[int] | Mapping[int, Population]


class Checkpoint(NamedTuple):
    """The key of a variant that is an earlier epoch of another one: early stopping."""

    variant: Hashable
    epoch: int

    def __str__(self) -> str:
        return f"{described(self.variant)}, epoch {self.epoch}"


def compare(
    variants: Mapping[Hashable, Population],
    attackers: Mapping[str, Attacker],
    targets: int | None = None,
    *,
    only: Mapping[str, Collection[Hashable]] | None = None,
    shadows: Mapping[Hashable, Population] | None = None,
    checkpoints: Mapping[Hashable, Epochs] | None = None,
    also: Any = (),
) -> Comparison:
    """Trains what is missing, attacks it, and compares: the one call of `realize` of a page.

    `variants` have a population each; its key is a text, or a tuple that says what varies. The
    first `targets` networks of a variant are attacked, by default all. A target's shadow models are
    all other networks of the variant, further targets included, except those of its complement
    pair. (All targets of a `VictimAttacker` are one pair.)

    - `only`: the variants that an attacker attacks, by its name; default: all
    - `shadows`: the networks that attack a variant's targets instead of its own others
    - `checkpoints`: epochs at which a variant is compared too, as early stopping, with their
      populations where these differ from `population.at(epoch)`; each becomes a `Checkpoint`
    - `also`: further recipes, realized in the same call: read `comparison.results[recipe]`

    Raises BadInput on a name in `only`, `shadows` or `checkpoints` that nothing has, and what
    `realize` raises.
    """
    only, shadows, checkpoints = only or {}, shadows or {}, checkpoints or {}
    networks = dict(variants)
    epochs: dict[Hashable, list[Hashable]] = {}
    for variant, each in checkpoints.items():
        _known(variant, variants, "variant to stop early")
        stops: dict[Hashable, Population] = {}
        for epoch in sorted(each):
            population = each[epoch] if isinstance(each, Mapping) else variants[variant].at(epoch)
            stops[Checkpoint(variant, epoch)] = population
        networks |= stops
        epochs[variant] = list(stops)
    for name, chosen in only.items():
        _known(name, attackers, "attacker")
        for variant in chosen:
            _known(variant, networks, f"variant that {name} attacks")
    for variant in shadows:
        _known(variant, networks, "variant to be attacked")
    attacks: dict[tuple[Hashable, str], Attack] = {}
    for variant, population in networks.items():
        for name, attacker in attackers.items():
            if variant in only.get(name, networks):
                others = shadows.get(variant)
                attacks[variant, name] = population.attack(attacker, targets, others)
    signals = {variant: each.signals()[:targets] for variant, each in networks.items()}
    results = lab.realize(attacks, signals, also)
    return Comparison.of(results, signals, attacks, epochs)


def member_losses(results: Any, networks: Population) -> FloatArray:
    """Each network's cross-entropy on its members, mean over members, in nats: `(n,)`.

    `results` has the networks' `Signals`, as after `compare`.
    """
    return losses(results, networks.signals(), Role.MEMBER)


def operations(results: Any, networks: Population) -> float:
    """Floating point operations of all that a network rests on, forward and backward, mean over
    networks: its own trainings, those of its teachers, and its share of those that all rest on.

    `results` has the operations that were counted when a step was computed; other steps are counted
    now, which takes torch. A training counts with all epochs of its schedule, also where a patience
    ended it earlier.
    """
    total = 0.0
    for step in plans.behind(networks):
        if not isinstance(step, At):  # its training counts
            known = results.meta(step).get("operations")
            total += prices.work(step) if known is None else known
    return total / len(networks)


def _known(name: Any, known: Collection[Any], what: str) -> None:
    """Raises BadInput if nothing has this name."""
    if name not in known:
        raise BadInput(f"there is no {what} '{name}'{nearest(str(name), list(map(str, known)))}")
