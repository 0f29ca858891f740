"""RMIA and BASE against their definition, written out slowly, and against closed forms."""

from decimal import Decimal, localcontext
from functools import partial

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from leak_atlas import BadInput, audit
from leak_atlas.attacks import rmia as ratios
from leak_atlas.attacks import signals
from leak_atlas.attacks.case import Case, infer
from leak_atlas.attacks.rmia import base, confidences, log_ratio
from leak_atlas.data.designs import Role
from leak_atlas.recipe import RMIA
from tests.attacks.simulated import complement_pairs, same_order


def rmia(
    target: ArrayLike,
    shadows: ArrayLike,
    member: ArrayLike,
    target_z: ArrayLike,
    shadows_z: ArrayLike,
    member_z: ArrayLike | None = None,
    **options: str | float,
) -> np.ndarray:
    attacker = RMIA(**options)  # type: ignore[arg-type]
    return ratios.rmia(target, shadows, member, target_z, shadows_z, attacker, member_z=member_z)


def simulated(seed: int, queries: int = 1, z: int = 300) -> tuple[np.ndarray, ...]:
    """Log confidences and membership: target, shadows, member, target_z, shadows_z."""
    rng = np.random.default_rng(seed)
    inside = complement_pairs(rng, 4, 200)
    x, others, x_z, others_z = (
        -rng.exponential(size=(*shape, queries)) for shape in ((200,), (8, 200), (z,), (8, z))
    )
    return x, others, inside, x_z, others_z


def test_rmia_of_the_reference_itself() -> None:
    """Every ratio is 1: no z is beaten strictly when gamma >= 1, every one when gamma < 1."""
    rng = np.random.default_rng(0)
    x = -rng.exponential(size=50)
    z = -rng.exponential(size=30)
    run = partial(rmia, x, x[None], np.zeros((1, 50), dtype=bool), z, z[None])
    for gamma, expected in ((2.0, 0.0), (1.0, 0.0), (0.999, 1.0)):
        np.testing.assert_array_equal(run(gamma=gamma, ties="share"), expected)
    # A tie stays a tie, and the tie-break does not lift a share to the next one.
    assert np.unique(run(gamma=1.0)).size == 1


@pytest.mark.parametrize("queries", [1, 2, 3])
@pytest.mark.parametrize("mode", ["online", "offline"])
def test_rmia_equals_its_definition(queries: int, mode: str) -> None:
    x, others, inside, z, others_z = simulated(0, queries)
    run = partial(rmia, x, others, inside, mode=mode, a=0.4, gamma=1.3, ties="share")
    scores = run(z, others_z)

    def ratio(own: np.ndarray, references: np.ndarray) -> np.ndarray:
        mean = np.exp(references).mean(axis=0)
        return np.exp(own) / (mean if mode == "online" else (1.4 * mean + 0.6) / 2)

    ratio_z = np.stack([ratio(z[k], others_z[:, k]) for k in range(len(z))])
    expected = np.empty(200)
    for j in range(200):
        used = others[:, j] if mode == "online" else others[~inside[:, j], j]
        votes = (ratio(x[j], used) / ratio_z > 1.3).sum(axis=1)
        expected[j] = np.mean(votes > queries / 2)
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    order = np.random.default_rng(0).permutation(len(z))
    np.testing.assert_array_equal(scores, run(z[order], others_z[:, order]))


def test_membership_may_be_zeros_and_ones() -> None:
    x, others, inside, _, _ = simulated(0)
    attacker = RMIA("offline")
    expected = log_ratio(x, others, inside, attacker)
    np.testing.assert_array_equal(log_ratio(x, others, inside.astype(int), attacker), expected)


def test_blocks_of_the_comparison_do_not_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = simulated(1, queries=2)
    whole = rmia(*arrays)
    monkeypatch.setattr("leak_atlas.attacks.rmia.BLOCK", 1000)
    np.testing.assert_array_equal(rmia(*arrays), whole)


def test_gamma_and_z_cannot_change_the_ranking_and_base_is_its_limit() -> None:
    arrays = simulated(4)
    x, others, inside, z, others_z = arrays
    expected = base(x, others, inside)
    for gamma in (0.5, 1.0, 2.0, 8.0):
        assert same_order(rmia(*arrays, gamma=gamma), expected)
    assert same_order(rmia(x, others, inside, z[:20], others_z[:, :20]), expected)
    plain = rmia(*arrays, ties="share")
    assert stats.kendalltau(plain, expected).statistic == pytest.approx(1, abs=0.05)
    np.testing.assert_array_equal(np.floor(rmia(*arrays) * 300 + 1e-6) / 300, plain)


