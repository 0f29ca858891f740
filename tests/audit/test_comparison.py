"""Comparisons of variants, against SciPy, closed forms and counting by hand."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from leak_atlas import audit
from leak_atlas.audit import Comparison, Estimate
from leak_atlas.audit.comparison import PLACEBO


class Pruned(NamedTuple):
    pruner: str
    sparsity: float

    def __str__(self) -> str:
        return f"{self.pruner}, {self.sparsity:.0%} removed"


L1 = Pruned("L1", 0.6)
SLIM = Pruned("slimming", 0.6)
RANDOM = ("random", 0.6)
VARIANTS = ("dense", L1, SLIM, RANDOM)


def made(shift: float, targets: int = 8, seed: int = 0) -> dict[str, np.ndarray]:
    """Scores whose members lie `shift` deviations above the others, on 400 samples."""
    draws = np.random.default_rng(seed)
    member = draws.permuted(np.tile(np.arange(400) < 200, (targets, 1)), axis=1)
    scores = draws.normal(size=member.shape) + shift * member
    return {"scores": scores, "member": member, "thresholds": np.full(targets, 0.3)}


def without_thresholds(scored: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return scored | {"thresholds": np.full(len(scored["scores"]), np.nan)}


def compared() -> Comparison:
    """Four variants, two attackers (LiRA without own thresholds), eight targets."""
    attacks: dict[Any, Any] = {}
    for i, variant in enumerate(VARIANTS):
        attacks[variant, "Conf"] = made(0.5 + 0.2 * i, seed=i)
        if variant != SLIM:
            attacks[variant, "LiRA"] = without_thresholds(made(1.0 + 0.2 * i, seed=10 + i))
    draws = np.random.default_rng(0)
    test = {variant: draws.uniform(0.5, 0.9, 8) for variant in VARIANTS}
    members = {variant: draws.uniform(0.5, 0.9, 8) for variant in VARIANTS}
    return Comparison(test, attacks, members=members)


def by_hand(comparison: Comparison, variant: Any, attacker: str, metric: str) -> np.ndarray:
    """A metric of each target, in plain NumPy."""
    if metric.endswith(" accuracy"):
        both = {"test accuracy": comparison.accuracies, "member accuracy": comparison.members}
        return both[metric][variant]
    scored = comparison.attacks[variant, attacker]
    values = []
    for scores, member in zip(scored["scores"], scored["member"], strict=True):
        inside = scores[member]
        outside = scores[~member]
        area = stats.mannwhitneyu(inside, outside).statistic / inside.size / outside.size
        sides = np.mean(inside >= 0.3), np.mean(outside < 0.3)
        accuracy = np.mean((scores >= 0.3) == member)
        values.append({"auc": area, "balanced": np.mean(sides), "accuracy": accuracy}[metric])
    return np.array(values)


def assert_paired(estimate: Estimate, first: np.ndarray, second: np.ndarray) -> None:
    """That it is SciPy's paired t: mean difference and interval."""
    low, high = stats.ttest_rel(first, second).confidence_interval(0.95)
    expected = np.mean(first - second), low, high
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx(expected, abs=1e-12)


# --- measures and their differences


@pytest.mark.parametrize(
    "metric", ["test accuracy", "member accuracy", "auc", "accuracy", "balanced"]
)
def test_a_contrast_is_scipys_paired_difference(metric: str) -> None:
    both = compared()
    first, second = (by_hand(both, variant, "Conf", metric) for variant in (L1, "dense"))
    assert both.measured(L1, "Conf", metric) == pytest.approx(first)
    assert both.estimate(L1, "Conf", metric).value == pytest.approx(first.mean())
    assert_paired(both.contrast(L1, "dense", "Conf", metric), first, second)


def test_a_contrast_of_two_attackers() -> None:
    both = compared()
    first = by_hand(both, L1, "LiRA", "auc")
    second = by_hand(both, "dense", "Conf", "auc")
    assert_paired(both.contrast(L1, "dense", "LiRA", "auc", against="Conf"), first, second)
    more_accurate = both.contrast(L1, "dense", metric="test accuracy")
    assert both.accuracy_difference(L1, "dense") == more_accurate


