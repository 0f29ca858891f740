"""Nets that see sensitivities: SAMIA, its parts against torch's own, and the pruning papers' net."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from leak_atlas import BadInput, audit
from leak_atlas.attacks import networks
from leak_atlas.attacks.networks import _xavier, build, trained
from leak_atlas.attacks.samia import Dropout, Encoder
from leak_atlas.recipe import PRUNING_NET, SAMIA, Learner, Network
from tests.attacks.test_attacks import complement_pairs, finds_nothing

QUICK = SAMIA(epochs=6, batch=64, lr=0.03)
NETS: tuple[Learner, ...] = (
    QUICK,
    replace(PRUNING_NET, inputs="posterior_sensitivity_label", epochs=6),
)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@cache
def planted(gap: float, n: int = 400, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Three models that answer members and others alike, whose members are less sensitive by a
    factor of e^gap.
    """
    rng = np.random.default_rng(seed)
    member, labels = complement_pairs(rng, 2, n)[:3], rng.integers(5, size=n)
    logits = rng.normal(size=(3, n, 5)) + 2 * np.eye(5)[labels]
    return logits, np.exp(rng.normal(size=(3, n, 5)) - gap * member[..., None]), member, labels


def auc(attacker: Learner, gap: float, judged: np.ndarray | None = None, **size: int) -> float:
    """Of the first model, attacked by the two others; judged by its own members unless others are
    given.
    """
    logits, moved, member, labels = planted(gap, **size)
    known = moved if "sensitivity" in attacker.blocks else None
    asked = None if known is None else known[1:, :400]
    net = trained(logits[1:, :400], member[1:, :400], labels[:400], attacker, asked)
    scores = networks.scores(net, logits[0], labels, attacker, None if known is None else known[0])
    return float(audit.auc(scores, member[0] if judged is None else judged))


@pytest.mark.parametrize("classes", [10, 30])
def test_samia_has_the_published_size(classes: int) -> None:
    layer = 64 * 192 + 192 + 64 * 64 + 64 + 64 * 128 + 128 + 128 * 64 + 64 + 4 * 64
    whole = 2 * 3 * classes + (3 * 64 + 64) + 3 * layer + (64 * classes * 64 + 64) + (64 * 2 + 2)
    assert sum(p.numel() for p in build(SAMIA(), classes).parameters()) == whole
    assert whole == {10: 141_886, 30: 223_926}[classes]
    alone = build(SAMIA("posterior"), classes)
    assert sum(p.numel() for p in alone.parameters()) == whole - 2 * 2 * classes - 2 * 64


def test_each_token_is_a_class() -> None:
    """Posterior, sensitivity and label of one class meet before the attention, those of two classes
    in it.
    """
    net = build(SAMIA(), 4).eval()
    x = torch.zeros(1, 12)
    with torch.no_grad():
        still = net.embed(net.tokens(net.norm(x)).transpose(1, 2))
        for place in range(12):
            moved = net.embed(net.tokens(net.norm(x + torch.eye(12)[place])).transpose(1, 2))
            assert (moved != still).any(dim=2).nonzero()[:, 1].tolist() == [place % 4]
    assert net(torch.rand(7, 12)).shape == (7, 1)


def test_the_layers_written_out_are_torchs() -> None:
    torch.manual_seed(0)
    own, theirs = (
        Encoder(64, 128).eval(),
        nn.TransformerEncoderLayer(64, 4, 128, 0.2, "gelu", batch_first=True).eval(),
    )
    renamed = {"attention": "self_attn", "up": "linear1", "down": "linear2"}
    known, state = theirs.state_dict(), {}
    for name in own.state_dict():
        part, _, rest = name.partition(".")
        state[name] = known[f"{renamed.get(part, part)}.{rest}"]
    own.load_state_dict(state)
    x = torch.randn(3, 10, 64)
    with torch.no_grad():
        torch.testing.assert_close(own(x), theirs(x), atol=1e-5, rtol=1e-5)
    ones = Dropout()(torch.ones(1001, 999))
    assert ones.mean() == pytest.approx(1, abs=0.003) and (
        ones == 0
    ).float().mean() == pytest.approx(0.2, abs=0.002)


def published(module: nn.Module) -> None:
    """The published code's initialiser, after its description: it goes by the name of a module's
    class.
    """
    if type(module).__name__ == "Linear":
        nn.init.xavier_normal_(module.weight)  # type: ignore[arg-type]
        nn.init.zeros_(module.bias)  # type: ignore[arg-type]


