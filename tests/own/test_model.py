"""A user's own module, data and weights: read, attacked and looked into as any network is."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from lib import BadInput, audit, lab, paths, store
from lib.data.designs import Role
from lib.lab import run
from lib.models import build
from lib.models.own import OUTPUT, Own
from lib.own import weights
from lib.own.__main__ import main
from lib.recipe import (
    RMIA,
    SNIP,
    Brought,
    Data,
    Distance,
    GivenSplit,
    Learnability,
    LiRA,
    Population,
    RandomHalves,
    Schedule,
    Setup,
    Signals,
    StageMembership,
    Threshold,
    Train,
)

MINE = '''
import torch
from torch import nn

from lib.models import network
from lib.recipe import Architecture
from lib.recipe.core import Positive


class Mine(Architecture):
    """One channel, `view`, an in-place ReLU, a dropout, a layer that only the forward pass knows of."""

    stages = ("first", "body.0", "hidden")
    width: Positive = 3


@network.register
def made(model: Mine, channels, classes, size):
    return Net(model.width, channels, classes, size)


class Net(nn.Module):
    def __init__(self, width=3, channels=1, classes=10, size=8):
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, padding=1)
        self.body = nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        self.hidden = nn.Linear(width * (size // 2) ** 2, 12)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(12, classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.body(self.first(x)), 2)
        return self.out(self.drop(torch.relu(self.hidden(x.view(len(x), -1)))))
'''


@pytest.fixture
def mine(mine: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """As for all tests, where the user is; `MINE` unless told otherwise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEAK_ATLAS_DATA", str(tmp_path / "data"))
    return lambda text=MINE: mine(text)


def setup_of(own: ModuleType, models: int = 1, **design: Any) -> Setup:
    split = GivenSplit(100, test=120, population=20, **design)
    return Setup(Data(pixels=8), split, own.Mine(), Schedule(2, 20, "adam", lr=0.01), models)


def saved(own: ModuleType, name: str = "mine.safetensors", seed: int = 0) -> Any:
    torch.manual_seed(seed)
    net = own.Net()
    save_file(net.state_dict(), name)
    return net.eval()


def test_what_is_brought_answers_as_it_does_outside(mine: Callable[[str], ModuleType]) -> None:
    own = mine()
    net = saved(own)
    target = weights.bring("mine.safetensors", setup_of(own))
    signals = Signals(target)
    found = lab.realize(signals)[signals]
    from lib.data import readers
    from lib.registry import find

    read, entry = readers.load("fashion-mnist-small", 8), find("fashion-mnist-small")
    x = (torch.tensor(read.x[found["index"]]).permute(0, 3, 1, 2) / 255 - entry.mean[0]) / entry.std[0]
    np.testing.assert_allclose(
        found["logits"], net(x.clone(memory_format=torch.contiguous_format)).detach().numpy(), atol=1e-5
    )
    member = found["index"] < entry.train
    assert (member == (found["role"] == Role.MEMBER)).all() and member.sum() == 100
    assert np.bincount(found["role"])[[Role.NONMEMBER, Role.TEST]].tolist() == [100, 20]


def test_a_file_is_read_once_and_its_place_is_in_no_key(mine: Callable[[str], ModuleType]) -> None:
    own = mine()
    saved(own)
    setup = setup_of(own)
    target = weights.bring("mine.safetensors", setup)
    first = lab.realize(Signals(target))[Signals(target)]["logits"]
    Path("elsewhere").mkdir()
    Path("mine.safetensors").rename("elsewhere/other.safetensors")
    assert weights.bring("elsewhere/other.safetensors", setup).key == target.key
    store.discard(Signals(target).key)
    np.testing.assert_array_equal(lab.realize(Signals(target))[Signals(target)]["logits"], first)
    bare = Brought(target.data, target.design, 0, target.model, target.sha256)
    assert bare == target
    store.discard(target.key), store.discard(Signals(target).key)
    with pytest.raises(lab.Failed, match="are not in this store: bring their file again"):
        lab.realize(Signals(bare))
    saved(own, "elsewhere/other.safetensors", seed=1)
    moved = weights.bring("elsewhere/other.safetensors", setup)
    assert moved != target
    saved(own, "elsewhere/other.safetensors", seed=2)
    with pytest.raises(lab.Failed, match="has changed since it was brought"):
        lab.realize(Signals(moved))
    assert not store.has(moved.key)


