"""Scores against closed forms, and the samples that their updates use."""

import copy
from collections import OrderedDict

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.localization.scores import _batches, kinds, snip, summed_updates, taylor
from leak_atlas.models import Net, build, skeleton
from leak_atlas.recipe import SNIP, Learnability, Model, Vulnerability
from tests.localization.small import images

MEMBERS = torch.arange(14)
REFERENCE = torch.arange(14, 24)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def data() -> Resident:
    return images()


@pytest.fixture
def net() -> Net:
    """A network whose statistics are not those of its initialisation."""
    made = build(Model("resnet10", width=2), 1, 3, 1)
    for name, buffer in made.named_buffers():
        if name.endswith("running_mean"):
            buffer.fill_(0.1)
    return made


def initial() -> Net:
    return build(Model("resnet10", width=2), 1, 3, 0)


def score(net: Net, data: Resident, criterion: Learnability | Vulnerability, seed: int = 0):
    return taylor(
        copy.deepcopy(net), data, MEMBERS, criterion, seed=seed, reference=REFERENCE, init=initial()
    )


@pytest.mark.parametrize("steps", [1, 4])
def test_a_quadratic_loss_has_the_score_of_its_closed_form(steps: int) -> None:
    """g w = k (w - w*) w with w before each update: under gradient descent w - w* shrinks by 1 - lr
    k each time.
    """
    k, rate, goal = 2.0, 0.1, 0.3
    net = Net(OrderedDict(head=nn.Sequential(nn.Flatten(), nn.Linear(64, 3))))
    start = net.head[1].weight.detach().clone()
    start[0, 0] = 0
    with torch.no_grad():
        net.head[1].weight.copy_(start)
    criterion = Learnability(steps, 8, "sgd", rate)
    losses = (0.5 * k * (net.head[1].weight - goal).square().sum() for _ in range(steps))
    sums = summed_updates(net, criterion, losses)
    w = [goal + (start - goal) * (1 - rate * k) ** t for t in range(steps)]
    expected = sum((k * (each - goal) * each).abs() for each in w)
    torch.testing.assert_close(sums["head.1.weight"], expected)
    first = sums["head.1.weight"][0, 0]
    assert (first == 0) == (steps == 1), "a weight of zero scores zero until it has moved"


def test_snip_is_the_absolute_taylor_score_of_one_batch_up_to_its_sum(
    net: Net, data: Resident
) -> None:
    one, _ = score(net, data, Learnability(1, 100))
    found = snip(copy.deepcopy(net), data, MEMBERS, SNIP(100), seed=3)
    total = sum(float(value.sum()) for value in one.values())
    for name, value in found.items():
        torch.testing.assert_close(value, one[name] / total)
    assert sum(float(value.sum()) for value in found.values()) == pytest.approx(1)


def test_snips_batch_is_class_balanced(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Tensor] = []
    plain = augmentation.plain
    monkeypatch.setattr(
        augmentation, "plain", lambda data, index: seen.append(index) or plain(data, index)
    )
    skewed = torch.cat(
        [torch.arange(0, 24, 3), torch.tensor([1, 2, 4, 5])]
    )  # 8, 2 and 2 of the classes
    snip(net, data, skewed, SNIP(6), seed=0)
    assert data.labels[seen[0]].bincount().tolist() == [2, 2, 2]


def test_the_vulnerability_is_written_out(net: Net, data: Resident) -> None:
    """One update on all members and reference samples, against the formula."""
    found, history = score(net, data, Vulnerability(1, 100, weight=0.3))
    own = copy.deepcopy(net).eval()
    init = initial().eval()
    p = own(augmentation.plain(data, REFERENCE)).softmax(1)
    q = init(augmentation.plain(data, REFERENCE)).softmax(1).detach()
    kl = (p * (p / q).log()).sum(dim=1).mean()
    ce = functional.cross_entropy(own(augmentation.plain(data, MEMBERS)), data.labels[MEMBERS])
    (0.7 * ce + 0.3 * kl).backward()
    for name, weight in own.named_parameters():
        if name in found:
            product = (weight.grad * weight).abs().detach()
            torch.testing.assert_close(found[name], product, rtol=1e-3, atol=1e-7)
    assert float(history["ce"][0]) == pytest.approx(ce.item(), rel=1e-5)
    assert float(history["kl"][0]) == pytest.approx(kl.item(), rel=1e-4)