def test_attacks_on_several_variants_are_compared_by_their_mean() -> None:
    both = compared()
    areas = {pair: by_hand(both, *pair, "auc") for pair in both.attacks}
    ones = [(L1, "Conf"), (L1, "LiRA")]
    others = [("dense", "LiRA")]
    mean = (areas[ones[0]] + areas[ones[1]]) / 2
    assert both.mean_measured(*ones, number="auc") == pytest.approx(mean)
    assert_paired(both.mean_contrast(ones, others, "auc"), mean, areas[others[0]])


def test_what_an_attack_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="names no threshold"):
        compared().contrast(L1, "dense", "LiRA", "accuracy")
    with pytest.raises(ValueError, match="no metric 'area'"):
        compared().contrast(L1, "dense", "LiRA", "area")


def test_equal_variants_differ_by_nothing() -> None:
    """Null: the interval of no difference covers zero about as often as it says."""
    covered = 0
    for seed in range(60):
        attacks = {(name, "A"): made(0.5, seed=2 * seed + name) for name in (0, 1)}
        difference = Comparison({}, attacks).auc_difference(0, 1, "A")
        covered += difference.low <= 0 <= difference.high
    assert covered >= 54


# --- from results


class Online(str):
    """An attack whose targets are each other's shadows."""

    design_effect = 2.3


def test_an_attack_tells_its_own_widening() -> None:
    results = {"one": made(1.0), "other": made(0.5)}
    attacks = {(name, "LiRA"): Online(name) for name in results}
    both = Comparison.of(results, {}, attacks)
    areas = [audit.auc(scored["scores"], scored["member"]) for scored in results.values()]
    difference = audit.paired_difference(*areas, design_effect=2.3)
    assert both.auc_difference("one", "other", "LiRA") == difference
    leak = both.leak("one", "LiRA")["auc"]
    assert leak == audit.mean_ci(areas[0], bounds=(0, 1), design_effect=2.3)


def test_results_of_one_attack_are_a_unit_a_target() -> None:
    results = {
        "a": {"accuracy_test": np.array(0.7), "accuracy_member": np.array(0.9)},
        "b": {"accuracy_test": np.array(0.8), "accuracy_member": np.array(1.0)},
        "attack": made(1.0),
    }
    signals = {"plain": ("a", "b"), "defended": ("b", "a")}
    both = Comparison.of(results, signals, {("plain", "LiRA"): Online("attack")})
    assert both.accuracies == {"plain": [0.7, 0.8], "defended": [0.8, 0.7]}
    assert both.members["plain"] == [0.9, 1.0]
    assert both.attacks["plain", "LiRA"] is results["attack"]


@pytest.mark.parametrize("targets", [1, 4])
def test_several_attacks_are_a_unit_each(targets: int) -> None:
    """One attack for each target, or for each of three seeds with four targets."""
    attacks: dict[tuple[Hashable, str], list[Any]] = {}
    areas = {}
    for name, shift in (("plain", 1.0), ("defended", 0.0)):
        made_here = [made(shift, targets, 9 * seed) for seed in range(3)]
        attacks[name, "A"] = made_here
        areas[name] = [audit.auc(one["scores"], one["member"]).mean() for one in made_here]
    both = Comparison({}, attacks)
    assert both.leak("plain", "A")["auc"] == audit.mean_ci(areas["plain"], bounds=(0, 1))
    assert both.auc_difference(*areas, "A") == audit.paired_difference(*areas.values())


# --- rows


def test_rows_have_the_parts_of_a_key_as_columns() -> None:
    both = compared()
    names = ("pruner", "sparsity")
    rows = both.rows("Conf", "accuracy", names)
    assert [(row["pruner"], row["sparsity"]) for row in rows] == [L1, SLIM, RANDOM]
    assert rows[0]["value"] == both.leak(L1, "Conf")["accuracy"]
    attacked = [row["pruner"] for row in both.rows("LiRA", names=names)]
    assert attacked == ["L1", "random"], "LiRA has not attacked the other one"


def test_a_table_names_variants_attackers_and_numbers() -> None:
    rows = compared().table(metrics=("auc", "tpr@0.01"))
    names = ["dense", "L1, 60% removed", "slimming, 60% removed", "random, 0.6"]
    assert [row["variant"] for row in rows] == names
    assert "LiRA, AUC" not in rows[2], "LiRA has not attacked it"


