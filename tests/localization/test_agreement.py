"""How far two rankings of samples agree, on made-up scores."""

import numpy as np
import pytest
from scipy import stats

from lib.localization.samples import agreement, reliability

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
