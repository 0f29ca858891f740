"""What is stored, as explorers read it: results, and what came of an attack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from leak_atlas import BadInput, audit, nearest
from leak_atlas.audit import Estimate
from leak_atlas.engine import store
from leak_atlas.explore import records
from leak_atlas.explore.charts import OUTCOMES
from leak_atlas.explore.look import COLOURS
from leak_atlas.explore.records import Row
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import Attack, Attacker, Population, Signals, Step

# over the models: "accuracy" on test samples, and all of `audit.audit`
Outcome: TypeAlias = Mapping[str, Estimate]
LOW = (0.01, 0.001)  # false positive rates at which true positives are counted


class Measured(NamedTuple):
    """The outputs of some networks, and how these are attacked by others."""

    signals: tuple[Signals, ...]
    attack: Attack


def measured(
    models: Population, attackers: Mapping[str, Attacker], attack: str, targets: int | None = None
) -> Measured:
    """The signals of the first models (all, by default), and the attack on these. BadInput on an
    unknown attack.
    """
    if attack not in attackers:
        close = nearest(attack, list(attackers))
        raise BadInput(f"there is no attack '{attack}' to look at{close}")
    return Measured(models.signals()[:targets], models.attack(attackers[attack], targets))


class Shelf:
    """Stored results, each read and counted once. Nothing is computed: what is missing or damaged
    is not there.
    """

    def __init__(self) -> None:
        self._derived = dict[Any, Any]()
        self._read = dict[str, Arrays]()

    def __getitem__(self, step: Step) -> Arrays:
        """The arrays of a step, as from what `lab.realize` gives. KeyError where it is not there."""
        results = self.results([step])
        if results is None:
            raise KeyError(step.key)
        return results[0]

    def results(self, steps: Sequence[Step]) -> list[Arrays] | None:
        """The arrays of each step; None where one is not there."""
        arrays = []
        for step in steps:
            if step.key not in self._read and store.has(step.key):
                try:
                    self._read[step.key] = store.read(step.key).arrays
                except store.Corrupt:
                    store.discard(step.key)  # so that it is computed again when it is asked for
            if step.key not in self._read:
                return None
            arrays.append(self._read[step.key])
        return arrays

    def derived(self, make: Callable[..., Any], steps: Sequence[Step], *given: Any) -> Any:
        """`make(results, *given)` of the results of some steps, made once; None where one of them
        is not there.
        """
        keys = [step.key for step in steps]
        key = make, given, *keys
        if key not in self._derived:
            results = self.results(steps)
            if results is None:
                return None
            self._derived[key] = make(results, *given)
        return self._derived[key]

    def outcome(self, signals: Sequence[Step], attack: Attack) -> Outcome | None:
        """What came of the models with these `signals`; None where that is not there."""
        return self.derived(_outcome, [*signals, attack], attack.design_effect)

    def outcomes(self, measured: Mapping[tuple[str, Any], Measured]) -> list[Row]:
        """Rows of `charts.outcomes` for what is stored, by side and place (None: any)."""
        rows = []
        for (side, at), (signals, attack) in measured.items():
            outcome = self.outcome(signals, attack)
            if not outcome:
                continue
            for measure, name in OUTCOMES.items():
                row = {"side": side, "at": at, "measure": measure}
                rows.append(row | records.interval(outcome[name], "value"))
        return rows


def _outcome(results: Sequence[Arrays], design_effect: Any) -> Outcome:
    """The last of the results is the attack's."""
    *signals, attack = results
    accuracies = [float(each["accuracy_test"]) for each in signals]
    of_test = audit.mean_ci(accuracies, bounds=(0, 1))
    return audit.audit(attack, LOW, design_effect) | {"accuracy": of_test}


def sentences(
    outcomes: Sequence[Row], at: Any = None, place: str = "", sides: Iterable[str] = COLOURS
) -> list[str]:
    """What came of each side at a place, and of what they are compared with."""
    by_side: dict[str, list[str]] = {side: [] for side in sides}
    for row in outcomes:
        if row["at"] in (at, None):
            text = records.sentence(row, "value", row["measure"], digits=3)
            by_side.setdefault(row["side"], []).append(text)
    texts = []
    for side, own in by_side.items():
        name = f"{side} at {place}" if place and side in COLOURS else side
        outcome = ", ".join(own) or "not trained yet"
        texts.append(f"{name}: {outcome}.")
    return texts
