"""PPTP's probe of several variants: declared, realized once and compared stage by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from leak_atlas import lab
from leak_atlas.audit import Comparison
from leak_atlas.localization.probes import ProbeComparison
from leak_atlas.recipe import Attacker, Pair, Population, Signals, seed_floors, self_audit

__all__ = ["probe"]


def probe(
    variants: Mapping[str, Sequence[Pair]],
    attackers: Mapping[str, Attacker] | None = None,
    *,
    parts: Literal["stages", "blocks"] = "stages",
    also: Any = (),
    workers: int | None = None,
) -> ProbeComparison:
    """Trains the missing pairs, measures their distances, attacks M_h1: the one call of `realize`
    of a page.

    `variants` have their pairs by name (`ProbeStudy.probes`). Each M_h1 is attacked by those of
    the other pairs: its members are one half of the pool, its non-members the other half. `also`
    are further recipes, realized in the same call: read `comparison.results[recipe]`. `workers`:
    as `realize`, which says what is raised.
    """
    distances, wholes, halves, attacks = {}, {}, {}, {}
    for variant, pairs in variants.items():
        distances[variant] = [pair.distance(parts) for pair in pairs]
        wholes[variant] = [Signals(pair.whole) for pair in pairs]
        halves[variant] = [Signals(pair.half) for pair in pairs]
        targets = Population(tuple(pair.half for pair in pairs))
        for name, attacker in (attackers or {}).items():
            attacks[variant, name] = targets.attack(attacker)
    first = tuple(next(iter(variants.values())))
    floor = seed_floors(first, parts)
    further = self_audit(first), also
    results = lab.realize(distances, wholes, halves, attacks, floor, further, workers=workers)
    return ProbeComparison(
        results,
        distances,
        floor,
        whole=Comparison.of(results, wholes, {}),
        half=Comparison.of(results, halves, attacks),
    )