def test_every_reading_edit_and_training_takes_it(mine: Callable[[str], ModuleType]) -> None:
    own = mine()
    saved(own)
    setup = setup_of(own, models=5)
    target = weights.bring("mine.safetensors", setup)
    shadows = Population(setup.trained().states[1:])
    attacks = [Population((target,)).attack(each, shadows=shadows) for each in (LiRA(), RMIA(), Threshold())]
    scores = [target.score(each) for each in (Learnability(2), SNIP())]
    asked, distance = StageMembership(target), Distance(target, shadows[0])
    edited = [target.prune(0.5), target.train(Schedule(1)), target.rewind("hidden", fresh=True).hold("hidden")]
    edited[2] = edited[2].train(Schedule(1))
    results = lab.realize(attacks, scores, asked, distance, [Signals(each) for each in edited])
    for attack in attacks:
        assert attack.design_effect == 1 and results[attack]["scores"].shape == (1, 200)
        assert results[attack]["member"].sum() == 100
    assert results[asked].parts == results[distance].parts == ["first", "body.0", "hidden", OUTPUT]
    assert {"first.weight", "hidden.weight", "out.weight"} < results[scores[0]].keys()
    tuned = store.read(edited[2].key).arrays
    np.testing.assert_array_equal(tuned["first.weight"], store.read(target.key).arrays["first.weight"])
    for ask in (lambda: target.rewind("hidden"), lambda: target.rewind_weights(scores[0], 0.1)):
        with pytest.raises(BadInput, match="without their initialisation"):
            lab.realize(Signals(ask()))
    with pytest.raises(BadInput, match="part of a Mine is the last"):
        target.prune(0.5, head=False)