def test_each_cell_of_a_table_has_the_estimate_of_its_attacker() -> None:
    both = compared()
    row = both.table(metrics=("auc", "tpr@0.01"))[1]
    assert row["test accuracy"] == both.accuracy(L1)
    assert row["LiRA, AUC"] == both.leak(L1, "LiRA")["auc"]
    tpr = f"Conf, {audit.tpr_label(0.01, 200)}"
    assert row[tpr] == both.leak(L1, "Conf")["tpr_at_1%"]


def test_the_strongest_attacker_is_chosen_on_each_variant() -> None:
    online = replace(compared(), design_effects={(L1, "LiRA"): 2.0})
    both = online.with_strongest("strongest")
    assert both.leak(L1, "strongest") == both.leak(L1, "LiRA")
    for variant, strongest in ((L1, "LiRA"), (SLIM, "Conf")):
        areas = both.measured(variant, "strongest")
        np.testing.assert_array_equal(areas, both.measured(variant, strongest))


# --- the plane of accuracy and AUC


def separated(areas: list[float]) -> dict[str, np.ndarray]:
    """Targets whose members are above all others by a share that makes the AUC exactly `areas`."""
    member = np.tile(np.arange(200) < 100, (len(areas), 1))
    above = np.rint(200 * np.array(areas) - 100)
    return {"scores": (np.arange(200) < above[:, None]).astype(float), "member": member}


def plane(**points: tuple[float, float]) -> Comparison:
    """Variants of one target by accuracy and AUC; epochs are early stopping of "dense"."""
    accuracies = {name: [accuracy] for name, (accuracy, _) in points.items()}
    attacks = {(name, "LiRA"): separated([area]) for name, (_, area) in points.items()}
    epochs = [name for name in points if name.startswith("epoch")]
    return Comparison(accuracies, attacks, checkpoints={"dense": epochs})


EPOCHS = {"epoch 1": (0.4, 0.55), "epoch 2": (0.6, 0.6), "dense": (0.7, 0.8)}


def test_a_plane_has_the_metric_that_it_was_asked_for() -> None:
    both = compared()
    first, second = both.plane({"line": ["dense", L1]}, "Conf", "tpr@0.05")
    assert second["auc"] == both.estimate(L1, "Conf", "tpr@0.05")
    assert second["accuracy"] == both.accuracy(L1)
    assert first["accuracy"] == both.accuracy("dense")


def test_the_frontier_ends_with_the_line_of_early_stopping() -> None:
    both = plane(**EPOCHS, defended=(0.5, 0.6))
    rows = both.frontier("LiRA")
    assert [row["variant"] for row in rows] == ["defended", *["dense, by epoch"] * 3]
    assert [row["accuracy"].value for row in rows[1:]] == [0.4, 0.6, 0.7]
    strengths = compared().frontier("Conf")
    assert [row["variant"] for row in strengths] == ["dense", "L1", "slimming", "random"]


POINTS = plane(
    early=(0.6, 0.6),
    late=(0.7, 0.8),
    on=(0.65, 0.7),
    above=(0.75, 0.7),
    beyond=(0.5, 0.9),
    below=(0.6, 0.8),
)


@pytest.mark.parametrize(
    ("variant", "other", "distance"),
    [
        ("on", None, 0.0),
        ("above", None, 0.1),
        ("beyond", None, -0.2),
        ("above", "beyond", 0.3),
        (["above", "on"], ["below", "on"], 0.1),
    ],
)
def test_variants_are_compared_with_a_line_at_their_own_auc(
    variant: Any, other: Any, distance: float
) -> None:
    matched = POINTS.at_matched_auc(variant, ["late", "early"], "LiRA", other)
    assert matched.value == pytest.approx(distance)
    assert matched.n == 1


def test_lines_are_compared_at_the_auc_of_variants() -> None:
    raised = {"early": [0.8], "late": [1.0], "on": [0.65], "above": [0.75]}
    lines = POINTS.accuracies | {("raised", name): acc for name, acc in raised.items()}
    attacks = dict(POINTS.attacks)
    attacks |= {(("raised", name), "LiRA"): POINTS.attacks[name, "LiRA"] for name in raised}
    both = Comparison(lines, attacks)
    line = [("raised", "early"), ("raised", "late")]
    at = ["on", "above"]
    gained = both.between_lines(line, ["early", "late"], "LiRA", at)
    over = [both.at_matched_auc(at, each, "LiRA").value for each in (["early", "late"], line)]
    assert gained.value == pytest.approx(over[0] - over[1])
    assert not gained.reason
    assert "beyond" in both.between_lines(line, ["early", "late"], "LiRA", ["beyond"]).reason


