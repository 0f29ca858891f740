"""A user's own module, data and weights: read, attacked and looked into as any network is."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from leak_atlas import BadInput, audit, lab
from leak_atlas.__main__ import main
from leak_atlas.data import own as own_sets
from leak_atlas.data import readers
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import resident
from leak_atlas.engine import paths, store
from leak_atlas.models import build
from leak_atlas.models.own import OUTPUT, Own
from leak_atlas.own import checks, findings, logits, page, weights
from leak_atlas.own.sizes import fitted_sizes
from leak_atlas.recipe import (
    RMIA,
    SNIP,
    Data,
    Distance,
    GivenSplit,
    GradientNorm,
    ImportedModel,
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
from leak_atlas.recipe.registry import ENTRIES, find
from tests.own.arrays import simulated

MINE = '''
import torch
from torch import nn

from leak_atlas.models import network
from leak_atlas.recipe import Architecture
from leak_atlas.recipe.core import Positive


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
    """As for all tests, where the user is; `MINE` by default."""
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
    target = weights.import_model("mine.safetensors", setup_of(own))
    signals = Signals(target)
    found = lab.realize(signals)[signals]
    entry = find("fashion-mnist-small")
    pixels = readers.load("fashion-mnist-small", 8).x[found["index"]]
    x = (torch.tensor(pixels).permute(0, 3, 1, 2) / 255 - entry.mean[0]) / entry.std[0]
    x = x.clone(memory_format=torch.contiguous_format)
    np.testing.assert_allclose(found["logits"], net(x).detach().numpy(), atol=1e-5)
    member = found["index"] < entry.train
    assert (member == (found["role"] == Role.MEMBER)).all()
    assert member.sum() == 100
    assert np.bincount(found["role"])[[Role.NONMEMBER, Role.TEST]].tolist() == [100, 20]


def test_a_file_is_read_once_and_its_place_is_in_no_key(mine: Callable[[str], ModuleType]) -> None:
    own = mine()
    saved(own)
    setup = setup_of(own)
    target = weights.import_model("mine.safetensors", setup)
    first = lab.realize(Signals(target))[Signals(target)]["logits"]
    Path("elsewhere").mkdir()
    Path("mine.safetensors").rename("elsewhere/other.safetensors")
    assert weights.import_model("elsewhere/other.safetensors", setup).key == target.key
    store.discard(Signals(target).key)
    np.testing.assert_array_equal(lab.realize(Signals(target))[Signals(target)]["logits"], first)
    bare = ImportedModel(target.data, target.design, 0, target.model, target.sha256)
    assert bare == target
    store.discard(target.key), store.discard(Signals(target).key)
    with pytest.raises(lab.Failed, match="are not in this store: import their file again"):
        lab.realize(Signals(bare))
    saved(own, "elsewhere/other.safetensors", seed=1)
    moved = weights.import_model("elsewhere/other.safetensors", setup)
    assert moved != target
    saved(own, "elsewhere/other.safetensors", seed=2)
    with pytest.raises(lab.Failed, match="has changed since it was imported"):
        lab.realize(Signals(moved))


def test_every_reading_edit_and_training_takes_it(mine: Callable[[str], ModuleType]) -> None:
    own = mine()
    saved(own)
    setup = setup_of(own, models=5)
    target = weights.import_model("mine.safetensors", setup)
    shadows = Population(setup.trained().states[1:])
    attacks = [
        Population((target,)).attack(each, shadows=shadows)
        for each in (LiRA(), RMIA(), Threshold())
    ]
    scores = [target.score(each) for each in (Learnability(2), SNIP())]
    asked = StageMembership(target)
    distance = Distance(target, shadows[0])
    edited = [
        target.prune(0.5),
        target.train(Schedule(1)),
        target.rewind("hidden", fresh=True).freeze("hidden"),
    ]
    edited[2] = edited[2].train(Schedule(1))
    results = lab.realize(attacks, scores, asked, distance, [Signals(each) for each in edited])
    for attack in attacks:
        assert attack.design_effect == 1
        assert results[attack]["scores"].shape == (1, 200)
    assert results[asked].parts == results[distance].parts == ["first", "body.0", "hidden", OUTPUT]
    for ask in (lambda: target.rewind("hidden"), lambda: target.rewind_weights(scores[0], 0.1)):
        with pytest.raises(BadInput, match="without their initialisation"):
            lab.realize(Signals(ask()))
    with pytest.raises(BadInput, match="part of a Mine is the last"):
        target.prune(0.5, head=False)


def test_an_edited_module_has_another_key(mine: Callable[[str], ModuleType]) -> None:
    before = setup_of(mine()).trained()[0]
    assert setup_of(mine(MINE + "\n# a comment\n")).trained()[0] == before
    assert setup_of(mine(MINE.replace("torch.relu", "torch.tanh"))).trained()[0] != before
    with pytest.raises(BadInput, match="a Mine reads text, but fashion-mnist-small holds images"):
        setup_of(mine(MINE.replace("    width:", '    reads = ("text",)\n    width:'))).trained()


def test_features_are_what_modules_put_out(mine: Callable[[str], ModuleType]) -> None:
    own = mine()
    net = build(own.Mine(), 1, 10, 0, 8).eval()
    assert isinstance(net, Own)
    assert [*net.state_dict()] == [*own.Net().state_dict()]
    x = torch.randn(4, 1, 8, 8)
    seen = dict(net.features(x))
    raw = own.Net().eval()
    raw.load_state_dict(net.state_dict())
    first = raw.first(x)
    torch.testing.assert_close(seen["first"], first)
    torch.testing.assert_close(seen["body.0"], raw.body[0](first))
    torch.testing.assert_close(seen[OUTPUT], raw(x))
    assert not any(module._forward_hooks for module in net.modules())


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"body.0"', '"boddy"', "names 'boddy', which is no module.*did you mean 'body'"),
        ('"body.0"', '"first"', "names 'first' twice"),
        ("    return Net(", "    return 3, (", "takes a torch.nn.Module, not tuple"),
        ("@network.register", "", "register a function with leak_atlas.models.network"),
        ("self.drop(torch", "(torch", "does not call 'drop'"),
    ],
)
def test_a_module_that_is_misdeclared_is_refused(mine, old: str, new: str, why: str) -> None:
    text = MINE.replace('"hidden")', '"hidden", "drop")').replace(old, new)
    with pytest.raises(BadInput, match=why):
        dict(build(mine(text).Mine(), 1, 10, 0, 8).features(torch.randn(4, 1, 8, 8)))


NAMED = '''
import torch
from torch import nn

from leak_atlas.models import network
from leak_atlas.recipe import Architecture


class Named(Architecture):
    """A network whose body is a child that has the name of one of the wrapper's own attributes."""

    stages = ("NAME.0", "NAME.1", "NAME")


