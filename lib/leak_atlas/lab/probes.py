"""PPTP's probe of several variants: declared, realized once and compared stage by stage."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from leak_atlas import lab
from leak_atlas.audit import Comparison
from leak_atlas.lab.variants import Checkpoint
from leak_atlas.localization.probes import ProbeComparison
from leak_atlas.recipe import Attacker, Pair, Population, Signals, seed_floors, self_audit
from leak_atlas.recipe.readings import Parts

__all__ = ["probe"]


def probe(
    variants: Mapping[str, Sequence[Pair]],
    attackers: Mapping[str, Attacker] | None = None,
    *,
    parts: Parts = "stages",
    checkpoints: Mapping[str, Sequence[int]] | None = None,
    also: Any = (),
) -> ProbeComparison:
    """Trains the missing pairs, measures their distances, attacks M_h1: the one call of `realize`
    of a page.

    `variants` have their pairs by name (`ProbeStudy.probes`). Each M_h1 is attacked by those of
    the other pairs: its members are one half of the pool, its non-members the other half.

    - `checkpoints`: epochs at which M_h1 of a variant is attacked too, as early stopping; each
      becomes a `Checkpoint` in `comparison.half`
    - `also`: further recipes, realized in the same call: read `comparison.results[recipe]`
    """
    distances, wholes = {}, {}
    targets: dict[Hashable, Population] = {}
    for variant, pairs in variants.items():
        distances[variant] = [pair.distance(parts) for pair in pairs]
        wholes[variant] = [Signals(pair.whole) for pair in pairs]
        targets[variant] = Population(tuple(pair.half for pair in pairs))
    stops: dict[Hashable, list[Hashable]] = {}
    for variant, epochs in (checkpoints or {}).items():
        stops[variant] = [Checkpoint(variant, epoch) for epoch in sorted(epochs)]
        for epoch in epochs:
            targets[Checkpoint(variant, epoch)] = targets[variant].at(epoch)
    halves = {variant: each.signals() for variant, each in targets.items()}
    attacks = {}
    for target, networks in targets.items():
        for name, attacker in (attackers or {}).items():
            attacks[target, name] = networks.attack(attacker)
    first = tuple(next(iter(variants.values())))
    floor = seed_floors(first, parts)
    further = self_audit(first), also
    results = lab.realize(distances, wholes, halves, attacks, floor, further)
    return ProbeComparison(
        results,
        distances,
        floor,
        whole=Comparison.of(results, wholes, {}),
        half=Comparison.of(results, halves, attacks, stops),
    )