def test_something_else_than_accuracy_is_compared_at_matched_auc() -> None:
    heights = {"early": [0.0], "late": [1.0], "on": [0.25]}
    matched = POINTS.at_matched_auc("on", ["early", "late"], "LiRA", heights=heights)
    assert matched.value == pytest.approx(-0.25)


def on_a_curve(
    rng: np.random.Generator, at: float, bent: bool = False, noise: float = 0.03
) -> Comparison:
    """Six epochs and a variant at a fraction `at` of training, all on one true curve. Ten units
    have an accuracy and an AUC of their own, and each network its noise. On a bent curve, accuracy
    rises first and AUC later.
    """
    epochs = {f"epoch {i}": i / 6 for i in range(1, 6)} | {"dense": 1.0}
    easy = rng.normal(0, 0.01, 10)
    leaky = rng.normal(0, noise, 10)
    accuracies = {}
    areas = {}
    for name, fraction in (epochs | {"variant": at}).items():
        learnt = 1 - np.exp(-5 * fraction) if bent else fraction
        leaked = fraction**2 if bent else fraction
        accuracies[name] = 0.3 + 0.4 * learnt + easy + rng.normal(0, 0.01, 10)
        areas[name] = 0.5 + 0.3 * leaked + leaky + rng.normal(0, noise, 10)
    attacks = {(name, "A"): separated(area.round(2)) for name, area in areas.items()}
    return Comparison(accuracies, attacks, checkpoints={"dense": [*epochs][:-1]})


@pytest.mark.parametrize("bent", [False, True])
def test_a_variant_on_the_curve_gains_nothing_over_it(bent: bool) -> None:
    rng = np.random.default_rng(0)
    stopped = [on_a_curve(rng, 3 / 6, bent).early_stopping("variant", "A") for _ in range(60)]
    values = np.array([one.value for one in stopped])
    assert abs(values.mean()) < 0.015, "each unit's own curve gives .02 on the bent one"
    assert np.mean([one.low <= 0 <= one.high for one in stopped]) >= 0.85
    assert np.mean([one.error for one in stopped]) == pytest.approx(values.std(), rel=0.5)


def test_a_variant_above_the_curve_gains_its_height() -> None:
    one = on_a_curve(np.random.default_rng(1), 0.5, noise=0.001)
    raised = {**one.accuracies, "variant": np.asarray(one.accuracies["variant"]) + 0.1}
    stopped = replace(one, accuracies=raised).early_stopping("variant", "A")
    assert stopped.value == pytest.approx(0.1, abs=0.02)
    assert stopped.low > 0.05


def test_epochs_gain_nothing_over_each_other() -> None:
    placebo = on_a_curve(np.random.default_rng(2), 0.5, noise=0.01).placebo("A")
    assert [row["network stopped early"] for row in placebo] == [f"epoch {i}" for i in range(2, 6)]
    gains = [row[PLACEBO] for row in placebo]
    assert all(abs(one.value) < 0.04 and one.resolved for one in gains)
    some = on_a_curve(np.random.default_rng(2), 0.5, noise=0.01).placebo(
        "A", ["epoch 3", "epoch 4", "dense"]
    )
    assert [row["network stopped early"] for row in some] == ["epoch 3", "epoch 4"]
    line = ["epoch 1", "epoch 3", "dense"]
    own = on_a_curve(np.random.default_rng(2), 0.5, noise=0.01).placebo("A", line=line)
    assert [row["network"] for row in own] == ["epoch 3"]
    bent = on_a_curve(np.random.default_rng(2), 0.5, bent=True, noise=0.001).placebo("A")
    assert bent[0][PLACEBO].low > 0.01, "a chord runs below its curve"


def test_the_possible_bias_is_the_row_with_the_largest_resolved_value() -> None:
    small, large = Estimate(0.01, -0.01, 0.03, 5), Estimate(0.05, -0.02, 0.12, 5)
    outside = Estimate(0.2, 0.1, 0.3, 5, resolved=False)
    assert audit.possible_bias([{PLACEBO: one} for one in (small, outside, large)]) == large
    assert audit.possible_bias([{PLACEBO: outside}]) == outside
    with pytest.raises(ValueError, match="three points"):
        audit.possible_bias([])


