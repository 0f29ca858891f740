"""What is stored, as explorers read it: results, what came of an attack, the members that it finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from leak_atlas import BadInput, audit, nearest
from leak_atlas.audit import Estimate
from leak_atlas.engine import store
from leak_atlas.explore import charts
from leak_atlas.explore.look import COLOURS
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import Attack, Attacker, Population, Signals, Step

if TYPE_CHECKING:
    import pandas as pd

# over the models: "accuracy" on test samples, and all of `audit.audit`
Outcome: TypeAlias = Mapping[str, Estimate]
Measured: TypeAlias = tuple[tuple[Signals, ...], Attack]
LOW = (0.01, 0.001)  # false positive rates at which true positives are counted
SURE = 0.01  # false positive rate at which members count as found


def measured(
    models: Population, attackers: Mapping[str, Attacker], attack: str, targets: int | None = None
) -> Measured:
    """The signals of the first models (all, by default), and how these are attacked by the others.
    BadInput on an unknown attack.
    """
    if attack not in attackers:
        raise BadInput(
            f"there is no attack '{attack}' to look at{nearest(attack, list(attackers))}"
        )
    return models.signals()[:targets], models.attack(attackers[attack], targets)


class Shelf:
    """Stored results, each read and counted once. Nothing is computed: what is missing or damaged
    is not there.
    """

    def __init__(self) -> None:
        self._read, self._outcomes = dict[str, Arrays](), dict[tuple[str, ...], Outcome]()

    def results(self, steps: Sequence[Step]) -> list[Arrays] | None:
        """The arrays of each step; None where one is not there."""
        for step in steps:
            if step.key not in self._read:
                if not store.has(step.key):
                    return None
                try:
                    self._read[step.key] = store.read(step.key).arrays
                except store.Corrupt:
                    store.discard(step.key)  # so that it is computed again when it is asked for
                    return None
        return [self._read[step.key] for step in steps]

    def outcome(self, signals: Sequence[Step], attack: Attack) -> Outcome | None:
        """What came of the models with these `signals`; None where that is not there."""
        key = tuple(step.key for step in (*signals, attack))
        if key not in self._outcomes and (found := self.results([*signals, attack])):
            accuracy = audit.mean_ci(
                [float(each["accuracy_test"]) for each in found[:-1]], bounds=(0, 1)
            )
            self._outcomes[key] = audit.audit(found[-1], LOW, attack.design_effect) | {
                "accuracy": accuracy
            }
        return self._outcomes.get(key)

    def outcomes(self, measured: Mapping[tuple[str, Any], Measured]) -> list[dict[str, Any]]:
        """Rows of `charts.outcomes` for what is stored, by side and place (None: any)."""
        rows = []
        for (side, at), (signals, attack) in measured.items():
            if outcome := self.outcome(signals, attack):
                for measure, name in charts.OUTCOMES.items():
                    row = {"side": side, "at": at, "measure": measure}
                    rows.append(row | charts.interval(outcome[name], "value"))
        return rows


def sentences(outcomes: Sequence[Mapping[str, Any]], at: Any, place: str) -> list[str]:
    """What came of each side at a place, and of what they are compared with."""
    words: dict[str, list[str]] = {side: [] for side in COLOURS}
    for row in outcomes:
        if row["at"] in (at, None):
            interval = f"{row['low']:.3f} to {row['high']:.3f}"
            text = f"{row['measure']} {row['value']:.3f} ({interval})"
            words.setdefault(row["side"], []).append(text)
    return [
        f"{side}{f' at {place}' if side in COLOURS else ''}: {', '.join(own) or 'not trained yet'}."
        for side, own in words.items()
    ]


def members_found(attacks: Mapping[str, Arrays], fpr: float = SURE) -> pd.DataFrame:
    """The members that each attack finds while at most a share `fpr` of a target's non-members
    passes for one.

    A row a member and target, the surest first: `attack`, `target` (its place), `index` in the data
    set, `score`.
    """
    import pandas as pd

    made = []
    for name, found in attacks.items():
        scores = np.atleast_2d(found["scores"])
        index, member = (np.broadcast_to(found[each], scores.shape) for each in ("index", "member"))
        for target, (own, inside, at) in enumerate(zip(scores, member, index, strict=True)):
            hit = np.flatnonzero(inside & (own > audit.cutoff_at_fpr(own[~inside], fpr)))
            hit = hit[np.argsort(-own[hit], kind="stable")]
            made.append(
                pd.DataFrame(
                    {"attack": name, "target": target, "index": at[hit], "score": own[hit]}
                )
            )
    return (
        pd.concat(made, ignore_index=True)
        if made
        else pd.DataFrame(columns=["attack", "target", "index", "score"])
    )
