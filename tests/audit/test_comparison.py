"""Two ways to train the same models: paired differences, and what few counts can tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leak_atlas import audit

WAYS = ("plain", "defended")


def made(
    shift: float, targets: int = 8, samples: int = 400, seed: int = 0
) -> dict[str, np.ndarray]:
    """Scores whose members lie `shift` deviations above the others; membership differs from target
    to target.
    """
    draws = np.random.default_rng(seed)
    member = np.stack(
        [draws.permutation(np.arange(samples) < samples // 2) for _ in range(targets)]
    )
    return {"scores": draws.normal(size=(targets, samples)) + shift * member, "member": member}


def compared(one: dict, other: dict) -> audit.Comparison:
    accuracies = dict(zip(WAYS, ([0.7, 0.8, 0.6], [0.6, 0.7, 0.4]), strict=True))
    return audit.Comparison(
        accuracies, {(way, "LiRA"): found for way, found in zip(WAYS, (one, other), strict=True)}
    )


def test_accuracy_is_paired() -> None:
    both = compared(made(1.0), made(0.0))
    assert both.accuracy("plain").value == pytest.approx(0.7)
    found = both.more_accurate(*WAYS)
    assert found.value == pytest.approx(0.4 / 3)
    assert found.low == pytest.approx(audit.paired_difference([0.7, 0.8, 0.6], [0.6, 0.7, 0.4]).low)


def test_of_stored_results() -> None:
    """The same as of arrays: every way's accuracies in its targets' order, every attack under its
    way and attacker.
    """
    one, other = made(1.0), made(0.0)
    results = {
        "a": {"accuracy_test": np.array(0.7), "accuracy_member": np.array(0.9)},
        "b": {"accuracy_test": np.array(0.8), "accuracy_member": np.array(1.0)},
        "one": one,
        "other": other,
    }
    signals = {"plain": ("a", "b"), "defended": ("b", "a")}
    found = audit.Comparison.of(
        results, signals, {("plain", "LiRA"): "one", ("defended", "LiRA"): "other"}
    )
    assert found.accuracies == {"plain": [0.7, 0.8], "defended": [0.8, 0.7]}
    assert found.attacks["plain", "LiRA"] is one and found.attacks["defended", "LiRA"] is other


def test_leak_and_its_difference() -> None:
    both = compared(made(1.0), made(0.0, seed=1))
    leak = both.leak("plain", "LiRA")["auc"]
    # Phi(1 / sqrt 2), the AUC of two unit normals that far apart
    assert leak.low < 0.760 < leak.high
    found = both.auc_difference(*WAYS, "LiRA")
    assert found.low < 0.260 < found.high and found.low > 0
    assert both.auc_difference("plain", "plain", "LiRA").value == 0


def test_a_plane_has_each_lines_ways_in_order() -> None:
    both = compared(made(1.0), made(0.0, seed=1))
    rows = both.plane({"one": WAYS, "other": WAYS[1:]}, "LiRA", panel="here")
    assert [row["variant"] for row in rows] == ["one", "one", "other"] and {
        row["attack"] for row in rows
    } == {"here"}
    assert (
        rows[1]["accuracy"] == both.accuracy(WAYS[1])
        and rows[2]["auc"] == both.leak(WAYS[1], "LiRA")["auc"]
    )


def test_attack_accuracies_are_paired_too() -> None:
    one, other = made(1.0), made(0.0, seed=1)
    attacks = {
        ("plain", "A"): one | {"thresholds": np.zeros(8)},
        ("plain", "B"): other | {"thresholds": np.zeros(8)},
    }
    both = audit.Comparison({}, {**attacks, ("plain", "C"): one})
    right = [np.mean((each["scores"] >= 0) == each["member"], axis=1) for each in (one, other)]
    assert both.accuracy_difference(("plain", "A"), ("plain", "B")) == audit.paired_difference(
        *right
    )
    with pytest.raises(ValueError, match="thresholds"):
        both.accuracy_difference(("plain", "A"), ("plain", "C"))
    mean = both.reached(("plain", "A"), ("plain", "B"))
    assert mean == pytest.approx(np.mean(right, axis=0)) and len(mean) == 8
    found = both.stronger([("plain", "A"), ("plain", "B")], [("plain", "B")])
    assert found.value == pytest.approx(np.mean(right[0] - right[1]) / 2)
    areas = [audit.auc(each["scores"], each["member"]) for each in (one, other)]
    assert both.stronger([("plain", "A")], [("plain", "C")], "auc").value == 0
    assert both.reached(("plain", "B"), number="auc") == pytest.approx(areas[1])
    uneven = {
        "scores": np.array([[1.0, 1.0, -1.0, 1.0]]),
        "member": np.array([True, True, True, False]),
    }
    alone = audit.Comparison({}, {("plain", "A"): uneven | {"thresholds": np.zeros(1)}})
    assert alone.reached(("plain", "A")) == pytest.approx([1 / 2])
    # the mean of 2/3 and 0
    assert alone.reached(("plain", "A"), number="balanced") == pytest.approx([1 / 3])


def test_equal_ways_differ_by_nothing() -> None:
    """Null: the interval of no difference covers zero about as often as it says, TPRs included."""
    covered = []
    for seed in range(60):
        both = compared(made(0.5, seed=2 * seed), made(0.5, seed=2 * seed + 1))
        covered.append(
            [
                found.low <= 0 <= found.high
                for found in (both.auc_difference(*WAYS, "LiRA", fpr) for fpr in (None, 0.05))
            ]
        )
    assert np.mean(covered, axis=0).min() >= 0.9


def test_zeros_are_not_certain() -> None:
    """No member above the one false positive allowed, twice: the difference is 0, and nobody knows
    it exactly.
    """
    rows = np.tile(np.arange(400.0), (6, 1))
    member = np.tile(np.arange(400) < 200, (6, 1))
    both = compared({"scores": rows, "member": member}, {"scores": rows, "member": member})
    found = both.auc_difference(*WAYS, "LiRA", 0.01)
    edge = audit.clopper_pearson(0, 1200)[1]
    assert (
        found.value == 0 and found.high == pytest.approx(edge) and found.low == pytest.approx(-edge)
    )


def test_too_few_non_members_say_so() -> None:
    both = compared(made(1.0), made(0.0))
    assert not both.auc_difference(*WAYS, "LiRA", 0.001).resolved
    assert (
        both.auc_difference(*WAYS, "LiRA", 0.01).resolved
        and both.auc_difference(*WAYS, "LiRA").resolved
    )


def test_repeated_experiments_are_the_units() -> None:
    """Three victims with shadows of their own: one attack each, of one target; or three seeds of
    four targets.
    """
    for targets in (1, 4):
        each = {
            way: [made(shift, targets, seed=9 * i) for i in range(3)]
            for way, shift in zip(WAYS, (1.0, 0.0), strict=True)
        }
        results = {
            f"{way} {i}": found for way, all_ in each.items() for i, found in enumerate(all_)
        }
        results |= {
            f"{way} signals {i}": {"accuracy_test": 0.6 + 0.1 * i, "accuracy_member": 1.0}
            for way in WAYS
            for i in range(3)
        }
        signals = {way: [[f"{way} signals {i}"] * targets for i in range(3)] for way in WAYS}
        both = audit.Comparison.of(
            results, signals, {(way, "A"): [f"{way} {i}" for i in range(3)] for way in WAYS}
        )
        areas = [
            [audit.auc(one["scores"], one["member"]).mean() for one in each[way]] for way in WAYS
        ]
        assert both.leak("plain", "A")["auc"] == audit.mean_ci(areas[0], bounds=(0, 1))
        assert both.auc_difference(*WAYS, "A") == audit.paired_difference(*areas)
        assert both.accuracy("plain").value == pytest.approx(0.7) and both.accuracy("plain").n == 3
        assert both.auc_difference(*WAYS, "A", 0.05).n == 3


class Online(str):
    """An attack whose targets are each other's shadows."""

    design_effect = 2.3