def test_the_interval_at_matched_auc_has_the_design_effect() -> None:
    areas = {"early": [0.6, 0.58, 0.62, 0.6], "late": [0.8, 0.82, 0.78, 0.8]}
    areas["variant"] = [0.7, 0.72, 0.69, 0.7]
    accuracies = {"early": [0.5, 0.52, 0.49, 0.5], "late": [0.7, 0.69, 0.72, 0.7]}
    accuracies["variant"] = [0.5, 0.53, 0.56, 0.5]
    attacks = {(name, "A"): separated(area) for name, area in areas.items()}
    plain = Comparison(accuracies, attacks)
    wide = replace(plain, design_effects=dict.fromkeys(attacks, 2.0))
    one, other = (each.at_matched_auc("variant", ["early", "late"], "A") for each in (plain, wide))
    assert other.high - other.value == pytest.approx(np.sqrt(2) * (one.high - one.value))


@pytest.mark.parametrize(("area", "resolved"), [(0.7, True), (0.59, False), (0.81, False)])
def test_beyond_the_ends_nothing_is_resolved(area: float, resolved: bool) -> None:
    areas = {"early": [0.6] * 4, "late": [0.8] * 4, "on": [0.8] * 4, "variant": [area] * 4}
    attacks = {(name, "A"): separated(area) for name, area in areas.items()}
    both = Comparison({name: [0.5, 0.6, 0.5, 0.6] for name in areas}, attacks)
    line = ["early", "late"]
    assert both.at_matched_auc("variant", line, "A").resolved == resolved
    assert both.at_matched_auc("on", line, "A", "variant").resolved == resolved
    assert both.at_matched_auc(["on", "variant"], line, "A").resolved == resolved


@pytest.mark.parametrize(("area", "line"), [(0.56, 0.44), (0.7, 0.65), (0.51, 0.4), (0.9, 0.7)])
def test_early_stopping_is_linear_between_epochs_and_level_beyond(area: float, line: float) -> None:
    stopped = plane(**EPOCHS, defended=(0.5, area)).early_stopping("defended", "LiRA")
    assert stopped.value == pytest.approx(0.5 - line)
    assert bool(stopped.reason) == (not 0.55 <= area <= 0.8)
    assert (-stopped).reason == audit.least([stopped, Estimate(0, 0, 0)]).reason == stopped.reason


def test_the_line_of_a_figure_begins_below_the_networks_shown() -> None:
    areas = {"first": 0.52, "second": 0.6, "third": 0.7, "end": 0.9, "low": 0.65, "high": 0.8}
    attacks = {(name, "A"): separated([area] * 4) for name, area in areas.items()}
    accuracies = {name: [0.5] * 4 for name in areas}
    both = Comparison(accuracies, attacks, checkpoints={"end": ["first", "second", "third"]})
    assert both.stopped_line(["high", "low"], "A") == ["second", "third", "end"]
    assert both.stopped_line(["first"], "A") == ["first", "second", "third", "end"]
    assert both.stopped_line(["end"], "A") == ["third", "end"]


def test_early_stopping_needs_one_network_with_epochs() -> None:
    none = plane(dense=(0.7, 0.8), defended=(0.5, 0.6))
    with pytest.raises(ValueError, match="two variants or more"):
        none.early_stopping("defended", "LiRA")
    with pytest.raises(ValueError, match="one network with checkpoints"):
        none.early_stopping("defended", "LiRA", "other")


# --- attacks and defences of several networks


def separable(hits: list[float]) -> dict[str, np.ndarray]:
    """Attacks of 100 samples, each right on a share of a target's samples, half of them members."""
    member = np.tile(np.arange(100) < 50, (len(hits), 1))
    right = np.array([np.arange(100) % 50 < 50 * share for share in hits])
    scores = np.where(right, member, ~member).astype(float)
    return {"scores": scores, "member": member, "thresholds": np.full(len(hits), 0.5)}


