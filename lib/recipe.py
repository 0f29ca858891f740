"""The vocabulary: frozen dataclasses that describe an experiment, each with a content key. No torch, no data.

An experiment is a small graph of steps. `Data`, `Design`, `Model`, `Objective` and `Schedule` say *what*; the steps
(`Train`, `At`, `Rewind`, `Hold`, `Signals`, ...) say *what is done with it*, and hold their parents as fields.

    pool = population(Data("fashion-mnist-small"), RandomHalves(pool=1000), Model("resnet10", width=8), Schedule(30), models=10)
    private = pool.rewind("stage4").hold("stage4").train(Schedule(12), RelaxLoss(1.0))
    results = lab.realize(Attack(LiRA(), private))
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar, Literal

from lib import BadInput, nearest
from lib.data import registry

KINDS: dict[str, type[Recipe]] = {}


@cache
def _types(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _fit(owner: str, name: str, value: Any, kind: Any) -> Any:
    """The value as its declared type, so that 1 and 1.0 have one key; BadInput where it does not fit."""
    options = typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        if value is None and type(None) in options:
            return None
        kinds = [option for option in options if option is not type(None)]
        if len(kinds) == 1:
            return _fit(owner, name, value, kinds[0])
        if isinstance(value, tuple(kinds)):
            return value
    elif typing.get_origin(kind) is Literal:
        if value in options:
            return value
        raise BadInput(f"{owner}.{name} cannot be {value!r}{nearest(str(value), [str(o) for o in options])}")
    elif typing.get_origin(kind) is tuple:
        if isinstance(value, list | tuple):
            return tuple(_fit(owner, name, item, options[0]) for item in value)
    elif kind is float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    elif kind is int:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    elif isinstance(value, kind):
        return value
    wanted = getattr(kind, "__name__", str(kind))
    hint = " (YAML reads 1e-3 as text; write 1.0e-3)" if isinstance(value, str) and kind in (int, float) else ""
    raise BadInput(f"{owner}.{name} takes {wanted}, not {value!r}{hint}")


@dataclass(frozen=True)
class Recipe:
    """Plain data with a content key; see the module's text."""

    revision: ClassVar[int] = 1  # raised when the code of this kind changes what it computes

    def __init_subclass__(cls) -> None:
        KINDS[cls.__name__] = cls

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            fitted = _fit(type(self).__name__, item.name, getattr(self, item.name), _types(type(self))[item.name])
            object.__setattr__(self, item.name, fitted)

    def record(self) -> dict[str, Any]:
        """Kind, revision and the fields that differ from their defaults; steps stand as their keys."""
        out: dict[str, Any] = {"kind": type(self).__name__}
        if self.revision != 1:
            out["revision"] = self.revision
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if item.default is not dataclasses.MISSING and value == item.default:
                continue
            out[item.name] = _plain(value)
        return out

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical JSON of `record()`."""
        text = json.dumps(self.record(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def __hash__(self) -> int:
        return int(self.key[:16], 16)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.key == other.key


def _plain(value: Any) -> Any:
    if isinstance(value, Step):
        return {"step": value.key}
    if isinstance(value, Recipe):
        return value.record()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def load(record: dict[str, Any], step: Callable[[str], Step]) -> Recipe:
    """The recipe of a record; `step` finds a parent by its key."""

    def value(item: Any) -> Any:
        if isinstance(item, dict):
            return step(item["step"]) if "step" in item else load(item, step)
        return tuple(value(part) for part in item) if isinstance(item, list) else item

    kind = KINDS.get(record["kind"])
    if kind is None or record.get("revision", 1) != kind.revision:
        raise BadInput(f"'{record['kind']}' of revision {record.get('revision', 1)} is unknown to this version of lib")
    fields = {k: value(v) for k, v in record.items() if k not in ("kind", "revision", "digest")}
    return kind(**fields)


# ---------------------------------------------------------------- what


@dataclass(frozen=True, eq=False)
class Data(Recipe):
    """A data set by name; its pinned digest enters the key."""

    name: str = "fashion-mnist-small"
    pixels: int | None = None  # side of the image after area resize; None leaves it as it is

    def __post_init__(self) -> None:
        super().__post_init__()
        registry.find(self.name)

    def record(self) -> dict[str, Any]:
        return super().record() | {"name": self.name, "digest": registry.find(self.name).digest}


@dataclass(frozen=True, eq=False)
class Design(Recipe):
    """Who plays which role: one row a model. Row i never depends on how many rows are asked for.

    The pool is a class-balanced draw from the data set's train part; test samples come from its test part and are
    never trained on by any row.
    """

    pool: int = 1000  # samples from which members are drawn
    test: int | None = None  # held-out samples (accuracy, and RMIA's population); None: the whole test part
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Halves(Design):
    """PPTP, section 3.2. Row 2p trains on the whole pool (M_all), row 2p+1 on its half number p (M_h1)."""


@dataclass(frozen=True, eq=False)
class RandomHalves(Design):
    """Random halves drawn as complement pairs: rows 2p and 2p+1 share no member and together hold the pool.

    Every even prefix is exactly balanced, so the shadows of a target whose pair leaves are balanced too.
    """

    dev: int = 0  # samples outside the pool on which strengths are chosen
    reference: int = 0  # samples outside the pool that a defence may see and no row trains on


@dataclass(frozen=True, eq=False)
class VictimAttacker(Design):
    """SAMIA, section 6.1: two disjoint halves; row 0 is the victim's split of the one, the others re-split the other."""

    dev: float = 0.1  # share of a half on which early stopping looks; the rest is half member, half non-member