def test_an_attack_tells_its_own_widening() -> None:
    one, other = made(1.0), made(0.5)
    attacks = {("plain", "LiRA"): Online("one"), ("defended", "LiRA"): Online("other")}
    both = audit.Comparison.of({"one": one, "other": other}, {}, attacks)
    areas = [audit.auc(each["scores"], each["member"]) for each in (one, other)]
    assert both.auc_difference(*WAYS, "LiRA") == audit.paired_difference(*areas, design_effect=2.3)
    assert both.leak("plain", "LiRA")["auc"] == audit.mean_ci(
        areas[0], bounds=(0, 1), design_effect=2.3
    )


def test_a_declared_family_moderates_its_differences() -> None:
    ways = [f"way {i}" for i in range(8)]
    attacks = {(way, "LiRA"): made(0.5, targets=4, seed=i) for i, way in enumerate(ways)}
    pairs = [(way, ways[0]) for way in ways[1:]]
    plain, family = (audit.Comparison({}, attacks, family=declared) for declared in ((), pairs))
    found = [family.auc_difference(*pair, "LiRA") for pair in pairs]
    own = [plain.auc_difference(*pair, "LiRA") for pair in pairs]
    assert [f.value for f in found] == [o.value for o in own] and all(f.moderated for f in found)
    assert np.ptp([f.error for f in found]) < np.ptp([o.error for o in own])
    assert family.auc_difference(ways[0], ways[1], "LiRA") == -found[0]
    assert not family.auc_difference(ways[1], ways[2], "LiRA").moderated, "not of the family"