def test_pushing_reference_outputs_back_does_so(net: Net, data: Resident) -> None:
    _, pushed = score(net, data, Vulnerability(40, 16, weight=0.9, lr=0.01))
    assert float(pushed["kl"][-1]) < 0.2 * float(pushed["kl"][0])


def test_batches_are_turns_through_all_and_depend_on_the_seed_and_the_draw_alone(
    net: Net, data: Resident
) -> None:
    batches = _batches(14, Vulnerability(5, 6), 0, 21)
    assert batches.shape == (5, 6)
    assert sorted(batches.flatten()[:14].tolist()) == list(range(14))
    one, again, other = (score(net, data, Learnability(3, 8), seed)[0] for seed in (1, 1, 2))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)
    drawn = score(net, data, Learnability(3, 8, draw=1), 1)[0]
    assert not all(torch.equal(one[name], drawn[name]) for name in one)


def test_statistics_stay_while_scoring(net: Net, data: Resident) -> None:
    scored = copy.deepcopy(net)
    taylor(scored, data, MEMBERS, Learnability(3, 8), seed=0)
    before = dict(net.named_buffers())
    assert all(torch.equal(buffer, before[name]) for name, buffer in scored.named_buffers())
    assert not torch.equal(scored.head.fc.weight, net.head.fc.weight)


def test_what_is_scored_and_of_which_type_it_is() -> None:
    net = initial()
    types = kinds(net)
    assert types["stem.conv.weight"] == "conv"
    assert types["stem.norm.weight"] == "norm"
    assert types["head.fc.weight"] == "linear"
    assert set(types) == {name for name, _ in net.named_parameters() if name.endswith("weight")}
    words = kinds(skeleton(Model("transformer", width=8), 50, 4, 12))
    assert words["stem.embedding.weight"] == "embedding"
    assert words["stage1.attention.qkv.weight"] == "attention"
    assert (words["head.norm.weight"], words["head.fc.weight"]) == ("norm", "linear")
    assert "stem.positions" not in words


def share(found: dict[str, str], net: Net, kind: str) -> float:
    """Of the weights that CWRF's Tab. 1 counts, which leaves embeddings out."""
    sizes = {name: weight.numel() for name, weight in net.named_parameters()}
    counted = sum(sizes[name] for name, each in found.items() if each != "embedding")
    return 100 * sum(sizes[name] for name, each in found.items() if each == kind) / counted


@pytest.mark.parametrize(
    ("model", "shares"),
    [
        (Model("resnet18"), {"conv": 99.50, "linear": 0.457, "norm": 0.043}),
        (Model("vit"), {"attention": 99.39, "linear": 0.5392, "norm": 0.0701}),
    ],
    ids=["resnet18", "vit"],
)
def test_layer_types_have_the_shares_of_the_papers_table(
    model: Model, shares: dict[str, float]
) -> None:
    """CWRF, Tab. 1, with 100 classes: they fit weights alone, which is why nothing else is scored."""
    net = skeleton(model, 3, 100, 32)
    found = kinds(net)
    assert set(found.values()) - {"embedding"} == set(shares)
    for kind, expected in shares.items():
        assert share(found, net, kind) == pytest.approx(
            expected, abs=0.005 if expected > 90 else 0.0005
        )


def test_a_score_that_diverges_is_refused(net: Net, data: Resident) -> None:
    with pytest.raises(BadInput, match="lower lr"):
        taylor(net, data, MEMBERS, Learnability(20, 8, optimizer="sgd", lr=1e20), seed=0)
