"""Paired differences, rows and lines of a comparison, against SciPy and closed forms."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from leak_atlas import audit
from leak_atlas.audit import Comparison, Estimate
from tests.audit.test_comparison import made, separated


class Pruned(NamedTuple):
    pruner: str
    sparsity: float

    def __str__(self) -> str:
        return f"{self.pruner}, {self.sparsity:.0%} removed"


L1, SLIM, RANDOM = Pruned("L1", 0.6), Pruned("slimming", 0.6), ("random", 0.6)


def compared() -> Comparison:
    """Four variants, two attackers (one without own thresholds), eight targets."""
    attacks: dict[Any, Any] = {}
    for i, variant in enumerate(("dense", L1, SLIM, RANDOM)):
        scored = made(0.5 + 0.2 * i, seed=i)
        attacks[variant, "Conf"] = scored | {"thresholds": np.full(8, 0.3)}
        if variant != SLIM:
            attacks[variant, "LiRA"] = made(1.0 + 0.2 * i, seed=10 + i)
    draws = np.random.default_rng(0)
    test, members = (
        {variant: draws.uniform(0.5, 0.9, 8) for variant in ("dense", L1, SLIM, RANDOM)}
        for _ in range(2)
    )
    return Comparison(test, attacks, members=members)


def paired(first: Any, second: Any) -> tuple[float, float, float]:
    """SciPy's paired t: mean difference and interval."""
    test = stats.ttest_rel(first, second)
    low, high = test.confidence_interval(0.95)
    return float(np.mean(np.subtract(first, second))), float(low), float(high)


def numbers(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def by_hand(comparison: Comparison, variant: Any, attacker: str, metric: str) -> Any:
    """A metric of each target, in plain NumPy."""
    if metric == "test accuracy":
        return comparison.accuracies[variant]
    if metric == "member accuracy":
        return comparison.members[variant]
    scored = comparison.attacks[variant, attacker]
    out = []
    for scores, member in zip(scored["scores"], scored["member"], strict=True):
        inside, outside = scores[member], scores[~member]
        if metric == "auc":
            out.append(stats.mannwhitneyu(inside, outside).statistic / inside.size / outside.size)
        elif metric == "accuracy":
            out.append(np.mean((scores >= 0.3) == member))
        else:
            out.append((np.mean(inside >= 0.3) + np.mean(outside < 0.3)) / 2)
    return out


@pytest.mark.parametrize(
    "metric", ["test accuracy", "member accuracy", "auc", "accuracy", "balanced"]
)
def test_a_contrast_is_scipys_paired_difference(metric: str) -> None:
    both = compared()
    found = both.contrast(L1, "dense", "Conf", metric)
    first, second = (by_hand(both, variant, "Conf", metric) for variant in (L1, "dense"))
    assert numbers(found) == pytest.approx(paired(first, second), abs=1e-12)
    assert both.measured(L1, "Conf", metric) == pytest.approx(np.array(first))


def test_a_contrast_of_two_attackers() -> None:
    both = compared()
    found = both.contrast(L1, "dense", "LiRA", "auc", against="Conf")
    first, second = by_hand(both, L1, "LiRA", "auc"), by_hand(both, "dense", "Conf", "auc")
    assert numbers(found) == pytest.approx(paired(first, second), abs=1e-12)
    with pytest.raises(ValueError, match="LiRA has no own thresholds"):
        both.contrast(L1, "dense", "LiRA", "accuracy")


def test_a_contrast_of_tprs_has_the_mean_of_numpys() -> None:
    both = compared()
    rates = []
    for variant in (L1, "dense"):
        scored = both.attacks[variant, "LiRA"]
        each = zip(scored["scores"], scored["member"], strict=True)
        # 200 non-members: at an FPR of .05 ten may lie above the border
        rates.append([np.mean(s[m] > np.sort(s[~m])[-11]) for s, m in each])
    found = both.contrast(L1, "dense", "LiRA", "tpr@0.05")
    assert found.value == pytest.approx(np.mean(np.subtract(*rates)))
    low, high = paired(*rates)[1:]
    assert found.low <= low + 1e-12 and found.high >= high - 1e-12
    assert both.estimate(L1, "LiRA", "tpr@0.05").value == pytest.approx(np.mean(rates[0]))


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="no metric 'area'"):
        compared().contrast(L1, "dense", "LiRA", "area")


def test_rows_have_the_parts_of_a_key_as_columns() -> None:
    both = compared()
    rows = both.rows("Conf", "accuracy", names=("pruner", "sparsity"))
    assert [(row["pruner"], row["sparsity"]) for row in rows] == [L1, SLIM, RANDOM]
    assert rows[0]["value"] == both.leak(L1, "Conf")["accuracy"]
    assert [row["pruner"] for row in both.rows("LiRA", names=("pruner", "sparsity"))] == [
        "L1",
        "random",
    ], "LiRA has not attacked the other one"
    assert both.rows("Conf", variants=[L1]) == [
        {"pruner": "L1", "sparsity": 0.6, "value": both.leak(L1, "Conf")["auc"]}
    ]
    plain = both.rows("", "test accuracy", names=["network"])
    assert [row["network"] for row in plain] == ["dense", L1, SLIM, RANDOM]