def test_workers_train_shadows_of_an_own_module(
    mine: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = mine()
    saved(own)
    setup = setup_of(own, models=3)
    signals = Population((weights.bring("mine.safetensors", setup), *setup.trained().states[1:])).signals()
    monkeypatch.setattr(run, "ENOUGH", 0.0)
    found = {step.key: lab.realize(signals, workers=2)[step]["logits"] for step in signals}
    for step in signals:
        store.discard(step.key), store.discard(step.of.key)
    again = lab.realize(signals, workers=1)
    assert all(np.array_equal(again[step]["logits"], found[step.key]) for step in signals)  # dropout too


def test_an_edited_module_has_another_key(mine: Callable[[str], ModuleType]) -> None:
    before = setup_of(mine()).trained()[0]
    assert setup_of(mine(MINE + "\n# a comment\n")).trained()[0] == before
    assert setup_of(mine(MINE.replace("torch.relu", "torch.tanh"))).trained()[0] != before
    with pytest.raises(BadInput, match="a Mine reads text, but fashion-mnist-small holds images"):
        setup_of(mine(MINE.replace("    width:", '    reads = ("text",)\n    width:'))).trained()


def test_features_are_what_modules_put_out(mine: Callable[[str], ModuleType]) -> None:
    own = mine()
    net = build(own.Mine(), 1, 10, 0, 8).eval()
    assert isinstance(net, Own) and [*net.state_dict()] == [*own.Net().state_dict()]
    x = torch.randn(4, 1, 8, 8)
    seen = dict(net.features(x))
    raw = own.Net().eval()
    raw.load_state_dict(net.state_dict())
    first = raw.first(x)
    torch.testing.assert_close(seen["first"], first)
    torch.testing.assert_close(seen["body.0"], raw.body[0](first))
    torch.testing.assert_close(seen[OUTPUT], raw(x))
    assert not any(module._forward_hooks for module in net.modules())
    for text, why in (
        (MINE.replace('"body.0"', '"boddy"'), "names 'boddy', which is no module.*did you mean 'body'"),
        (MINE.replace('"body.0"', '"first"'), "or twice"),
        (MINE.replace("    return Net(", "    return 3, ("), "takes a torch.nn.Module, not tuple"),
        (MINE.replace("@network.register", ""), "register a function with lib.models.network"),
    ):
        with pytest.raises(BadInput, match=why):
            build(mine(text).Mine(), 1, 10, 0, 8)
    for text, why in (
        (MINE.rstrip() + "[:, :, None]", "logits .* are needed"),
        (MINE.replace("self.drop(", "(").replace('"hidden")', '"drop")'), "does not call 'drop'"),
    ):
        with pytest.raises(BadInput, match=why):
            dict(build(mine(text).Mine(), 1, 10, 0, 8).features(x))


def test_a_pickle_is_refused_with_the_command_that_converts_it(mine: Callable[[str], ModuleType], capsys) -> None:
    own = mine()
    net, setup = saved(own, "right.safetensors"), setup_of(own)
    parallel = {f"module.{name}": each for name, each in net.state_dict().items()}
    for name, held in {"plain": net.state_dict(), "nested": {"epoch": 3, "state_dict": parallel}}.items():
        torch.save(held, f"{name}.pt")
        with pytest.raises(BadInput, match=f"{name}.pt is a pickle.*-m lib.own {name}.pt$"):
            weights.bring(f"{name}.pt", setup)
        assert main([f"{name}.pt"]) == 0 and "tensors" in capsys.readouterr().out
        made, right = (weights.bring(f"{each}.safetensors", setup) for each in (name, "right"))
        logits = lab.realize(Signals(made), Signals(right))
        np.testing.assert_array_equal(logits[Signals(made)]["logits"], logits[Signals(right)]["logits"])
    torch.save(net, "whole.pt")
    torch.save({"epoch": 3}, "empty.pt")
    Path("torn.pt").write_bytes(Path("plain.pt").read_bytes()[:500])
    for name, why in {
        "whole": "more than tensors",
        "empty": "no state dict, it holds epoch",
        "torn": "damaged",
    }.items():
        assert main([f"{name}.pt"]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and why in err and not Path(f"{name}.safetensors").exists()
    torch.save(net.state_dict(), "old.pt", _use_new_zipfile_serialization=False)
    old = Path("old.pt").read_bytes()
    for end in range(1, len(old), len(old) // 60):
        Path("cut.pt").write_bytes(old[:end])
        assert main(["cut.pt"]) == 2 and capsys.readouterr().err.count("\n") == 1
    assert main(["plain.pt"]) == 2 and "is there already" in capsys.readouterr().err


def test_weights_that_do_not_fit_are_one_line(mine: Callable[[str], ModuleType]) -> None:
    own = mine()
    state, setup = own.Net().state_dict(), setup_of(own)
    bad = {
        "lacks 'out.weight', 'out.bias'": {name: each for name, each in state.items() if "out" not in name},
        "Mine has no place for 'more'": state | {"more": torch.ones(1)},
        r"'out.bias' has shape \(3,\), and Mine has \(10,\)": state | {"out.bias": torch.ones(3)},
        "no finite numbers": state | {"out.bias": torch.full((10,), torch.nan)},
    }
    for why, held in bad.items():
        save_file(held, "bad.safetensors")
        with pytest.raises(BadInput, match=why) as error:
            weights.bring("bad.safetensors", setup)
        assert "\n" not in str(error.value)
    Path("bad.safetensors").write_bytes(b"0" * 99)
    for name, why in {"bad.safetensors": "no safetensors file", "none": "cannot read", ".": "not a file"}.items():
        with pytest.raises(BadInput, match=why):
            weights.bring(name, setup)
    save_file(
        {name: each.half() if each.is_floating_point() else each for name, each in state.items()}, "half.safetensors"
    )
    step = weights.bring("half.safetensors", setup)
    lab.realize(step)
    assert store.read(step.key).arrays["out.bias"].dtype == np.float32


def test_shadows_of_a_given_split_see_both_sides_and_no_target_of_another_design(mine) -> None:
    own = mine()
    setup = setup_of(own, models=3)
    assert [state.training.design.pair(state.training.row) for state in setup.trained()] == [0, 1, 1]
    with pytest.raises(BadInput, match="leaves no even number"):
        Train(setup.data, GivenSplit(100, test=20, population=20), 0, setup.model, setup.schedule)
    with pytest.raises(BadInput, match="give test as a number"):
        Train(setup.data, GivenSplit(100), 0, setup.model, setup.schedule)
    other = Setup(setup.data, RandomHalves(60), setup.model, setup.schedule, 4).trained()
    with pytest.raises(BadInput, match="designs draw others"):
        Population((setup.trained()[0],)).attack(LiRA(), shadows=other)


@pytest.mark.notebook
def test_a_user_in_an_empty_folder_audits_a_model(mine, own_outputs: Path) -> None:
    """With a set of the user's own, and weights from a file; without shadows or pairs too."""
    rng = np.random.default_rng(0)
    x = rng.integers(256, size=(240, 16, 16), dtype=np.uint8)
    y = rng.integers(10, size=240)
    np.savez("mine.npz", x_train=x[:100], y_train=y[:100], x_test=x[100:], y_test=y[100:])

    def ran(*arguments: str) -> str:
        line = [sys.executable, "-m", *arguments]
        done = subprocess.run(line, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    ran("lib.data", "add", "my-set", "mine.npz")
    text = (paths.NOTEBOOKS / "own" / "audit_my_model.py").read_text()
    cell = text.split("# %%\nimport torch")[1].split("# %%")[0]
    space: dict[str, Any] = {"__name__": "cell"}
    exec(compile("import torch" + cell, "cell", "exec", dont_inherit=True), space)
    torch.manual_seed(0)
    save_file(space["Net"](16, 1, 10, 16).state_dict(), "mine.safetensors")
    small = {"data": "my-set", "weights": "mine.safetensors", "pool": 100, "test": 140, "population": 40, "epochs": 2}
    given = [part for name, each in small.items() for part in ("-p", f"{name}={each}")]
    batch = "lib.batch", "--only", "own/audit_my_model", *given
    assert "1 of 1 notebooks" in ran(*batch, "-p", "shadow_networks=6", "-p", "probe_pairs=2")
    scores = pd.read_csv(own_outputs / "runs" / "own" / "audit_my_model.csv")
    assert len(scores) == 200 and scores["member"].sum() == 100 and "LiRA online" in scores
    assert 0.3 < audit.auc(scores["loss"], scores["member"]) < 0.7  # it was never trained
    assert "1 of 1 notebooks" in ran(*batch, "-p", "shadow_networks=0", "-p", "probe_pairs=0")