@dataclass(frozen=True, eq=False)
class Model(Recipe):
    """An architecture at a width; the papers' nets are the defaults at width 64."""

    name: Literal["resnet10", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152"] = "resnet18"
    width: int = 64  # channels of stage 1
    stem: Literal["conv3", "conv3-pool"] = "conv3"  # 3x3 convolution, without or with a 3x3 max-pool of stride 2
    stage4_stride: int = 2  # 1, 2, 4: the stage-4 map is as wide as stage 3's, half, a quarter
    stage4_channels: int | None = None  # output channels of stage 4; None: eight (basic) times the width


@dataclass(frozen=True, eq=False)
class Objective(Recipe):
    """What a training minimizes."""


@dataclass(frozen=True, eq=False)
class CrossEntropy(Objective):
    smoothing: float = 0.0  # label smoothing


@dataclass(frozen=True, eq=False)
class RelaxLoss(Objective):
    """Chen et al., ICLR 2022. `paper`: posterior flattening with a fixed soft label; `code`: the official CIFAR code."""

    alpha: float = 1.0  # target loss, nats
    upper: float = 1.0  # cap of the soft label's true class
    form: Literal["paper", "code"] = "paper"


@dataclass(frozen=True, eq=False)
class Augment(Recipe):
    """Random crop after zero padding, random horizontal flip."""

    crop: int = 4  # padding, pixels
    flip: bool = True


@dataclass(frozen=True, eq=False)
class Schedule(Recipe):
    """Epochs, optimizer and learning rate."""

    epochs: int = 100
    batch: int = 128
    optimizer: Literal["sgd", "adam"] = "sgd"
    lr: float = 0.1
    momentum: float = 0.9  # of SGD
    nesterov: bool = False
    weight_decay: float = 5e-4  # added to the gradient (L2), under Adam too
    decay: Literal["constant", "cosine", "steps"] = "cosine"  # by the epoch
    milestones: tuple[int, ...] = ()  # epochs at which `steps` multiplies the rate by `factor`
    factor: float = 0.1
    warmup: int = 0  # first epochs at `factor` times the rate
    augment: Augment | None = None
    patience: int | None = None  # stop after more than this many epochs without a better dev accuracy; keep the best


# ---------------------------------------------------------------- steps


@dataclass(frozen=True, eq=False)
class Step(Recipe):
    """Something that is computed and stored by its key."""

    def parents(self) -> Iterator[Step]:
        """The steps that must be there first."""
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Step):
                    yield part


@dataclass(frozen=True, eq=False)
class State(Step):
    """A model with weights: a training's end, one of its epochs, or an edit of another state."""

    def origin(self) -> Train:
        """The training from scratch at the root of this chain."""
        raise NotImplementedError

    @property
    def training(self) -> Train:
        """The nearest training at or before this state: it tells data, design, row and architecture."""
        raise NotImplementedError

    def rewind(self, start: str) -> Rewind:
        return Rewind(self, start)

    def hold(self, until: str) -> Hold:
        return Hold(self, until)

    def train(self, schedule: Schedule, objective: Objective | None = None) -> Train:
        """Go on from here on the same members, with a fresh optimizer and the same order seed."""
        own = self.training
        return dataclasses.replace(own, schedule=schedule, objective=objective or CrossEntropy(), parent=self)

    def at(self, when: int | Literal["init"]) -> At:
        return At(self.training, when) if isinstance(self, Train) else _no_epochs(self)


