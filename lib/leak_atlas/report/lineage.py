"""Where the numbers of a notebook come from: seeds, devices, versions, how intervals are
widened, self-audits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from leak_atlas import duration
from leak_atlas.audit import Estimate, tie_mass
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
    metas = [dict(results.meta(step) or {}) for step in steps]
    kinds: dict[str, list[Any]] = {}
    seconds = []
    for step, meta in zip(steps, metas, strict=True):
        kinds.setdefault(type(step).__name__, []).append(step)
        if type(step).__name__ == "Train":
            seconds.append(meta.get("seconds") or 0.0)
    counts = ", ".join(f"{len(each)} {kind}" for kind, each in kinds.items())
    days = sorted(str(meta["finished"])[:10] for meta in metas if meta.get("finished"))
    versions = [pair for meta in metas for pair in (meta.get("versions") or {}).items()]
    revised = [step for step in steps if step.revision != 1]
    trained = f"{duration(sum(seconds))} in {len(seconds)} trainings" if seconds else ""
    designs = [getattr(step, "design", None) for step in steps]
    lines = [
        ("Steps behind this page", f"{len(steps)}: {counts}" if steps else "none"),
        ("Seeds", _list(getattr(each, "seed", None) for each in [*steps, *designs])),
        ("Precision", _list(getattr(step, "precision", None) for step in steps)),
        ("Device", _list(meta.get("device") for meta in metas)),
        ("Training time", trained),
        ("Versions", _list(f"{name} {version}" for name, version in versions)),
        ("Revisions", _list(f"{type(step).__name__} {step.revision}" for step in revised)),
        ("Computed", " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))),
    ]
    lines += [(name[:1].upper() + name[1:], plain(value)) for name, value in extra.items()]
    lines += [*_widened(steps), *_audits(results, kinds.get("SelfAudit", ()))]
    lines += _ties(results, kinds.get("Attack", ()))
    shown = tuple(line for line in lines if line[1])
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
    found = sorted(
        {str(value) for value in values if value not in (None, "")},
        key=lambda text: (len(text), text),
    )
    return ", ".join(found[:24]) + (f", ... ({len(found)})" if len(found) > 24 else "")


def _widened(steps: Iterable[Any]) -> Iterable[tuple[str, str]]:
    """Whose intervals are widened because the targets are each other's shadows."""
    effects = {
        f"{s.design_effect:g} for {type(s.attacker).__name__} {getattr(s.attacker, 'mode', '')}"
        for s in steps
        if getattr(s, "design_effect", 1) > 1
    }
    if effects:
        times = f"variance of mean AUC and best accuracy times {', '.join(sorted(effects))}"
        rest = "TPRs need none; above 2 with fewer than five targets: below resolution"
        yield "Targets are each other's shadows", f"{times}; {rest}"


def _audits(results: Any, audits: Iterable[Any]) -> Iterable[tuple[str, str]]:
    """Is the tool itself honest? One line for each population that was audited."""
    for step in audits:
        arrays, lines = results[step], []
        if "duplicates" in arrays:
            count = int(sum(arrays["duplicates"]))
            none = "✓ no duplicate across a split"
            lines.append(f"✗ {count} duplicates across splits" if count else none)
        if "blind" in arrays:
            value, low, high = map(float, arrays["blind"])
            auc = Estimate(value, low, high)
            mark, can = ("✗", "can") if auc.low > 0.5 else ("✓", "cannot")
            text = f"a blind classifier on the inputs {can} tell members from non-members"
            lines.append(f"{mark} {text}: AUC {auc:.3f}")
        name = getattr(getattr(step, "data", None), "name", "")
        yield f"Self-audit of {name}".removesuffix(" of "), "; ".join(lines) or "nothing to say"


def _ties(results: Any, attacks: Iterable[Any]) -> list[tuple[str, str]]:
    """The largest share of samples that one target's attack cannot tell apart at the top, by kind
    of attack.
    """
    worst: dict[str, float] = {}
    for step in attacks:
        name, share = type(step.attacker).__name__, tie_mass(results[step]["scores"]).max()
        worst[name] = max(worst.get(name, 0.0), float(share))
    shares = ", ".join(f"{name} {share:.3f}" for name, share in worst.items())
    return [("Tie mass at the top score", shares)]
