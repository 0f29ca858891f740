"""Attacks on stored signals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from lib import BadInput, store
from lib.lab.compute.states import Arrays, table
from lib.recipe import BASE, RMIA, Attack, LiRA, Network, Signals, State, Threshold, model_seed


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

    found, member = [], []
    for target in step.targets:
        mine = pair(own.design, target.training.row)
        helpers = [s for s in shadows if s.key != target.key and pair(own.design, s.training.row) != mine]
        if not helpers:
            raise BadInput(f"row {target.training.row} has no shadow outside its own pair: ask for more models")
        case = Case(
            target,
            read[target.key],
            [read[s.key] for s in helpers],
            np.stack([role[s.key] for s in helpers]),
            labels,
            pool,
            population,
        )
        found.append(ATTACKS[type(step.attacker)](step.attacker, case))
        member.append(role[target.key][pool] == Role.MEMBER)
    return {
        "scores": np.stack([one.scores for one in found]),
        "member": np.stack(member),
        "thresholds": np.asarray([one.threshold for one in found]),
        "index": index[pool],
        **{f"net/{name}": np.stack([one.net[name] for one in found]) for name in found[0].net},
    }


class Case(NamedTuple):
    """What an attacker has: signals of the target and of its shadows on all samples, and the shadows' roles.

    The target is judged on its `pool`, RMIA's ratios are compared with those of the `population`: both Boolean `(n,)`.
    """

    state: State  # the target
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

    def learnt(
        self, signal: Callable[[Arrays, np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """A signal of the target's pool, and what an attacker learns from: the shadows' signals, membership and labels.

        Of the samples that are some shadow's members or non-members, which need not be the target's; NaN: not its own.
        """
        from lib.data.designs import Role

        met = np.isin(self.roles, (Role.MEMBER, Role.NONMEMBER))
        known = np.asarray(met.any(axis=0))
        others = np.stack([signal(shadow, known) for shadow in self.shadows]).astype(float)
        others[~met[:, known]] = np.nan
        return signal(self.target, self.pool), others, self.roles[:, known] == Role.MEMBER, self.labels[known]


class Scored(NamedTuple):
    """Scores `(pool,)`, the threshold that the shadows chose (NaN: none), and what was trained."""

    scores: np.ndarray
    threshold: float = np.nan
    net: Arrays = {}  # noqa: RUF012 (never written to)


def _threshold(attacker: Threshold, case: Case) -> Scored:
    from lib.attacks import signals, threshold

    def signal(arrays: Arrays, which: np.ndarray) -> np.ndarray:
        return signals.score(attacker.signal, arrays["logits"][which], case.labels[which])

    mine, others, member, labels = case.learnt(signal)
    if not attacker.by_class:
        return Scored(*threshold.global_threshold(mine, others, member, sign=attacker.sign))
    return Scored(
        *threshold.class_thresholds(
            mine, case.labels[case.pool], others, member, shadow_labels=labels, sign=attacker.sign
        )
    )


def _lira(attacker: LiRA, case: Case) -> Scored:
    from lib.attacks import lira

    mine, others = case.read(lambda arrays, which: arrays["views"][which], case.pool)
    return Scored(
        lira.lira(mine, others, case.member, mode=attacker.mode, variance=attacker.variance, centre=attacker.centre)
    )


def _rmia(attacker: RMIA, case: Case) -> Scored:
    from scipy.special import log_expit

    from lib.attacks import rmia, signals

    def signal(arrays: Arrays, which: np.ndarray) -> np.ndarray:
        if attacker.views > 1:
            return log_expit(arrays["views"][which])
        return signals.log_confidence(arrays["logits"][which], case.labels[which], attacker.temperature)

    (mine, others), (z, others_z) = case.read(signal, case.pool), case.read(signal, case.population)
    return Scored(
        rmia.rmia(mine, others, case.member, z, others_z, gamma=attacker.gamma, mode=attacker.mode, a=attacker.a)
    )


def _base(attacker: BASE, case: Case) -> Scored:
    from lib.attacks import rmia, signals

    mine, others = case.read(
        lambda arrays, which: signals.log_confidence(arrays["logits"][which], case.labels[which]), case.pool
    )
    return Scored(rmia.base(mine, others, case.member))


def _network(attacker: Network, case: Case) -> Scored:
    from lib.attacks import networks

    mine, others, member, labels = case.learnt(lambda arrays, which: arrays["logits"][which])
    scores, net = networks.network(
        mine,
        case.labels[case.pool],
        others,
        member,
        shadow_labels=labels,
        inputs=attacker.inputs,
        hidden=attacker.hidden,
        dropout=attacker.dropout,
        epochs=attacker.epochs,
        batch=attacker.batch,
        lr=attacker.lr,
        seed=model_seed(attacker.seed, case.state.training.row),
    )
    return Scored(scores, 0.0, net)


ATTACKS: Mapping[type, Callable[[Any, Case], Scored]] = {
    Threshold: _threshold,
    LiRA: _lira,
    RMIA: _rmia,
    BASE: _base,
    Network: _network,
}