def test_rows_are_what_a_notebook_shows() -> None:
    one, other = (made(shift) | {"thresholds": np.zeros(8)} for shift in (1.0, 0.0))
    first, second = compared(one, other).table(numbers=("auc", "accuracy", "majority", "tpr_at_1%"))
    assert list(first) == [
        "variant",
        "test accuracy",
        "LiRA, AUC",
        "LiRA, accuracy at its own threshold",
        "LiRA, accuracy of a majority guess",
        "LiRA, TPR at 1 % FPR (1.5 % expected)",
    ]
    assert (first["variant"], second["variant"]) == WAYS and first["LiRA, AUC"].low > second[
        "LiRA, AUC"
    ].high
    assert first["LiRA, accuracy of a majority guess"].value == 0.5


def separated(area: float, samples: int = 200) -> dict[str, np.ndarray]:
    """One target whose members are above all others by a share that makes its AUC `area`, exactly."""
    member = np.arange(samples) < samples // 2
    above = round((2 * area - 1) * samples / 2)
    return {"scores": np.where(np.arange(samples) < above, 1.0, 0.0)[None], "member": member[None]}


class TestBetterCurve:
    def of(self, **points: tuple[float, float]) -> audit.Comparison:
        accuracies = {name: [accuracy] for name, (accuracy, _) in points.items()}
        return audit.Comparison(
            accuracies, {(name, "LiRA"): separated(area) for name, (_, area) in points.items()}
        )

    def test_areas_of_staircases(self) -> None:
        curves = self.of(a=(0.7, 0.6), b=(0.8, 0.7), c=(0.5, 0.9), nothing=(0.0, 0.5))
        for ways, area in ((["a"], 0.28), (["a", "b"], 0.28 + 0.1 * 0.3), (["b", "c", "a"], 0.31)):
            assert curves.better_curve(ways, ["nothing"], "LiRA").value == pytest.approx(area)

    @given(
        points=st.lists(
            st.tuples(st.floats(0, 1), st.sampled_from([0.5, 0.6, 0.75, 0.9, 1.0])),
            min_size=2,
            max_size=6,
        )
    )
    def test_a_further_point_never_takes_area_away(self, points: list[tuple[float, float]]) -> None:
        curves = self.of(**{f"p{i}": point for i, point in enumerate(points)})
        names = [f"p{i}" for i in range(len(points))]
        assert curves.better_curve(names, names[:-1], "LiRA").value >= -1e-12
        assert curves.better_curve(names, names[::-1], "LiRA").value == pytest.approx(0)


