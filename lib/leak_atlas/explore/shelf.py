"""What is stored, as explorers read it: results, what came of an attack, the members that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from leak_atlas import BadInput, audit, nearest
from leak_atlas.audit import Estimate
from leak_atlas.engine import store
from leak_atlas.explore import charts
from leak_atlas.explore.look import COLOURS
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import Attack, Attacker, Population, Signals, Step

# over the models: "accuracy" on test samples, and all of `audit.audit`
Outcome: TypeAlias = Mapping[str, Estimate]
Measured: TypeAlias = tuple[tuple[Signals, ...], Attack]
LOW = (0.01, 0.001)  # false positive rates at which true positives are counted


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
        self._derived = dict[Any, Any]()
        self._read, self._outcomes = dict[str, Arrays](), dict[tuple[str, ...], Outcome]()

    def __getitem__(self, step: Step) -> Arrays:
        """The arrays of a step, as from what `lab.realize` gives. KeyError where it is not there."""
        results = self.results([step])
        if results is None:
            raise KeyError(step.key)
        return results[0]

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

    def derived(self, make: Callable[..., Any], steps: Sequence[Step], *given: Any) -> Any:
        """`make(results, *given)` of the results of some steps, made once; None where one of them is
        not there.
        """
        key = (make, given, *(step.key for step in steps))
        if key not in self._derived:
            results = self.results(steps)
            if results is None:
                return None
            self._derived[key] = make(results, *given)
        return self._derived[key]

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


def sentences(
    outcomes: Sequence[Mapping[str, Any]],
    at: Any = None,
    place: str = "",
    sides: Iterable[str] = COLOURS,
) -> list[str]:
    """What came of each side at a place, and of what they are compared with."""
    words: dict[str, list[str]] = {side: [] for side in sides}
    for row in outcomes:
        if row["at"] in (at, None):
            interval = f"{row['low']:.3f} to {row['high']:.3f}"
            text = f"{row['measure']} {row['value']:.3f} ({interval})"
            words.setdefault(row["side"], []).append(text)
    return [
        f"{side}{f' at {place}' if place and side in COLOURS else ''}: {', '.join(own) or 'not trained yet'}."
        for side, own in words.items()
    ]
