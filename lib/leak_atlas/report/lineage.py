"""Where the numbers of a notebook come from: keys, seeds, devices, versions, how intervals are
widened, self-audits.
"""

from __future__ import annotations

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
    keys = {kind: tuple(step.key[:10] for step in each) for kind, each in kinds.items()}
    populations = _populations(kinds.get("Train", ()))
    return Provenance(tuple(line for line in lines if line[1]), keys, populations)


def _list(values: Iterable[Any]) -> str:
    found = sorted(
        {str(value) for value in values if value not in (None, "")},
        key=lambda text: (len(text), text),
    )
    return ", ".join(found[:24]) + (f", ... ({len(found)})" if len(found) > 24 else "")


def _populations(trainings: Iterable[Any]) -> tuple[str, ...]:
    """One digest for each data set, design and architecture of trainings from scratch."""
    populations = set()
    for step in trainings:
        if getattr(step, "parent", None) is None:
            parts = [getattr(getattr(step, name, None), "key", "") for name in PARTS]
            populations.add(" ".join(map(str, parts)))
    return tuple(sorted(sha256(each.encode()).hexdigest()[:10] for each in populations))


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
