"""Where the numbers of a notebook come from: seeds, devices, versions, how intervals are
widened, self-audits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leak_atlas import duration
from leak_atlas.audit import Estimate
from leak_atlas.report.markup import drawn, table
from leak_atlas.report.tables import plain

__all__ = ["Provenance", "provenance"]


@dataclass(frozen=True)
class Provenance:
    """Lines of (what, value), and a sentence on how the rules were set. Pages fold both."""

    lines: tuple[tuple[str, str], ...]
    rules: str = ""  # "" where the notebook names no seed
    pilot: bool = False  # the page shows a seed on which its rules were set

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
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
    kinds = Counter(type(step).__name__ for step in steps)
    metas = [results.meta(step) or {} for step in steps]
    days = sorted(str(meta["finished"])[:10] for meta in metas if meta.get("finished"))
    versions = [pair for meta in metas for pair in (meta.get("versions") or {}).items()]
    seconds = [
        meta.get("seconds") or 0.0
        for step, meta in zip(steps, metas, strict=True)
        if type(step).__name__ == "Train"
    ]
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    designs = [getattr(step, "design", None) for step in steps]
    revised = [f"{type(step).__name__} {step.revision}" for step in steps if step.revision != 1]
    lines = {
        "Steps behind this page": f"{len(steps)}: {counts}" if steps else "none",
        "Seeds": _list(getattr(each, "seed", None) for each in [*steps, *designs]),
        "Precision": _list(getattr(step, "precision", None) for step in steps),
        "Device": _list(meta.get("device") for meta in metas),
        "Training time": f"{duration(sum(seconds))} in {len(seconds)} trainings" if seconds else "",
        "Versions": _list(f"{name} {version}" for name, version in versions),
        "Revisions": _list(revised),
        "Computed": " to ".join(dict.fromkeys([*days[:1], *days[-1:]])),
        "Targets are each other's shadows": _widened(steps),
    }
    for name, value in extra.items():
        lines[name[:1].upper() + name[1:]] = plain(value)
    for step in steps:
        if type(step).__name__ == "SelfAudit":
            name = getattr(getattr(step, "data", None), "name", "the data")
            lines[f"Self-audit of {name}"] = _audited(results[step])
    shown = tuple(line for line in lines.items() if line[1])
    return Provenance(shown, rules(seed, pilots), seed in pilots)


def rules(seed: int | None, pilots: Sequence[int]) -> str:
    """On which seeds the rules of a page were set, and which seed it judges; "" of no seed at all."""
    sentences = []
    if pilots:
        some = [str(pilot) for pilot in pilots]
        named = f"{', '.join(some[:-1])} and {some[-1]}" if len(some) > 1 else some[0]
        seeds = "seeds" if len(some) > 1 else "seed"
        sentences.append(f"Claims, borders and controls were set on {seeds} {named}.")
    if seed in pilots:
        sentences.append("This page shows a pilot seed; its verdicts are not an evaluation.")
    elif seed is not None:
        sentences.append(f"This page judges seed {seed}.")
    return " ".join(sentences)


def _list(values: Iterable[Any]) -> str:
    texts = {str(value) for value in values if value not in (None, "")}
    found = sorted(texts, key=lambda text: (len(text), text))
    return ", ".join(found[:24]) + (f", ... ({len(found)})" if len(found) > 24 else "")


def _widened(steps: Iterable[Any]) -> str:
    """By how much intervals are widened because the targets are each other's shadows."""
    effects = set()
    for step in steps:
        if getattr(step, "design_effect", 1) > 1:
            mode = getattr(step.attacker, "mode", "")
            effects.add(f"{step.design_effect:g} for {type(step.attacker).__name__} {mode}".strip())
    times = "variance of mean AUC and best accuracy times"
    return f"{times} {', '.join(sorted(effects))}" if effects else ""


def _audited(arrays: Mapping[str, Any]) -> str:
    """Is the tool itself honest? What the self-audit of a population found."""
    findings = []
    if "duplicates" in arrays:
        count = int(sum(arrays["duplicates"]))
        findings.append(f"{'✗' if count else '✓'} {count or 'no'} duplicates across splits")
    if "blind" in arrays:
        value, low, high = (float(number) for number in arrays["blind"])
        auc = Estimate(value, low, high)
        mark, can = ("✗", "can") if auc.low > 0.5 else ("✓", "cannot")
        text = f"a blind classifier on the inputs {can} tell members from non-members"
        findings.append(f"{mark} {text}: AUC {auc:.3f}")
    return "; ".join(findings) or "no finding"