def _no_epochs(state: State) -> typing.NoReturn:
    raise BadInput(f"a {type(state).__name__} has no epochs; ask its training: chain.train(...).at(5)")


@dataclass(frozen=True, eq=False)
class Train(State):
    """One training; its end is the last epoch, or the best on dev where the schedule has a patience.

    What is asked of the trajectory (`at`) is not part of its key.
    """

    data: Data
    design: Design
    row: int
    model: Model
    schedule: Schedule
    objective: Objective = field(default_factory=CrossEntropy)
    seed: int = 0  # of initialisation and order
    precision: Literal["fp32", "bf16"] = "fp32"
    parent: State | None = None  # where the weights come from; None: a fresh initialisation

    def origin(self) -> Train:
        return self.parent.origin() if self.parent else self

    @property
    def training(self) -> Train:
        return self


@dataclass(frozen=True, eq=False)
class At(State):
    """The state of a training after epoch `when` (from 1), or at its initialisation."""

    of: Train
    when: int | str = "init"

    def __post_init__(self) -> None:
        super().__post_init__()
        last = self.of.schedule.epochs
        if self.when != "init" and not (isinstance(self.when, int) and 1 <= self.when <= last):
            raise BadInput(f"there is no epoch {self.when!r}: ask for 'init' or 1 to {last}")

    def origin(self) -> Train:
        return self.of.origin()

    @property
    def training(self) -> Train:
        return self.of


@dataclass(frozen=True, eq=False)
class Edit(State):
    """New values for some weights, and a mask of weights that are held; computed on the fly, never stored."""

    parent: State

    def origin(self) -> Train:
        return self.parent.origin()

    @property
    def training(self) -> Train:
        return self.parent.training


@dataclass(frozen=True, eq=False)
class Rewind(Edit):
    """Stage `start` and all behind it go back to their value at the chain's initialisation (PPTP, Alg. 1)."""

    start: str

    def parents(self) -> Iterator[Step]:
        yield self.parent
        yield At(self.origin(), "init")


@dataclass(frozen=True, eq=False)
class Hold(Edit):
    """All stages before `until` keep their weights and BatchNorm statistics in every training that follows."""

    until: str


@dataclass(frozen=True, eq=False)
class Signals(Step):
    """A state's logits on every sample that its design uses, and scaled confidences under fixed views.

    Result: `logits (n, C)`, `views (n, A)` (view 0 is the plain image), over `Design`'s used samples in index order.
    """

    of: State
    views: int = 1  # 1: plain; 2: and mirrored; 18: mirror x 9 shifts


@dataclass(frozen=True, eq=False)
class Distance(Step):
    """Per-sample feature distances between two states, part by part, over the pool (PPTP, section 3.2).

    Result, each `(parts, n)`: `euclidean`, `direction` (1 - cosine), `length_a`, `length_b` (norms over root d).
    """

    a: State
    b: State
    parts: Literal["stages", "blocks"] = "stages"


@dataclass(frozen=True, eq=False)
class StageProbe(Step):
    """Test accuracy of a linear SVM on each stage's features (PPTP, Fig. 8)."""

    of: State
    dimensions: int = 4096  # wider features are projected at random to this many


@dataclass(frozen=True, eq=False)
class Anatomy(Step):
    """Parameters, activations and forward FLOPs of each part of an architecture on one sample of a data set."""

    data: Data
    model: Model


@dataclass(frozen=True, eq=False)
class SelfAudit(Step):
    """Is the tool itself honest? Duplicates across the split, and a blind classifier on the inputs (AUC should be .5)."""

    data: Data
    design: Design
    rows: tuple[int, ...]


# ---------------------------------------------------------------- attacks


@dataclass(frozen=True, eq=False)
class Attacker(Recipe):
    """How a score is made from signals; larger = more likely member."""


@dataclass(frozen=True, eq=False)
class Threshold(Attacker):
    """Song & Mittal's threshold attacks (and Yeom's gap, `correctness`), thresholds chosen on the shadows."""

    signal: Literal["correctness", "confidence", "loss", "entropy", "modified_entropy"] = "confidence"
    by_class: bool = True


@dataclass(frozen=True, eq=False)
class LiRA(Attacker):
    """Carlini et al. 2022."""

    mode: Literal["online", "offline_cdf", "offline_pdf"] = "online"
    variance: Literal["pooled", "per_sample", "shrunk", "code"] = "pooled"
    views: int = 1