def test_contrasts_have_all_attackers_of_both() -> None:
    both = compared()
    rows = both.contrasts({"L1 − dense": (L1, "dense"), "slim − dense": (SLIM, "dense")})
    assert [list(row) for row in rows] == [
        ["contrast", "test accuracy", "Conf, AUC", "LiRA, AUC"],
        ["contrast", "test accuracy", "Conf, AUC"],
    ]
    assert rows[0]["LiRA, AUC"] == both.contrast(L1, "dense", "LiRA")
    (row,) = both.contrasts({"one": (L1, "dense")}, ["Conf"], ["accuracy"])
    right = both.contrast(L1, "dense", "Conf", "accuracy")
    assert row["Conf, accuracy at its own threshold"] == right


def test_a_table_names_variants_as_they_print_themselves() -> None:
    names = [row["variant"] for row in compared().table(numbers=["auc"])]
    assert names == ["dense", "L1, 60% removed", "slimming, 60% removed", "random, 0.6"]


def plane(**points: tuple[float, float]) -> Comparison:
    """Variants of one target by accuracy and AUC; epochs are early stopping of "dense"."""
    accuracies = {name: [accuracy] for name, (accuracy, _) in points.items()}
    attacks = {(name, "LiRA"): separated(area) for name, (_, area) in points.items()}
    epochs = [name for name in points if name.startswith("epoch")]
    return Comparison(accuracies, attacks, checkpoints={"dense": epochs})


EPOCHS = {"epoch 1": (0.4, 0.55), "epoch 2": (0.6, 0.6), "dense": (0.7, 0.8)}


@pytest.mark.parametrize(
    ("area", "line"), [(0.55, 0.4), (0.56, 0.44), (0.6, 0.6), (0.7, 0.65), (0.8, 0.7)]
)
def test_early_stopping_is_linear_between_epochs(area: float, line: float) -> None:
    found = plane(**EPOCHS, defended=(0.5, area)).early_stopping("defended", "LiRA")
    assert found.value == pytest.approx(0.5 - line)
    assert not found.reason


@pytest.mark.parametrize(("area", "line"), [(0.51, 0.4), (0.9, 0.7)])
def test_epochs_that_do_not_surround_a_defence_decide_nothing(area: float, line: float) -> None:
    found = plane(**EPOCHS, defended=(0.5, area)).early_stopping("defended", "LiRA")
    assert not found.resolved and found.value == pytest.approx(0.5 - line), "level beyond"
    assert "the epochs do not surround" in found.reason
    assert f"{area:.3f} for defended" in found.reason and "0.550 to 0.800" in found.reason
    assert (-found).reason == found.reason
    assert audit.least([found, Estimate(0.1, 0.0, 0.2)]).reason == found.reason


def test_early_stopping_needs_one_network_with_epochs() -> None:
    none = plane(dense=(0.7, 0.8), defended=(0.5, 0.6))
    with pytest.raises(ValueError, match="two variants or more"):
        none.early_stopping("defended", "LiRA")
    with pytest.raises(ValueError, match="one network with checkpoints"):
        none.early_stopping("defended", "LiRA", "other")


def test_the_frontier_ends_with_the_line_of_early_stopping() -> None:
    both = plane(**EPOCHS, defended=(0.5, 0.6))
    rows = both.frontier("LiRA")
    assert [row["variant"] for row in rows] == ["defended", *["dense, by epoch"] * 3]
    assert [row["accuracy"].value for row in rows[1:]] == [0.4, 0.6, 0.7]
    named = both.frontier("LiRA", ["epoch 1", "dense"], ["defended"], panel="here")
    assert [row["variant"] for row in named] == ["defended", *["early stopping"] * 2]
    assert {row["attack"] for row in named} == {"here"}
    strengths = compared().frontier("Conf")
    assert [row["variant"] for row in strengths] == ["dense", "L1", "slimming", "random"]


def test_the_share_of_chosen_cases_is_a_mean_over_units() -> None:
    true = [[True, False, True], [True, True, False]]
    chosen = [[True, True, False], [False, True, False]]
    found = audit.share_of_chosen(true, chosen)  # 1 of 1, 1 of 2, none
    assert (found.value, found.n) == (0.75, 2)
    assert not audit.share_of_chosen(true, np.zeros((2, 3), bool)).resolved


def test_a_pruner_removes_what_it_was_asked_for() -> None:
    counts = {"network": 0.6, "filters": np.array([10, 0, 20]), "filters_gone": np.array([4, 0, 8])}
    comparison = replace(compared(), results={"one": counts})
    asked = {("L1 unstructured", 0.6): ["one"], ("slimming", 0.6): ["one"]}
    acts = comparison.pruned_as_asked(asked)
    assert acts == {"L1 unstructured removes 60%": True, "slimming removes 60%": False}