@network.register
def made(model: Named, channels, classes, size):
    return Net(channels, classes)


class Vgg(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        convolution = nn.Sequential(nn.Conv2d(channels, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.NAME = nn.Sequential(convolution, nn.Conv2d(4, 4, 3, padding=1))
        self.classifier = nn.Linear(4 * 4 * 4, classes)

    def forward(self, x):
        return self.classifier(torch.flatten(self.NAME(x), 1))


class Vit(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        rates = [rate.item() for rate in torch.linspace(0, 0.1, 2)]  # as timm's: no tensor without memory has a value
        self.patch = nn.Conv2d(channels, 8, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        block = [nn.TransformerEncoderLayer(8, 2, 16, rate, batch_first=True, norm_first=True) for rate in rates]
        self.NAME = nn.Sequential(*block)
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        patches = self.patch(x).flatten(2).transpose(1, 2)
        return self.head(self.NAME(torch.cat([self.token.expand(len(x), -1, -1), patches], dim=1))[:, 0])


Net = KIND
'''
NAMES = "features", "blocks", "stages", "parts", "names", "module", "description"
CHILDREN = [*((name, "Vgg") for name in NAMES), ("blocks", "Vit")]


@pytest.mark.parametrize(("name", "kind"), CHILDREN)
def test_children_may_have_the_names_of_the_wrapper(
    mine: Callable[[str], ModuleType], name: str, kind: str
) -> None:
    own = mine(NAMED.replace("NAME", name).replace("KIND", kind))
    raw = own.Net(1, 10).eval()
    net = build(own.Named(), 1, 10, 0, 8).eval()
    raw.load_state_dict(net.state_dict())
    x = torch.randn(3, 1, 8, 8)
    seen = {}
    for part in own.Named.stages:
        raw.get_submodule(part).register_forward_hook(
            lambda *given, part=part: seen.update({part: given[-1]})
        )
    answer = raw(x)
    torch.testing.assert_close(dict(net.features(x)), seen | {OUTPUT: answer})

    save_file(raw.state_dict(), "mine.safetensors")
    setup = Setup(
        Data(pixels=8),
        GivenSplit(40, test=60, population=20),
        own.Named(),
        Schedule(1, 20, lr=0.01),
        2,
    )
    target = weights.import_model("mine.safetensors", setup)
    shadow = setup.trained().states[1]
    asked = StageMembership(target), Distance(target, shadow), target.score(Learnability(2))
    # torch warns that vmap takes attention sample by sample
    norms = [GradientNorm(target)] if kind != "Vit" else []
    results = lab.realize(asked, norms)
    assert results[asked[0]].parts == results[asked[1]].parts == [*own.Named.stages, OUTPUT]


def test_data_parallel_and_a_child_called_module_write_one_prefix(
    mine: Callable[[str], ModuleType],
) -> None:
    """Once it is to be removed, once it is the user's own; both files come from `leak-atlas
    model`.
    """
    bare = """
class Bare(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.module = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.Flatten(), nn.Linear(144, classes))

    def forward(self, x):
        return self.module(x)


Net = Bare"""
    own = mine(NAMED.replace("NAME", "module").replace("Net = KIND", bare))
    net = own.Net(1, 10)
    assert all(name.startswith("module.") for name in net.state_dict())
    setup = Setup(
        Data(pixels=8),
        GivenSplit(40, test=60, population=20),
        own.Named(),
        Schedule(1, 20, lr=0.01),
        1,
    )
    torch.save(net.state_dict(), "own.pt")
    torch.save({f"module.{name}": each for name, each in net.state_dict().items()}, "parallel.pt")
    steps = []
    for name in ("own", "parallel"):
        assert main(["model", f"{name}.pt"]) == 0
        steps.append(weights.import_model(f"{name}.safetensors", setup))
    lab.realize(steps)
    for step in steps:
        arrays = store.read(step.key).arrays
        np.testing.assert_array_equal(
            arrays["module.2.weight"], net.state_dict()["module.2.weight"]
        )


def test_a_checkpoint_is_refused_with_the_command_that_converts_it(
    mine: Callable[[str], ModuleType], capsys
) -> None:
    own = mine()
    net = saved(own, "right.safetensors")
    setup = setup_of(own)
    right = Signals(weights.import_model("right.safetensors", setup))
    parallel = {f"module.{name}": tensor for name, tensor in net.state_dict().items()}
    torch.save(net.state_dict(), "plain.pt")
    torch.save({"epoch": 3, "state_dict": parallel}, "nested.pt")
    for name in ("plain", "nested"):
        with pytest.raises(BadInput, match=f"{name}.pt is a checkpoint .*leak-atlas model {name}"):
            weights.import_model(f"{name}.pt", setup)
        assert main(["model", f"{name}.pt"]) == 0
        assert "tensors" in capsys.readouterr().out
        made = Signals(weights.import_model(f"{name}.safetensors", setup))
        results = lab.realize(made, right)
        np.testing.assert_array_equal(results[made]["logits"], results[right]["logits"])


def test_what_is_no_state_dict_is_not_converted(mine: Callable[[str], ModuleType], capsys) -> None:
    net = mine().Net()
    torch.save(net, "whole.pt")
    torch.save({"epoch": 3}, "empty.pt")
    torch.save([1, 2], "list.pt")
    torch.save(net.state_dict(), "old.pt", _use_new_zipfile_serialization=False)
    old = Path("old.pt").read_bytes()
    names = ["whole", "empty", "list"]
    for end in range(1, len(old), len(old) // 10):
        names.append(f"cut{end}")
        Path(f"cut{end}.pt").write_bytes(old[:end])
    for name in names:
        assert main(["model", f"{name}.pt"]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert "holds more than tensors, or is damaged" in err
        assert not Path(f"{name}.safetensors").exists()


def test_weights_that_are_not_finite_are_not_converted(
    mine: Callable[[str], ModuleType], capsys
) -> None:
    state = mine().Net().state_dict()
    torch.save(state | {"out.bias": torch.full((10,), torch.nan)}, "nan.pt")
    assert main(["model", "nan.pt"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "'out.bias' of nan.pt holds NaN or infinite values" in err
    assert not Path("nan.safetensors").exists()


def test_weights_and_a_test_part_that_was_drawn_are_refused(
    mine: Callable[[str], ModuleType],
) -> None:
    """The model may be trained on what was drawn, so nobody knows who is a non-member."""
    own = mine()
    saved(own)
    rng = np.random.default_rng(0)
    x = rng.integers(256, size=(200, 8, 8), dtype=np.uint8)
    y = np.arange(200) % 10
    np.savez("drawn.npz", x=x, y=y)
    np.savez("given.npz", x_train=x[:100], y_train=y[:100], x_test=x[100:], y_test=y[100:])
    split = GivenSplit(100, test=40, population=20)
    for name in ("drawn", "given"):
        own_sets.add(name, Path(f"{name}.npz"))
        setup = Setup(Data(name), split, own.Mine(), Schedule(1, 20), 1)
        assert weights.audited_model("", name, setup)  # the example is trained on the train part
        if name == "given":
            assert weights.audited_model("mine.safetensors", name, setup)
            continue
        with pytest.raises(BadInput, match="drawn has no test part of its own: a fifth of it was"):
            weights.audited_model("mine.safetensors", name, setup)
    assert not list(store.listing())


def test_scores_of_copies_of_the_page_do_not_overwrite_each_other(
    own_outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = own_outputs / "runs"
    monkeypatch.delenv("LEAK_ATLAS_FIGURES", raising=False)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert page.scores_of_model("", "weights/a.safetensors") == folder / "own" / "a.csv"
    monkeypatch.setenv("JPY_SESSION_NAME", "own/my_model_copy.py")
    assert page.scores_of_model("", "a.safetensors") == folder / "own" / "my_model_copy.csv"
    monkeypatch.setenv("LEAK_ATLAS_FIGURES", str(folder / "quick+lr=0.1" / "own" / "copy"))
    assert page.scores_of_model("", "") == folder / "quick+lr=0.1" / "own" / "copy.csv"
    assert page.scores_of_model("mine", "") == folder / "own" / "mine.csv"


def test_scores_of_other_weights_or_logits_are_not_overwritten(
    own_outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEAK_ATLAS_FIGURES", raising=False)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    (tmp_path / "mine.npz").touch()
    report = own_outputs / "runs" / "own" / "mine.json"
    report.parent.mkdir(parents=True)
    report.write_text(
        json.dumps({"settings": {"file": page.full_name(str(tmp_path / "mine.npz"))}})
    )
    with pytest.raises(BadInput, match=r"mine is the report of .*mine\.npz: give"):
        page.scores_of_model("", "weights/mine.safetensors")


def test_weights_that_do_not_fit_are_one_line(mine: Callable[[str], ModuleType]) -> None:
    own = mine()
    state = own.Net().state_dict()
    setup = setup_of(own)
    bad = {
        "lacks 'out.weight', 'out.bias'": {
            name: each for name, each in state.items() if "out" not in name
        },
        "Mine has no place for 'more'": state | {"more": torch.ones(1)},
        r"'out.bias' has shape \(3,\), and Mine has \(10,\)": state | {"out.bias": torch.ones(3)},
        "no finite numbers": state | {"out.bias": torch.full((10,), torch.nan)},
    }
    for why, held in bad.items():
        save_file(held, "bad.safetensors")
        with pytest.raises(BadInput, match=why) as error:
            weights.import_model("bad.safetensors", setup)
        assert "\n" not in str(error.value)
    Path("bad.safetensors").write_bytes(b"0" * 99)
    for name, why in {
        "bad.safetensors": "no safetensors file",
        "none": "cannot read",
        ".": "not a file",
    }.items():
        with pytest.raises(BadInput, match=why):
            weights.import_model(name, setup)
    save_file(
        {name: each.half() if each.is_floating_point() else each for name, each in state.items()},
        "half.safetensors",
    )
    step = weights.import_model("half.safetensors", setup)
    lab.realize(step)
    assert store.read(step.key).arrays["out.bias"].dtype == np.float32


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("self.out(self.drop", "(lambda z: (z, z))(self.drop", "logits .* are needed"),
        (
            "return self.out(",
            "return self.hidden(x.view(len(x), -1)) if self.training else self.out(",
            r"answers with \(2, 12\), and logits \(2, 10\) are needed",
        ),
        ("self.hidden(x.view(len(x), -1))", "self.hidden(x)", "cannot be called on samples"),
        ("nn.Linear(12, classes)", "nn.Linear(12, 7)", "7.* one for each of 10 classes"),
        ("def __init__(self, width=3", "def __init__(self, need, width=3", "cannot be built"),
        ("    width:", '    reads = ("text",)\n    width:', "reads text.*reads = "),
    ],
)
def test_a_module_that_cannot_be_audited_is_refused_before_anything_is_trained(
    mine, old: str, new: str, why: str
) -> None:
    text = MINE.replace(
        "Net(model.width, channels, classes, size)", "Net(width=model.width, size=size)"
    )
    own = mine(text.replace(old, new))
    save_file({"out.weight": torch.ones(1)}, "mine.safetensors")
    with pytest.raises(BadInput, match=why), lab.planning():
        weights.import_model("mine.safetensors", setup_of(own))
    with pytest.raises(BadInput, match=why):
        weights.audited_model("", "", setup_of(own))
    assert not list(store.listing())
    assert not list(paths.outputs().rglob("*.safetensors"))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (("", None, None, None, None), ("fashion-mnist-small", 16, 600, 1000, 400)),
        (("digits", None, None, None, None), ("digits", None, 1442, 354, 142)),
        (("digits", 4, 101, 41, 21), ("digits", 4, 100, 40, 20)),
        (("digits", None, 20, 20, 30), ("digits", None, 20, 20, 8)),
        (("digits-bits", 16, None, None, None), ("digits-bits", None, 1404, 346, 138)),
    ],
)
def test_sizes_fit_any_data(asked: tuple[Any, ...], found: tuple[Any, ...]) -> None:
    """All of the data unless fewer are asked for."""
    sizes = fitted_sizes(*asked)
    assert (sizes.data, sizes.pixels, sizes.pool, sizes.test, sizes.population) == found
    split = GivenSplit(sizes.pool, test=sizes.test, population=sizes.population)
    split.check(*Data(sizes.data).parts)


def test_a_size_that_is_another_than_the_users_is_noted() -> None:
    notes = fitted_sizes("digits", 4, 101, 41, 21).notes
    assert [note.partition(":")[0] for note in notes] == ["pool", "test", "population"]


def test_the_sizes_are_stated_on_the_page() -> None:
    words = "100 members, 20 non-members, and 20 more test samples as RMIA's population"
    assert words in fitted_sizes("digits", 4, 100, 40, 20).sentence


def model_audit(areas: dict[str, int], **more: Any) -> page.ModelAudit:
    """Of 100 members and 100 non-members, so many members have a larger score in each part."""
    member = np.arange(200) < 100
    scores = [np.arange(200) < leak for leak in areas.values()]
    parts = np.frombuffer("\n".join(areas).encode(), np.uint8)
    arrays = {"parts": parts, "scores": np.array(scores, float), "member": member}
    found = findings.Result(logits.Logits(**simulated(1.0)), {})
    given = {"membership": lab.Result(arrays, {}), "distances": [], "scores": {}} | more
    return page.ModelAudit(found, (), **given)


def test_the_module_that_identifies_members_best_is_named() -> None:
    leaks = model_audit({"body": 5, "head": 15}).module_title()
    assert leaks == "The features of 'head' identify members best: AUC 0.575"
    silent = model_audit({"body": 1, "head": 0}).module_title()
    assert silent == "No module's features identify members significantly: AUC 0.505 at most"


def test_the_weights_with_the_largest_scores_are_counted_by_tensor() -> None:
    score = {"first.weight": np.arange(8.0), "out.weight": np.full(2, 7.5)}
    rows = model_audit({"head": 0}, scores={"|weight|": lab.Result(score, {})}).weight_rows(0.3)
    column = "largest 30% by |weight|"
    assert [(row["weights of"], row["number"], row[column]) for row in rows] == [
        ("first.weight", 8, 1),
        ("out.weight", 2, 2),
    ]


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(BadInput, match="4 train samples of digits are needed, and 4 test samples"):
        fitted_sizes("digits", None, None, 3, None)


def test_another_accuracy_than_the_known_one_is_refused(mine, monkeypatch) -> None:
    """Of a network that reads digits, trained as they are read here: some 95 % of the test part."""
    own = mine(MINE.replace("width: Positive = 3", "width: Positive = 8"))
    split = GivenSplit(400, test=354, population=154)
    setup = Setup(Data("digits"), split, own.Mine(), Schedule(12, 20, "adam", lr=0.005), 5)
    trained = setup.trained()[0]
    share = float(lab.realize(Signals(trained))[Signals(trained)]["accuracy_test"])
    assert 0.85 < share < 1
    state = store.read(trained.key).arrays
    tensors = {name: torch.tensor(state[name]) for name in own.Net(8).state_dict()}
    save_file(tensors, "mine.safetensors")
    target = weights.import_model("mine.safetensors", setup)
    for known in (None, share, round(share, 2)):
        checks.refuse_another_accuracy(target, known)
    for known in (share - 0.1, 93.5, "high", True):
        with pytest.raises(BadInput, match="known"):
            checks.refuse_another_accuracy(target, known)

    facts = find("digits")  # the same weights, where inputs are normalised in another way
    monkeypatch.setitem(ENTRIES, "digits", replace(facts, mean=(0.9,), std=(0.1,)))
    resident.cache_clear()
    with pytest.raises(BadInput, match="mean and std of digits"):
        checks.refuse_another_accuracy(target, share)
    resident.cache_clear()


def test_shadows_of_a_given_split_see_both_sides_and_no_target_of_another_design(mine) -> None:
    own = mine()
    setup = setup_of(own, models=3)
    trainings = [state.training for state in setup.trained()]
    assert [training.design.pair(training.row) for training in trainings] == [0, 1, 1]
    with pytest.raises(BadInput, match="leaves no even number"):
        Train(setup.data, GivenSplit(100, test=20, population=20), 0, setup.model, setup.schedule)
    with pytest.raises(BadInput, match="give test as a number"):
        Train(setup.data, GivenSplit(100), 0, setup.model, setup.schedule)
    other = Setup(setup.data, RandomHalves(60), setup.model, setup.schedule, 4).trained()
    with pytest.raises(BadInput, match="designs draw others"):
        Population((setup.trained()[0],)).attack(LiRA(), shadows=other)


PAGE = paths.NOTEBOOKS / "own" / "audit_my_model.py"


def cell_of(text: str, start: str) -> str:
    """The cell of a notebook's text that begins so."""
    return next(cell for cell in text.split("# %%\n") if cell.startswith(start))


def options(given: dict[str, Any]) -> list[str]:
    """Parameters as a command takes them."""
    found = []
    for name, value in given.items():
        found += ["-p", f"{name}={value}"]
    return found


def batch(**given: Any) -> int:
    """`leak-atlas reproduce` of the page for a user's model, with parameters."""
    return main(["reproduce", "own/audit_my_model", *options(given)])


@pytest.mark.notebook
def test_a_user_in_an_empty_folder_audits_a_model(mine, own_outputs: Path, capsys) -> None:
    """Images and weights from files; a table without shadows or pairs."""
    rng = np.random.default_rng(0)
    x = rng.integers(256, size=(240, 16, 16), dtype=np.uint8)
    y = rng.integers(10, size=240)
    np.savez("mine.npz", x_train=x[:100], y_train=y[:100], x_test=x[100:], y_test=y[100:])
    own_sets.add("my-set", Path("mine.npz"))
    cell = cell_of(PAGE.read_text(), "from leak_atlas.models import network")
    space: dict[str, Any] = {"__name__": "cell"}
    exec(compile(cell, "cell", "exec", dont_inherit=True), space)
    torch.manual_seed(0)
    save_file(space["Net"](1, 10, 16).state_dict(), "mine.safetensors")
    small = {"data": "my-set", "weights": "mine.safetensors", "epochs": 2}
    done = batch(**small, pool=600, test=140, population=40, shadow_networks=6, probe_pairs=2)
    assert done == 0, capsys.readouterr().err
    (html,) = (own_outputs / "runs").rglob("audit_my_model.html")
    scores = pd.read_csv(html.with_suffix(".csv"))
    assert len(scores) == 200
    assert scores["member"].sum() == 100
    assert "LiRA online" in scores
    assert 0.3 < audit.auc(scores["loss"], scores["member"]) < 0.7  # it was never trained
    assert paths.shown(html.with_suffix(".csv")) in html.read_text()
    assert "pool: 100, not 600" in html.read_text()
    assert "Is this the test accuracy that you know?" in html.read_text()
    frame = pd.DataFrame(rng.normal(size=(120, 7)).round(3)).assign(label=["no", "yes"] * 60)
    frame.to_csv("mine.csv", index=False)
    own_sets.add("my-table", Path("mine.csv"))
    done = batch(data="my-table", shadow_networks=0, probe_pairs=0, epochs=1)
    output = capsys.readouterr()
    assert done == 0, output.err
    assert output.out.count("1 of 1 notebooks") == 2
    for given, words in (
        (small | {"known_accuracy": 0.9}, "known_accuracy is 0.9"),
        ({"weights": "mine.safetensors"}, "data = 'my-set'"),
    ):
        assert batch(**given) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert words in error
