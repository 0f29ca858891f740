"""What each kind of step computes. The only place where recipes meet the rooms that do the work."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lib import BadInput, store
from lib.lab.plans import Job, work
from lib.recipe import (
    BASE,
    RMIA,
    Anatomy,
    At,
    Attack,
    Data,
    Distance,
    Edit,
    Hold,
    LiRA,
    Rewind,
    SelfAudit,
    Signals,
    StageProbe,
    State,
    Step,
    Threshold,
    Train,
)

if TYPE_CHECKING:
    import torch

Arrays = dict[str, np.ndarray]


def run(job: Job) -> float:
    """Computes and stores what a job yields; seconds it took. What is stored already is not written again."""
    start = time.perf_counter()
    made = train(job.step, job.asked) if isinstance(job.step, Train) else {job.key: COMPUTE[type(job.step)](job.step)}
    seconds = time.perf_counter() - start
    meta = _meta(job.step, seconds)
    for step in reversed(job.yields):  # the training itself last: if it is there, so is what was asked of it
        store.write(step.key, step.record(), made[step.key], meta)
    return seconds


def _meta(step: Step, seconds: float) -> dict[str, Any]:
    import numpy

    meta: dict[str, Any] = {
        "seconds": round(seconds, 3),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), "numpy": numpy.__version__},
        "device": "cpu",
    }
    if not isinstance(step, Attack | SelfAudit):
        import torch

        meta["versions"]["torch"] = torch.__version__
        meta["threads"] = torch.get_num_threads()
        meta["device"] = _device_name()
        meta["operations"] = work(step)
    return meta


def device() -> str:
    """Where models are trained."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _device_name() -> str:
    import torch

    return torch.cuda.get_device_name() if device() == "cuda" else "cpu"


# ---------------------------------------------------------------- models and their states


def _net(step: Train) -> Any:
    from lib.data import registry
    from lib.models import build

    entry = registry.find(step.data.name)
    return build(step.model, entry.shape[-1], len(entry.classes), step.seed).to(device())


def weights(state: State) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """The values of a state, and the masks of what is held in all that follows."""
    import torch

    from lib import rewinding

    if isinstance(state, Edit):
        values, held = weights(state.parent)
        if isinstance(state, Rewind):
            return rewinding.rewind(values, weights(At(state.origin(), "init"))[0], state.start), held
        if isinstance(state, Hold):
            return values, held | rewinding.hold(values, state.until)
    return {name: torch.tensor(array) for name, array in store.read(state.key).arrays.items() if "/" not in name}, {}


def load(state: State) -> Any:
    """The network in a state, ready to be asked."""
    net = _net(state.training)
    net.load_state_dict(weights(state)[0])
    return net.eval()


