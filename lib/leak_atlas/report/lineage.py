"""Where the numbers of a notebook come from: keys, seeds, devices, versions, how intervals are
widened, self-audits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from leak_atlas import duration
from leak_atlas.audit import Estimate, tie_mass
from leak_atlas.report.ledger import POPULATIONS
from leak_atlas.report.markup import drawn, table
from leak_atlas.report.tables import plain

__all__ = ["Provenance", "provenance"]


PARTS = ("data", "design", "model")  # of a training: what makes its population


@dataclass(frozen=True)
class Provenance:
    """Lines of (what, value); `keys` are the looked-up steps' short keys by kind.

    `populations`: a digest for each data set, design and architecture that is trained from scratch.
    Notebooks that have one in common look at the same members, so that both find something counts
    once.
    """

    lines: tuple[tuple[str, str], ...]
    keys: Mapping[str, tuple[str, ...]]
    populations: tuple[str, ...] = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        page = drawn(
            "provenance.html", head=("Provenance", ""), lines=self.lines, keys=self.keys, numeric=()
        )
        return {
            "text/html": str(page),
            "text/plain": str(self),
            POPULATIONS: list(self.populations),
        }

    def __str__(self) -> str:
        keys = "\n".join(f"{kind}: {' '.join(keys)}" for kind, keys in self.keys.items())
        return table("txt", ("", ""), self.lines).strip() + "\n" + keys

    __repr__ = __str__


def provenance(results: Any, **extra: Any) -> Provenance:
    """What `lab.realize` returned, as a reader needs it to trust or to repeat it. `extra` adds
    lines.
    """
    steps = list(
        {step.key: step for step in [*results.steps, *getattr(results, "trainings", [])]}.values()
    )
    metas = {step.key: dict(results.meta(step) or {}) for step in steps}
    counts = Counter(type(step).__name__ for step in steps)
    kinds = ", ".join(f"{n} {kind}" for kind, n in counts.items())
    trained = [
        metas[step.key].get("seconds") or 0.0 for step in steps if type(step).__name__ == "Train"
    ]
    days = sorted({str(meta["finished"])[:10] for meta in metas.values() if meta.get("finished")})
    versions = [pair for meta in metas.values() for pair in (meta.get("versions") or {}).items()]
    seeded = [*steps, *(getattr(step, "design", None) for step in steps)]
    lines: list[tuple[str, str]] = [
        ("Steps behind this page", f"{len(steps)}: {kinds}" if steps else "none"),
        ("Seeds", _list(getattr(each, "seed", None) for each in seeded)),
        ("Precision", _list(getattr(step, "precision", None) for step in steps)),
        ("Device", _list(meta.get("device") for meta in metas.values())),
        (
            "Training time",
            duration(sum(trained)) + f" in {len(trained)} trainings" if trained else "",
        ),
        ("Versions", _list(f"{name} {version}" for name, version in versions)),
        (
            "Revisions",
            _list(f"{type(step).__name__} {step.revision}" for step in steps if step.revision != 1),
        ),
        ("Computed", " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))),
        *((name[:1].upper() + name[1:], plain(value)) for name, value in extra.items()),
        *_widened(steps),
        *_audits(results, steps),
        *_ties(results, steps),
    ]
    keys = {
        kind: tuple(step.key[:10] for step in steps if type(step).__name__ == kind)
        for kind in counts
    }
    return Provenance(tuple(line for line in lines if line[1]), keys, _populations(steps))


def _list(values: Iterable[Any]) -> str:
    found = sorted(
        {str(value) for value in values if value not in (None, "")},
        key=lambda text: (len(text), text),
    )
    return ", ".join(found[:24]) + (f", ... ({len(found)})" if len(found) > 24 else "")


def _populations(steps: Iterable[Any]) -> tuple[str, ...]:
    """One digest for each data set, design and architecture of trainings from scratch."""
    roots = [
        step
        for step in steps
        if type(step).__name__ == "Train" and getattr(step, "parent", None) is None
    ]
    of = {
        " ".join(str(getattr(getattr(step, name, None), "key", "")) for name in PARTS)
        for step in roots
    }
    return tuple(sorted(sha256(each.encode()).hexdigest()[:10] for each in of))


def _widened(steps: Iterable[Any]) -> Iterable[tuple[str, str]]:
    """Whose intervals are widened because the targets are each other's shadows."""
    wide = [step for step in steps if getattr(step, "design_effect", 1) > 1]
    found = {
        f"{s.design_effect:g} for {type(s.attacker).__name__} {getattr(s.attacker, 'mode', '')}"
        for s in wide
    }
    if found:
        times = ", ".join(sorted(found))
        said = "TPRs need none; above 2 with fewer than five targets: below resolution"
        yield (
            "Targets are each other's shadows",
            f"variance of mean AUC and best accuracy times {times}; {said}",
        )


def _audits(results: Any, steps: Iterable[Any]) -> Iterable[tuple[str, str]]:
    """Is the tool itself honest? One line for each population that was audited."""
    for step in steps:
        if type(step).__name__ != "SelfAudit":
            continue
        arrays, said = results[step], []
        if "duplicates" in arrays:
            doubled = int(sum(arrays["duplicates"]))
            said.append(
                f"✗ {doubled} duplicates across splits"
                if doubled
                else "✓ no duplicate across a split"
            )
        if "blind" in arrays:
            value, low, high = map(float, arrays["blind"])
            # below, it tells nothing: it was fitted above
            mark, can = ("✓", "cannot") if low <= 0.5 else ("✗", "can")
            told = f"a blind classifier on the inputs {can} tell members from non-members"
            said.append(f"{mark} {told}: AUC {Estimate(value, low, high):.3f}")
        name = getattr(getattr(step, "data", None), "name", "")
        yield f"Self-audit of {name}".removesuffix(" of "), "; ".join(said) or "nothing to say"


def _ties(results: Any, steps: Iterable[Any]) -> Iterable[tuple[str, str]]:
    """The largest share of samples that one target's attack cannot tell apart at the top, by kind
    of attack.
    """
    worst: dict[str, float] = {}
    for step in steps:
        if type(step).__name__ == "Attack":
            name = type(step.attacker).__name__
            worst[name] = max(worst.get(name, 0.0), float(tie_mass(results[step]["scores"]).max()))
    if worst:
        yield (
            "Tie mass at the top score",
            ", ".join(f"{name} {share:.3f}" for name, share in worst.items()),
        )