def test_of_several_queries_the_mean_log_ratio_breaks_ties() -> None:
    arrays = simulated(0, queries=3, z=2)
    x, others, inside, _, _ = arrays
    ratio = log_ratio(x, others, inside, RMIA()).mean(axis=1)
    np.testing.assert_allclose(base(x, others, inside), ratio)
    share = rmia(*arrays, ties="share")
    scores = rmia(*arrays)
    for level in (0.0, 0.5, 1.0):
        tied = share == level
        assert tied.sum() > 10
        assert same_order(scores[tied], ratio[tied])


def test_views_are_read_as_log_confidences() -> None:
    p = np.random.default_rng(0).random((6, 2))
    views = {"views": np.log(p / (1 - p))}
    some = np.arange(6) > 2
    signal = confidences(Case(views, (), {}), views=2)
    np.testing.assert_allclose(signal(views, some), np.log(p[some]))


@pytest.mark.parametrize("attack", ["base", "rmia"])
def test_ratio_attacks_have_their_closed_form(attack: str) -> None:
    """Any increasing transform of a shifted Gaussian, against references that all agree: AUC is
    Phi(d / sqrt 2).
    """
    rng = np.random.default_rng(0)
    n = 40_000
    member = np.arange(2 * n) < n
    x = -np.exp(-(rng.normal(size=2 * n) + member))
    z = -np.exp(-rng.normal(size=500))
    flat = np.full((4, 2 * n), -0.7)
    inside = np.zeros((4, 2 * n), dtype=bool)
    scores = base(x, flat, inside)
    if attack == "rmia":
        scores = rmia(x, flat, inside, z, np.full((4, 500), -0.7))
    area = audit.auc_interval(scores, member, level=0.999)
    assert area.low <= stats.norm.cdf(1 / np.sqrt(2)) <= area.high


@pytest.mark.parametrize(
    "attacker",
    [RMIA(), RMIA("offline", a=0.3), RMIA("offline", a=1.0)],
    ids=lambda one: f"{one.mode} {one.a}",
)
def test_ratios_keep_their_digits(attacker: RMIA) -> None:
    """Against many digits: mean probabilities of shadow models from e^-2000 to 1 - 1e-15."""
    others = np.array([-2000.0, -745.2, -30.0, -1e-3, -1e-9, -1e-15])
    own = np.array([-1.0, -700.0, -2.0, -2e-3, -3e-9, -2e-16])
    exact = []
    with localcontext() as context:
        context.prec = 1200
        share = Decimal(1 + attacker.a) / 2 if attacker.mode == "offline" else Decimal(1)
        for p, q in zip(own, others, strict=True):
            average = share * Decimal(q).exp() + 1 - share
            exact.append(float(Decimal(p) - average.ln()))
    ratio = log_ratio(own, others[None], np.zeros((1, 6), bool), attacker)
    np.testing.assert_allclose(ratio[:, 0], exact, 1e-12)


def test_what_cannot_be_compared_is_refused() -> None:
    x, others, inside, _, _ = simulated(0)
    with pytest.raises(ValueError, match="sample 0 has 0 shadow models"):
        log_ratio(x, others, inside | True, RMIA("offline"))
    with pytest.raises(BadInput, match="gamma"):
        RMIA(gamma=0.0)


def test_a_shadow_that_trained_on_the_population_is_no_reference_for_it() -> None:
    """A design without test samples: its dev samples are the population, and may be members of a
    shadow model.
    """
    rng = np.random.default_rng(0)
    roles = rng.choice([Role.MEMBER, Role.NONMEMBER], size=(5, 60)).astype(np.int8)
    roles[0, 40:], roles[1] = Role.DEV, Role.NONMEMBER  # one shadow model knows none of them
    labels = np.arange(60) % 4
    logits = rng.normal(size=(5, 60, 4))
    logits[2:] += 9 * (roles[2:, :, None] == Role.MEMBER) * np.eye(4)[labels]
    target, *shadows = (
        {"logits": z, "labels": labels, "role": role} for z, role in zip(logits, roles, strict=True)
    )
    scores = infer(RMIA("offline"), Case(target, shadows, {})).scores
    p = signals.log_confidence(logits, labels)
    inside = roles[1:] == Role.MEMBER
    run = partial(rmia, p[0, :40], p[1:, :40], inside[:, :40], p[0, 40:], p[1:, 40:])
    np.testing.assert_array_equal(scores, run(member_z=inside[:, 40:], mode="offline"))
    assert not np.array_equal(scores, run(mode="offline")), "unaware of the shadows' members"