def table(step: Train, rows: tuple[int, ...] | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Roles `(rows, n)` over the samples that the design uses, their indices `(n,)` and labels `(n,)`."""
    return roles(step.data, step.design, rows if rows is not None else (step.row,))


def roles(data: Data, design: Any, rows: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from lib.data import designs, readers

    samples = readers.load(data.name, data.pixels)
    index = designs.used(design, samples.labels, samples.train)
    return designs.roles(design, samples.labels, samples.train, rows)[:, index], index, samples.labels[index]


def train(step: Train, asked: list[At]) -> dict[str, Arrays]:
    """Arrays of the training's end (weights, `history/...`) and of each epoch asked of it, by key."""
    import torch

    from lib.data.designs import Role
    from lib.data.resident import resident
    from lib.training.loop import fit

    role, index, _ = table(step)
    net = _net(step)
    held: dict[str, torch.Tensor] = {}
    if step.parent:
        values, held = weights(step.parent)
        net.load_state_dict(values)
    dev = index[role[0] == Role.DEV]
    wanted = [at.when for at in asked]
    trajectory = fit(
        net,
        resident(step.data, device()),
        torch.as_tensor(index[role[0] == Role.MEMBER]),
        step.schedule,
        step.objective,
        seed=step.seed,
        held=held,
        dev=torch.as_tensor(dev) if len(dev) else None,
        precision=step.precision,
        wanted=wanted,
    )

    def arrays(when: int | str) -> Arrays:
        if when not in trajectory.states:
            raise ValueError(f"epoch {when} was never reached: the training stopped early, ask for an earlier one")
        return {name: value.detach().cpu().contiguous().numpy() for name, value in trajectory.states[when].items()}

    history = {f"history/{name}": np.asarray(values) for name, values in trajectory.history.items()}
    return {step.key: arrays("last") | history} | {at.key: arrays(at.when) for at in asked}


# ---------------------------------------------------------------- what is read off them


def signals(step: Signals) -> Arrays:
    from lib.data.designs import Role
    from lib.data.resident import resident
    from lib.training.signals import logits

    own = step.of.training
    role, index, labels = table(own)
    found = logits(load(step.of), resident(own.data, device()), _tensor(index), step.views)
    plain, views = (part.cpu().numpy() for part in found)
    right = plain.argmax(1) == labels
    shares = {
        f"accuracy_{r.name.lower()}": right[role[0] == r] for r in (Role.MEMBER, Role.NONMEMBER, Role.TEST, Role.DEV)
    }
    return {
        "logits": plain,
        "views": views,
        "labels": labels,
        "index": index,
        "role": role[0],
        **{name: np.asarray(part.mean()) for name, part in shares.items() if len(part)},
    }


def _tensor(index: np.ndarray) -> torch.Tensor:
    import torch

    return torch.as_tensor(index)


def distance(step: Distance) -> Arrays:
    from lib.data.designs import Role
    from lib.data.resident import resident
    from lib.localization.layers import distances, part_names

    a, b = step.a.training, step.b.training
    role_a, index, _ = table(a)
    role_b, _, _ = table(b)
    pool = np.isin(role_a[0], (Role.MEMBER, Role.NONMEMBER))
    net_a, net_b = load(step.a), load(step.b)
    found = distances(net_a, net_b, resident(a.data, device()), _tensor(index[pool]), step.parts)
    return found | {
        "parts": _text(part_names(net_a, step.parts)),
        "index": index[pool],
        "seen_a": role_a[0][pool] == Role.MEMBER,
        "seen_b": role_b[0][pool] == Role.MEMBER,
    }


def _text(words: list[str] | tuple[str, ...]) -> np.ndarray:
    """Words as an array of bytes: safetensors holds numbers."""
    return np.frombuffer("\n".join(words).encode(), dtype=np.uint8)


def stage_probe(step: StageProbe) -> Arrays:
    from lib.data.designs import Role
    from lib.data.resident import resident
    from lib.localization.layers import part_names, probe

    own = step.of.training
    role, index, _ = table(own)
    net = load(step.of)
    fitted, held_out = (_tensor(index[role[0] == r]) for r in (Role.MEMBER, Role.TEST))
    accuracy = probe(net, resident(own.data, device()), fitted, held_out, step.dimensions, own.seed)
    return {"accuracy": np.asarray(accuracy), "parts": _text(part_names(net, "stages")[: len(accuracy)])}


def anatomy(step: Anatomy) -> Arrays:
    from lib.data import registry
    from lib.training.cost import anatomy as count

    entry = registry.find(step.data.name)
    counts = count(step.model, entry.shape[-1], len(entry.classes), step.data.pixels or entry.shape[0])
    return {name: _text(list(value)) if name == "parts" else np.asarray(value) for name, value in counts.items()}


def self_audit(step: SelfAudit) -> Arrays:
    """`duplicates (rows,)`; `blind (3,)`: the blind classifier's AUC on the first row, with its interval."""
    from lib.data import honesty, readers
    from lib.data.designs import Role

    role, index, _ = roles(step.data, step.design, step.rows)
    x = readers.load(step.data.name, step.data.pixels).x[index]
    halved = next((row for row in role if (row == Role.NONMEMBER).any()), None)
    found = {"duplicates": np.asarray([honesty.duplicates(x, row) for row in role])}
    if halved is not None:
        pool = np.isin(halved, (Role.MEMBER, Role.NONMEMBER))
        blind = honesty.blind(x[pool], halved[pool] == Role.MEMBER, step.design.seed)
        found["blind"] = np.asarray([blind.value, blind.low, blind.high])
    return found


# ---------------------------------------------------------------- attacks


def attack(step: Attack) -> Arrays:
    """`scores (T, n)` and `member (T, n)` over the pool; shadows that share a target's pair are left out."""
    from lib.data.designs import Role, pair

    shadows = step.shadows or step.targets
    own = step.targets[0].training
    _, index, labels = table(own)
    views = getattr(step.attacker, "views", 1)
    read: dict[str, Arrays] = {}
    for state in (*step.targets, *shadows):
        if state.key not in read:
            read[state.key] = store.read(Signals(state, views).key).arrays
    role = {key: arrays["role"] for key, arrays in read.items()}
    pool = np.isin(role[step.targets[0].key], (Role.MEMBER, Role.NONMEMBER))
    population = role[step.targets[0].key] == Role.TEST

    scores, member, thresholds = [], [], []
    for target in step.targets:
        mine = pair(own.design, target.training.row)
        helpers = [s for s in shadows if s.key != target.key and pair(own.design, s.training.row) != mine]
        if not helpers:
            raise BadInput(f"row {target.training.row} has no shadow outside its own pair: ask for more models")
        case = Case(
            read[target.key],
            [read[s.key] for s in helpers],
            np.stack([role[s.key] for s in helpers]),
            labels,
            pool,
            population,
        )
        score, threshold = ATTACKS[type(step.attacker)](step.attacker, case)
        scores.append(score)
        thresholds.append(threshold)
        member.append(role[target.key][pool] == Role.MEMBER)
    return {
        "scores": np.stack(scores),
        "member": np.stack(member),
        "thresholds": np.asarray(thresholds),
        "index": index[pool],
    }


class Case(NamedTuple):
    """What an attacker has: signals of the target and of its shadows on all samples, and the shadows' roles.

    The target is judged on its `pool`, RMIA's ratios are compared with those of the `population`: both Boolean `(n,)`.
    """

    target: Arrays
    shadows: list[Arrays]
    roles: np.ndarray  # (M, n)
    labels: np.ndarray
    pool: np.ndarray
    population: np.ndarray

    @property
    def member(self) -> np.ndarray:
        """Whether a shadow trained on a sample of the target's pool, `(M, pool)`; a sample it never met is out too."""
        from lib.data.designs import Role

        return self.roles[:, self.pool] == Role.MEMBER

    def read(self, signal: Callable[[Arrays, np.ndarray], np.ndarray], which: np.ndarray) -> tuple[Any, Any]:
        """A signal on some samples: of the target, and of the shadows stacked."""
        return signal(self.target, which), np.stack([signal(shadow, which) for shadow in self.shadows])


Scored = tuple[np.ndarray, float]  # scores (n,), and the threshold that the shadows chose (NaN: none)


def _threshold(attacker: Threshold, case: Case) -> Scored:
    from lib.attacks import signals, threshold
    from lib.data.designs import Role

    def signal(arrays: Arrays, which: np.ndarray) -> np.ndarray:
        return signals.score(attacker.signal, arrays["logits"][which], case.labels[which])

    # A threshold is learnt where the shadows have members and non-members, which need not be the target's samples.
    met = np.isin(case.roles, (Role.MEMBER, Role.NONMEMBER))
    known = np.asarray(met.any(axis=0))
    mine, labels = signal(case.target, case.pool), case.labels
    others = np.stack([signal(shadow, known) for shadow in case.shadows]).astype(float)
    others[~met[:, known]] = np.nan
    member = case.roles[:, known] == Role.MEMBER
    if not attacker.by_class:
        return threshold.global_threshold(mine, others, member, sign=attacker.sign)
    return threshold.class_thresholds(
        mine, labels[case.pool], others, member, shadow_labels=labels[known], sign=attacker.sign
    )


def _lira(attacker: LiRA, case: Case) -> Scored:
    from lib.attacks import lira

    mine, others = case.read(lambda arrays, which: arrays["views"][which], case.pool)
    scores = lira.lira(
        mine, others, case.member, mode=attacker.mode, variance=attacker.variance, centre=attacker.centre
    )
    return scores, np.nan


def _rmia(attacker: RMIA, case: Case) -> Scored:
    from scipy.special import log_expit

    from lib.attacks import rmia, signals

    def signal(arrays: Arrays, which: np.ndarray) -> np.ndarray:
        if attacker.views > 1:
            return log_expit(arrays["views"][which])
        return signals.log_confidence(arrays["logits"][which], case.labels[which], attacker.temperature)

    (mine, others), (z, others_z) = case.read(signal, case.pool), case.read(signal, case.population)
    return rmia.rmia(
        mine, others, case.member, z, others_z, gamma=attacker.gamma, mode=attacker.mode, a=attacker.a
    ), np.nan


def _base(attacker: BASE, case: Case) -> Scored:
    from lib.attacks import rmia, signals

    mine, others = case.read(
        lambda arrays, which: signals.log_confidence(arrays["logits"][which], case.labels[which]), case.pool
    )
    return rmia.base(mine, others, case.member), np.nan


ATTACKS: Mapping[type, Callable[[Any, Case], Scored]] = {Threshold: _threshold, LiRA: _lira, RMIA: _rmia, BASE: _base}

COMPUTE: Mapping[type, Callable[[Any], Arrays]] = {
    Signals: signals,
    Distance: distance,
    StageProbe: stage_probe,
    Anatomy: anatomy,
    SelfAudit: self_audit,
    Attack: attack,
}
