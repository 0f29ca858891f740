"""Every attacker against nothing, under every design: whole attacks on signals that know nothing of
membership.
"""

import zlib
from dataclasses import replace

import numpy as np
import pytest

from leak_atlas import BadInput, audit, lab
from leak_atlas.data import readers
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.models.subject import roles
from leak_atlas.recipe import (
    KINDS,
    RMIA,
    Attacker,
    Data,
    Design,
    Folds,
    Generated,
    GivenSplit,
    Halves,
    Learner,
    LiRA,
    Model,
    Network,
    Population,
    RandomHalves,
    Schedule,
    Setup,
    SharedTest,
    Signals,
    Subsets,
    Threshold,
    VictimAttacker,
)

DATA = Data(pixels=8)
# with how many models, and how often: to a narrow interval
DESIGNS: dict[type[Design], tuple[Design, int, int]] = {
    RandomHalves: (RandomHalves(2000, test=200), 12, 10),
    # so many that no sample lacks a shadow on a side
    Subsets: (Subsets(2000, test=200, share=0.5), 24, 10),
    Folds: (Folds(2000, test=200, folds=2), 12, 7),
    VictimAttacker: (VictimAttacker(4000, test=200), 6, 20),
    GivenSplit: (GivenSplit(900, test=1000, population=100), 13, 8),
    SharedTest: (SharedTest(4000, test=1000, share=0.5, dev=200), 6, 20),
}
OPTIONS: dict[str, list[Attacker]] = {
    "LiRA": [LiRA(), LiRA("offline_cdf"), LiRA("offline_pdf", variance="code")],
    "RMIA": [RMIA(), RMIA("offline")],
    "Threshold": [Threshold(), Threshold("correctness", by_class=False, sign="shadows")],
    "Network": [Network(hidden=(8,), epochs=2)],
    # ten minutes here; it learns as Network does, and tests/attacks/test_samia.py has its null
    "SAMIA": [],
}
ATTACKERS = [
    attacker
    for name, kind in sorted(KINDS.items())
    if issubclass(kind, Attacker)
    and kind not in (Attacker, Learner)
    and kind.__module__.startswith("leak_atlas.")
    for attacker in OPTIONS.get(name, [kind()])  # a new attacker is tested as it stands
]


def knowing_nothing(models: Population, draw: int) -> None:
    """Stores what each model is asked, drawn without a look at its members."""
    for state in models:
        role, index, labels = roles(DATA, state.training.design, (state.training.row,))
        rng = np.random.default_rng([zlib.crc32(state.key.encode()), draw])
        logits = (
            rng.normal(size=(len(index), DATA.classes)).astype(np.float32)
            + 2 * np.eye(DATA.classes)[labels]
        )
        own = logits[np.arange(len(index)), labels]
        rest = np.log(np.exp(logits).sum(axis=1) - np.exp(own))
        arrays = {
            "logits": logits,
            "views": (own - rest)[:, None],
            "labels": labels,
            "index": index,
            "role": role[0],
        }
        made = {
            "generated": rng.normal(size=(20, DATA.classes)),
            "generated_labels": rng.integers(10, size=20),
        }
        for step, found in ((Signals(state), arrays), (Generated(state), made)):
            store.write(step.key, step.record(), found, {})


@pytest.mark.parametrize("kind", DESIGNS, ids=lambda kind: kind.__name__)
def test_no_attacker_finds_what_is_not_there(kind: type[Design]) -> None:
    design, count, draws = DESIGNS[kind]
    units: dict[Attacker, list[float]] = {}
    for draw in range(draws):
        drawn = replace(design, seed=draw)
        models = Setup(DATA, drawn, Model("resnet10", width=2), Schedule(1), count, draw).trained()
        knowing_nothing(models, draw)
        for attacker in ATTACKERS:
            try:
                attack = models.attack(attacker, 6 if design.has_in_models else 1, models)
            except BadInput:
                assert isinstance(attacker, LiRA)
                assert attacker.mode == "online"
                assert not design.has_in_models
                continue
            found = lab.realize(attack, workers=1)[attack]
            units.setdefault(attacker, []).append(
                float(np.mean(audit.auc(found["scores"], found["member"])))
            )
    assert len(units) >= len(ATTACKERS) - 1
    for attacker, areas in units.items():
        # All intervals of all designs hold together at 95 %.
        found = audit.mean_ci(areas, level=1 - 0.05 / len(units) / len(DESIGNS))
        assert found.low <= 0.5 <= found.high, (attacker, found)
        assert found.high - found.low < 0.04, (attacker, found)


def test_every_design_has_its_null_test_or_a_reason() -> None:
    others = {Halves: "its rows have no non-members, or a whole pool", Design: "draws nothing"}
    # attacked as its base's rows are
    known = {kind.__name__ for kind in (*DESIGNS, *others)} | {"LeftOut"}
    ours = {name: kind for name, kind in KINDS.items() if kind.__module__.startswith("leak_atlas.")}
    assert {name for name, kind in ours.items() if issubclass(kind, Design)} <= known
    assert readers.load(DATA.name, DATA.pixels).train == DATA.parts[0]


@pytest.mark.parametrize(
    "attacker", [LiRA(), RMIA(), Threshold(), Network(hidden=(8,), epochs=4)], ids=repr
)
def test_permuted_membership_labels_leave_nothing_to_find(attacker: Attacker) -> None:
    """Signals that identify their members: the attack finds them, its null does not, with the same
    number of members.
    """
    models = Setup(
        DATA, RandomHalves(600, test=60), Model("resnet10", width=2), Schedule(1), 8
    ).trained()
    knowing_nothing(models, 0)
    for state in models:
        signals = Signals(state)
        arrays = dict(store.read(signals.key).arrays)
        member = (arrays["role"] == Role.MEMBER)[:, None]
        arrays["views"] = arrays["views"] + 3 * member
        arrays["logits"] = (
            arrays["logits"] + 3 * member * np.eye(DATA.classes, dtype=np.float32)[arrays["labels"]]
        )
        store.discard(signals.key)
        store.write(signals.key, signals.record(), arrays, {})
    true, *nulls = (models.attack(attacker, permuted=permuted) for permuted in (None, *range(8)))
    results = lab.realize(true, nulls)
    assert audit.audit(results[true], ())["auc"].low > 0.6
    found = audit.mean_ci(
        [float(np.mean(audit.auc(results[n]["scores"], results[n]["member"]))) for n in nulls]
    )
    assert found.low < 0.5 < found.high and found.high - found.low < 0.06, found
    pairs = results[nulls[0]]["member"]
    assert (pairs[::2] != pairs[1::2]).all()
    assert not np.array_equal(pairs, results[true]["member"])