def defended() -> Comparison:
    """Two networks without and with a defence, attacked by SAMIA and by Conf; three targets."""
    attacks = {
        ("a", "SAMIA"): separable([0.8, 0.7, 0.9]),
        ("b", "SAMIA"): separable([0.7, 0.7, 0.7]),
        ("a", "Conf"): separable([0.8, 0.8, 0.8]),
        ("b", "Conf"): separable([0.6, 0.8, 0.6]),
        ("a, defended", "SAMIA"): separable([0.6, 0.5, 0.6]),
    }
    test = {"a": [0.8, 0.7, 0.8], "b": [0.7, 0.7, 0.7], "a, defended": [0.7, 0.7, 0.6]}
    members = {"a": [1.0, 0.9, 1.0], "b": [1.0, 1.0, 1.0], "a, defended": [0.8, 0.8, 0.8]}
    return Comparison(test, attacks, members=members)


def test_an_attack_is_the_most_accurate_where_no_other_one_is_more_accurate() -> None:
    both = defended()
    found = both.most_accurate("SAMIA", ["Conf"], ["a", "b"])  # a tie counts
    assert found.value == pytest.approx(np.mean([1.0, 0.0, 1.0]))
    assert both.most_accurate("Conf", ["SAMIA"], ["a"]).value == pytest.approx(2 / 3)


def test_a_defence_gains_privacy_and_costs_accuracy() -> None:
    balance = defended().gain_minus_cost(["a, defended"], ["a"], "SAMIA")
    assert balance == pytest.approx([0.2 - 0.1, 0.2 - 0.0, 0.3 - 0.2])


def test_a_defence_acts_on_networks_that_leak_and_fit() -> None:
    both = defended()
    acts = both.defence_acts(["a, defended"], ["a"], "SAMIA", "PPB", keeps=0.75)
    found, fits, kept = acts.values()
    assert found
    assert kept
    assert isinstance(fits, Estimate)
    assert_paired(fits, np.array([1.0, 0.9, 1.0]), np.array([0.8, 0.8, 0.8]))
    nothing = both.defence_acts(["a"], ["a, defended"], "SAMIA", keeps=0.99)
    found, fits, kept = nothing.values()
    assert not found
    assert kept
    assert isinstance(fits, Estimate)
    assert fits.high < 0
    assert not both.defence_acts(["a, defended"], ["a"], "SAMIA", keeps=0.9).popitem()[1]


# --- exposed samples


def test_exposure_is_compared_by_ranks_among_members_alone() -> None:
    one = made(3.0, targets=200)
    alike = one | {"scores": np.exp(one["scores"])}
    np.testing.assert_allclose(audit.exposed_alike(one, alike), 1)
    assert not audit.exposed_alike(one, one | {"scores": np.zeros((200, 400))}).any()
    with pytest.raises(ValueError, match="the same samples"):
        audit.exposed_alike(one, one | {"member": ~one["member"]})
    noise = np.random.default_rng(1).normal(size=one["scores"].shape)
    luck = audit.exposed_alike(one, one | {"scores": noise + 3.0 * one["member"]})
    agreement = audit.mean_ci(luck)
    assert abs(agreement.value) < 0.02, "membership alone is no agreement"
    assert agreement.low < 0 < agreement.high


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


def test_among_some_samples_an_attack_is_judged_on_these_alone() -> None:
    comparison = compared()
    index = np.arange(400) + 1000
    stored = {key: one | {"index": index} for key, one in comparison.attacks.items()}
    chosen = index[::3]
    some = replace(comparison, attacks=stored).among(np.append(chosen, 7))  # 7 is no sample of it
    scored = comparison.attacks[L1, "Conf"]
    by_hand_auc = audit.auc(scored["scores"][:, ::3], scored["member"][:, ::3])
    np.testing.assert_allclose(some.measured(L1, "Conf"), by_hand_auc)
    assert some.accuracy(L1) == comparison.accuracy(L1)
    assert some.measured(L1, "Conf", "accuracy").shape == (8,)
    repeated = replace(comparison, attacks={key: [one, one] for key, one in stored.items()})
    of_each = repeated.among(chosen).measured(L1, "Conf")
    np.testing.assert_allclose(of_each, [by_hand_auc.mean()] * 2)


def test_targets_with_different_pools_have_no_samples_in_common() -> None:
    pools = made(0.5) | {"index": np.tile(np.arange(400), (8, 1))}
    with pytest.raises(ValueError, match="different pools"):
        Comparison({}, {("dense", "Conf"): pools}).among(np.arange(9))