@dataclass(frozen=True, eq=False)
class RMIA(Attacker):
    """Zarifzadeh et al. 2024, with a held-out population."""

    mode: Literal["online", "offline"] = "online"
    gamma: float = 2.0
    a: float = 0.3  # of the offline mode
    temperature: float = 1.0
    views: int = 1


@dataclass(frozen=True, eq=False)
class BASE(Attacker):
    """Lassila et al. 2025: the log ratio of the target's confidence and the shadows' mean."""


@dataclass(frozen=True, eq=False)
class Attack(Step):
    """Scores of every target by shadows; a shadow that shares the target's complement pair never helps.

    Result: `scores (T, n)`, `member (T, n)` over the pool's samples, and `threshold` where the attack names one.
    """

    attacker: Attacker
    targets: tuple[State, ...]
    shadows: tuple[State, ...] = ()  # empty: the targets are each other's shadows (an adaptive attacker)

    def parents(self) -> Iterator[Step]:
        views = getattr(self.attacker, "views", 1)
        seen: dict[str, Step] = {}
        for state in (*self.targets, *self.shadows):
            signals = Signals(state, views)
            seen[signals.key] = signals
        yield from seen.values()


# ---------------------------------------------------------------- populations


@dataclass(frozen=True)
class Population:
    """The same chain over several rows of a design; every method maps over its states."""

    states: tuple[State, ...]

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[State]:
        return iter(self.states)

    def __getitem__(self, index: int) -> State:
        return self.states[index]

    def _map(self, change: Callable[[State], State]) -> Population:
        return Population(tuple(change(state) for state in self.states))

    def rewind(self, start: str) -> Population:
        return self._map(lambda state: state.rewind(start))

    def hold(self, until: str) -> Population:
        return self._map(lambda state: state.hold(until))

    def train(self, schedule: Schedule, objective: Objective | None = None) -> Population:
        return self._map(lambda state: state.train(schedule, objective))

    def at(self, when: int | Literal["init"]) -> Population:
        return self._map(lambda state: state.at(when))

    def signals(self, views: int = 1) -> tuple[Signals, ...]:
        return tuple(Signals(state, views) for state in self.states)

    def attack(self, attacker: Attacker, targets: int | None = None, shadows: Population | None = None) -> Attack:
        """The first `targets` models (all, by default) attacked by `shadows` (this population itself, by default)."""
        chosen = self.states[:targets]
        return Attack(attacker, chosen, shadows.states if shadows else self.states if targets else ())


def model_seed(seed: int, index: int) -> int:
    """The seed of model `index` of an experiment with `seed`: no two experiments share one below 10,000 models."""
    return 10_000 * seed + index


def population(
    data: Data,
    design: Design,
    model: Model,
    schedule: Schedule,
    objective: Objective | None = None,
    *,
    models: int,
    seed: int = 0,
    precision: Literal["fp32", "bf16"] = "fp32",
) -> Population:
    """One training from scratch for each of the design's first `models` rows, each with its own initialisation."""
    return Population(
        tuple(
            Train(data, design, row, model, schedule, objective or CrossEntropy(), model_seed(seed, row), precision)
            for row in range(models)
        )
    )


@dataclass(frozen=True)
class Pair:
    """M_all and M_h1 of PPTP's probe (section 3.2): the same initialisation and order, the whole pool and half of it."""

    whole: State
    half: State

    def distance(self, parts: Literal["stages", "blocks"] = "stages") -> Distance:
        return Distance(self.whole, self.half, parts)


def probe_pairs(
    data: Data,
    design: Halves,
    model: Model,
    schedule: Schedule,
    objective: Objective | None = None,
    *,
    pairs: int,
    seed: int = 0,
    precision: Literal["fp32", "bf16"] = "fp32",
) -> tuple[Pair, ...]:
    """Pair p trains rows 2p and 2p+1 of `design` with one seed, so that nothing but the data tells the two apart."""

    def one(row: int) -> Train:
        chosen = objective or CrossEntropy()
        return Train(data, design, row, model, schedule, chosen, model_seed(seed, row // 2), precision)

    return tuple(Pair(one(2 * p), one(2 * p + 1)) for p in range(pairs))


def seed_floors(pairs: tuple[Pair, ...]) -> tuple[Distance, ...]:
    """What two seeds on the same data differ by: M_all of each pair against M_all of the next."""
    return tuple(Distance(a.whole, b.whole) for a, b in zip(pairs, pairs[1:], strict=False))
