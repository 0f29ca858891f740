"""How far two rankings of samples agree, on made-up scores."""

import numpy as np
import pytest
from scipy import stats

from lib.audit import auc, own_rates
from lib.localization.samples import agreement, areas, followed, rates, reliability

RNG = np.random.default_rng(5)


def test_samples_without_a_score_are_left_out() -> None:
    one, other = RNG.normal(size=(2, 60))
    whole = {"score": one, "index": np.arange(60)}
    lacks = {"score": np.where(np.arange(60) < 7, np.nan, other), "index": np.arange(60)}
    found = agreement(whole, lacks)
    assert found.n == 53
    assert found.value == pytest.approx(stats.spearmanr(one[7:], other[7:]).statistic)


def test_two_halves_tell_how_reliable_the_whole_is() -> None:
    """Of scores with noise, as that of twice the networks agrees with another such one."""
    truth, noise = RNG.normal(size=40_000), RNG.normal(size=(4, 40_000))
    halves = [{"score": truth + each, "index": np.arange(40_000)} for each in noise[:2]]
    wholes = [{"score": truth + each / np.sqrt(2), "index": np.arange(40_000)} for each in noise[2:]]
    found = reliability(*halves)
    assert found.value == pytest.approx(agreement(*wholes).value, abs=0.02)
    assert found.low < found.value < found.high < 1


def test_an_attack_follows_a_ranking_by_ease_alone_or_beyond_it() -> None:
    """Scores made of ease correlate with a score made of ease, and no more once ease is known."""
    ease, more = RNG.normal(size=(2, 4000))
    index, member = np.arange(4000) + 3, np.arange(4000) % 2 == 0
    ranking = {"score": more - ease, "outside": ease, "index": index}

    def attack(scores: np.ndarray) -> dict[str, np.ndarray]:
        return {"scores": scores[None], "member": member, "index": index}

    for scores, beyond in ((np.exp(-ease), 0.0), (np.exp(more), 1.0)):
        (plain,), (given,) = (followed(attack(scores), ranking, given_ease=each) for each in (False, True))
        assert plain == pytest.approx(stats.spearmanr(scores[member], ranking["score"][member]).statistic)
        assert given == pytest.approx(beyond, abs=0.08)
    (others,) = followed(attack(np.where(member, 0, ranking["score"])), ranking, members=False)
    assert others == pytest.approx(1.0)
    with pytest.raises(ValueError, match="does not know"):
        followed(attack(ease) | {"index": index + 1}, ranking)


def test_rates_and_areas_of_parts() -> None:
    """One part is the whole; a border for all parts has its FPR over all of them."""
    member, index = np.arange(2000) % 2 == 0, np.arange(2000)
    attack = {
        "scores": RNG.normal(size=(2, 2000)) + member,
        "member": member,
        "index": index,
        "thresholds": np.zeros(2),
    }
    ranking = {"score": attack["scores"][0], "index": index}
    assert areas(attack, ranking, 1) == pytest.approx(auc(attack["scores"], member)[None])
    assert rates(attack, ranking, 1) == pytest.approx(np.array(own_rates(attack))[None])
    without = {**attack, "thresholds": np.full(2, np.nan)}
    assert rates(without, ranking, 1, fpr=0.05)[0, 1] == pytest.approx(0.05)
    low, high = rates(without, ranking, 2, fpr=0.05)[:, :, 0]
    assert low.tolist() == [0, 0] and high[1] > 0.1  # ranked by the first target's own scores