def test_weights_begin_as_in_the_published_code() -> None:
    """Each map's RMS is that of torch's encoder under the published initialiser; attention's output
    map has .072.
    """
    layer = nn.TransformerEncoderLayer(64, 4, 128, 0.2, "gelu")
    theirs = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).apply(published)
    torch.manual_seed(0)
    net = build(SAMIA(), 10).apply(_xavier)

    def rms(tensor: torch.Tensor) -> float:
        return float(tensor.detach().square().mean().sqrt())

    first = net.layers[0].attention
    assert rms(first.out_proj.weight) == pytest.approx(1 / 8 / 3**0.5, rel=0.03)
    assert first.out_proj.weight.abs().max() <= 1 / 8, "uniform, as torch's linear maps are"
    for own, other in zip(net.layers, theirs.layers, strict=True):
        pairs = [
            (own.attention, other.self_attn),
            (own.up, other.linear1),
            (own.down, other.linear2),
        ]
        for mine, known in pairs:
            expected = {name: rms(value) for name, value in known.named_parameters()}
            found = {name: rms(value) for name, value in mine.named_parameters()}
            assert found == pytest.approx(expected, rel=0.05)
        assert torch.equal(own.attention.out_proj.weight, first.out_proj.weight), (
            "layers are copies of one"
        )
    assert (
        rms(net.embed.weight) == pytest.approx((2 / 67) ** 0.5, rel=0.2)
        and not net.embed.bias.any()
    )


def test_a_large_pool_is_asked_in_parts() -> None:
    net, x = build(SAMIA(), 3).eval(), torch.rand(2500, 9)
    with torch.no_grad():
        torch.testing.assert_close(net(x), torch.cat([net(x[:1200]), net(x[1200:])]))


@pytest.mark.parametrize("attacker", NETS, ids=lambda one: type(one).__name__)
def test_nets_learn_what_sensitivity_alone_tells(attacker: Learner) -> None:
    assert auc(attacker, gap=1.0) > 0.8
    assert auc(replace(attacker, inputs="posterior_label"), gap=1.0) < 0.6


@pytest.mark.parametrize("attacker", NETS, ids=lambda one: type(one).__name__)
def test_nets_with_sensitivity_find_nothing_where_there_is_nothing(attacker: Learner) -> None:
    """Shuffled membership: the net knows what members look like, and is judged by those of another
    model.
    """
    areas = []
    for seed in range(16):
        judged = np.random.default_rng(100 + seed).permutation(2000) < 1000
        areas.append(
            auc(replace(attacker, epochs=2, batch=100, seed=seed), 1.0, judged, n=2000, seed=seed)
        )
    assert finds_nothing(audit.mean_ci(areas)), areas


def test_a_batch_of_one_is_left_out_and_rates_fall() -> None:
    logits, moved, member, labels = planted(1.0, n=43)
    attacker = replace(QUICK, epochs=1, batch=5)
    assert 43 * 2 % 5 == 1 and trained(logits[1:], member[1:], labels, attacker, moved[1:])

    def weights(epochs: int) -> np.ndarray:
        """After `epochs`, with rates that are nothing from the second one on."""
        own = replace(PRUNING_NET, epochs=epochs, milestones=(1 / epochs,) * 30)
        return trained(logits[1:], member[1:], labels, own)["0.weight"]

    np.testing.assert_array_equal(weights(4), weights(2))


def test_what_nets_ask_and_cost() -> None:
    asked = [replace(PRUNING_NET, inputs=i) for i in ("top3", "posterior_sensitivity")]
    assert PRUNING_NET.hidden == (512, 256, 128) and isinstance(
        build(asked[1], 5)[0], nn.BatchNorm1d
    )
    assert build(asked[0], 5)[0].in_features == build(asked[0], 2)[0].in_features == 3
    kept = [layer.p for layer in build(PRUNING_NET, 5) if isinstance(layer, nn.Dropout)]
    assert kept == [0.2, 0.2, 0.0]
    assert (
        SAMIA().operations(lambda *_: 0.0, 100, 30)
        > 2.5 * SAMIA().operations(lambda *_: 0.0, 100, 10)
        > 0
    )
    with pytest.raises(BadInput, match="2 of them for 3"):
        Network(dropout=(0.1, 0.2))
    with pytest.raises(BadInput, match=r"SAMIA.inputs"):
        SAMIA("top3")  # type: ignore[arg-type]
