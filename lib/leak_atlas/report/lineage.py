"""Where the numbers of a notebook come from: seeds, devices, versions, how intervals are
widened, self-audits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leak_atlas import duration
from leak_atlas.audit import Estimate
from leak_atlas.report.markup import drawn, table
from leak_atlas.report.tables import plain

__all__ = ["Provenance", "provenance"]

CLEAN = "✓ a blind classifier on the inputs cannot"  # of a self-audit


@dataclass(frozen=True)
class Provenance:
    """Lines of (what, value), and a sentence on how the rules were set. Pages fold both."""

    lines: tuple[tuple[str, str], ...]
    rules: str = ""  # "" where the notebook names no seed
    pilot: bool = False  # the page shows a seed on which its rules were set

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        page = drawn(
            "provenance.html",
            head=("Provenance", ""),
            numeric=(),
            rows=list(self.lines),
            rules=self.rules,
            pilot=self.pilot,
        )
        return {"text/html": str(page), "text/plain": str(self)}

    def __str__(self) -> str:
        rules = [f"How the rules were set: {self.rules}"] if self.rules else []
        return "\n".join([*rules, table("txt", ("", ""), self.lines).strip()])

    __repr__ = __str__


def provenance(
    results: Any, *, seed: int | None = None, pilots: Sequence[int] = (), **extra: Any
) -> Provenance:
    """What `lab.realize` returned, as a reader needs it to trust or to repeat it.

    `seed` is the one that the page judges, `pilots` are those on which its claims, borders and
    controls were set. `extra` adds lines.
    """
    every = [*results.steps, *getattr(results, "trainings", [])]
    steps = list({step.key: step for step in every}.values())
    by_kind: dict[str, list[Any]] = {}
    for step in steps:
        by_kind.setdefault(type(step).__name__, []).append(step)
    counts = [f"{len(alike)} {kind}" for kind, alike in by_kind.items()]
    lines = {
        "Steps behind this page": f"{len(steps)}: {', '.join(counts)}" if steps else "none",
        "Seeds": _seeds(steps),
        **_circumstances(steps, results),
        "Intervals": _widened(steps),
    }
    for name, value in extra.items():
        lines[name.capitalize()] = plain(value)
    for step in by_kind.get("SelfAudit", ()):
        lines[f"Self-audit of {step.data.name}"] = _audited(results[step])
    shown = tuple(line for line in lines.items() if line[1])
    return Provenance(shown, rules(seed, pilots), seed in pilots)


def _seeds(steps: Sequence[Any]) -> str:
    designs = [getattr(step, "design", None) for step in steps]
    return _list(getattr(seeded, "seed", None) for seeded in (*steps, *designs))


def _circumstances(steps: Sequence[Any], results: Any) -> dict[str, str]:
    """On what, for how long, with which versions and when these steps were computed."""
    seconds = []
    devices = []
    processors = []
    days = []
    versions: list[str] = []
    for step in steps:
        meta = results.meta(step)
        if type(step).__name__ == "Train":
            seconds.append(meta.get("seconds", 0.0))
        if meta:
            devices.append(meta["device"])
            processors.append(meta.get("processor"))  # older results have none
            days.append(str(meta["finished"])[:10])
            versions += [f"{name} {version}" for name, version in meta["versions"].items()]
    trained = f"{duration(sum(seconds))} in {len(seconds)} trainings" if seconds else ""
    return {
        "Device": _list(devices),
        "Processor": _list(processors),
        "Training time": trained,
        "Versions": _list(versions),
        "Computed": _list(days),
    }


def rules(seed: int | None, pilots: Sequence[int]) -> str:
    """On which seeds the rules of a page were set, and which seed it judges; "" of no seed at all."""
    sentences = []
    if pilots:
        *others, last = (str(pilot) for pilot in pilots)
        named = f"{', '.join(others)} and {last}" if others else last
        seeds = "seeds" if len(pilots) > 1 else "seed"
        sentences.append(f"Claims, borders and controls were set on {seeds} {named}.")
    if seed in pilots:
        sentences.append("This page shows a pilot seed; its verdicts are not an evaluation.")
    elif seed is not None:
        sentences.append(f"This page judges seed {seed}.")
        if pilots:
            sentences.append(
                "Rules that changed after quick was judged first: docs/rule_changes.md."
            )
    return " ".join(sentences)


def _list(values: Iterable[Any]) -> str:
    texts = {str(value) for value in values if value not in (None, "")}
    ordered = sorted(texts, key=lambda text: (len(text), text))
    return ", ".join(ordered[:24]) + (f", ... ({len(ordered)})" if len(ordered) > 24 else "")


def _widened(steps: Iterable[Any]) -> str:
    """By how much intervals are widened because the targets are each other's shadows."""
    effects = set()
    for step in steps:
        if getattr(step, "design_effect", 1) > 1:
            mode = getattr(step.attacker, "mode", "")
            effects.add(f"{step.design_effect:g} for {type(step.attacker).__name__} {mode}".strip())
    if not effects:
        return ""
    factors = ", ".join(sorted(effects))
    why = "targets serve each other as shadow models, so their AUCs are not independent"
    return (
        f"{why}: the variance of the mean AUC, and of the best accuracy, is multiplied by {factors}"
    )


def _audited(arrays: Mapping[str, Any]) -> str:
    """Is the tool itself honest? What the self-audit of a population found."""
    count = int(sum(arrays["duplicates"]))
    mark = "✗" if count else "✓"
    duplicates = f"{mark} {count or 'no'} duplicates across splits"
    if "blind" not in arrays:
        return duplicates
    value, low, high = map(float, arrays["blind"])
    auc = Estimate(value, low, high)
    finding = "✗ a blind classifier on the inputs can" if low > 0.5 else CLEAN
    return f"{duplicates}; {finding} tell members from non-members: AUC {auc:.3f}"