class TestBesideLine:
    def of(self, **points: tuple[float, float]) -> audit.Comparison:
        return TestBetterCurve().of(**points)

    def test_the_distance_is_read_at_equal_leak(self) -> None:
        plane = self.of(
            early=(0.6, 0.6), late=(0.7, 0.8), on=(0.65, 0.7), above=(0.75, 0.7), beyond=(0.5, 0.9)
        )
        found = {
            way: plane.at_matched_auc(way, ["late", "early"], "LiRA").value
            for way in ("on", "above", "beyond", "late")
        }
        assert found == pytest.approx({"on": 0.0, "above": 0.1, "beyond": -0.2, "late": 0.0})
        assert plane.at_matched_auc(
            "above", ["early", "late"], "LiRA", "beyond"
        ).value == pytest.approx(0.3)

    def test_a_list_of_ways_has_the_mean_of_each_at_its_own_leak(self) -> None:
        plane = self.of(
            early=(0.6, 0.6), late=(0.7, 0.8), above=(0.75, 0.7), below=(0.6, 0.8), on=(0.65, 0.7)
        )
        one = plane.at_matched_auc(["above", "below"], ["early", "late"], "LiRA")
        assert one.value == pytest.approx(0.0) and one.n == 1
        two = plane.at_matched_auc(["above", "on"], ["early", "late"], "LiRA", ["below", "on"])
        assert two.value == pytest.approx(0.1)

    def test_each_unit_has_its_own_line(self) -> None:
        rows = [
            {name: each[0] for name, each in separated(area).items()} for area in (0.6, 0.8, 0.7)
        ]
        # units with AUC .6 and .7
        two = {name: np.stack([rows[i][name] for i in (0, 2)]) for name in rows[0]}
        late = {name: np.stack([rows[1][name]] * 2) for name in rows[0]}
        accuracies = {"early": [0.5, 0.6], "late": [0.7, 0.6], "way": [0.5, 0.6]}
        attacks = {("early", "A"): two, ("late", "A"): late, ("way", "A"): two}
        found = audit.Comparison(accuracies, attacks).at_matched_auc("way", ["early", "late"], "A")
        assert found.value == pytest.approx(0) and found.n == 2

    def test_something_else_than_accuracy_is_compared_at_equal_leak(self) -> None:
        plane = self.of(early=(0.6, 0.6), late=(0.7, 0.8), way=(0.1, 0.7))
        found = plane.at_matched_auc(
            "way", ["early", "late"], "LiRA", heights={"early": [0.0], "late": [1.0], "way": [0.25]}
        )
        assert found.value == pytest.approx(-0.25)

    @pytest.mark.parametrize(("beyond", "resolved"), [(0, True), (1, True), (2, False), (4, False)])
    def test_beyond_the_ends_nothing_is_resolved(self, beyond: int, resolved: bool) -> None:
        def leaking(areas: list[float]) -> dict[str, np.ndarray]:
            each = [separated(area) for area in areas]
            return {name: np.concatenate([one[name] for one in each]) for name in each[0]}

        attacks = {("early", "A"): leaking([0.6] * 4), ("late", "A"): leaking([0.8] * 4)}
        attacks |= {
            ("way", "A"): leaking([0.9] * beyond + [0.7] * (4 - beyond)),
            ("on", "A"): leaking([0.8] * 4),
        }
        plane = audit.Comparison({way: [0.5, 0.6, 0.5, 0.6] for way, _ in attacks}, attacks)
        assert plane.at_matched_auc("way", ["early", "late"], "A").resolved == resolved
        assert plane.at_matched_auc("on", ["early", "late"], "A", "way").resolved == resolved

    def test_a_point_is_no_line(self) -> None:
        with pytest.raises(ValueError, match="two variants or more"):
            self.of(a=(0.5, 0.6)).at_matched_auc("a", ["a"], "LiRA")


class TestExposedAlike:
    def test_ranks_among_members_alone(self) -> None:
        one = made(3.0, targets=3)
        same = one | {"scores": np.exp(one["scores"])}
        np.testing.assert_allclose(audit.exposed_alike(one, same), 1)
        np.testing.assert_allclose(
            audit.exposed_alike(one, one | {"scores": -one["scores"]}, members=False), -1
        )

    def test_membership_alone_is_no_agreement(self) -> None:
        one, draws = made(3.0, targets=200), np.random.default_rng(1)
        other = one | {"scores": draws.normal(size=one["scores"].shape) + 3.0 * one["member"]}
        found = audit.mean_ci(audit.exposed_alike(one, other))
        assert abs(found.value) < 0.02 and found.low < 0 < found.high

    def test_equal_scores_and_other_samples(self) -> None:
        one = made(1.0, targets=2)
        assert not audit.exposed_alike(one, one | {"scores": np.zeros_like(one["scores"])}).any()
        with pytest.raises(ValueError, match="the same samples"):
            audit.exposed_alike(one, one | {"member": ~one["member"]})
