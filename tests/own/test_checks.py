"""Inputs that were swapped give a warning that names the mistake, and no verdict; honest ones give
none.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leak_atlas import own
from leak_atlas.data.designs import Role
from leak_atlas.own import checks, logits
from tests.own.arrays import simulated

Arrays = dict[str, Any]
pytestmark = pytest.mark.usefixtures("quick")


def shifted(arrays: Arrays, name: str) -> Arrays:
    return arrays | {name: (arrays[name] + 1) % 5}


def inverted(arrays: Arrays, *names: str) -> Arrays:
    return arrays | {name: ~arrays[name] for name in names}


def turned(arrays: Arrays, name: str) -> Arrays:
    """In another order of the samples."""
    return arrays | {name: np.roll(arrays[name], 1, axis=arrays[name].ndim > 1)}


def reordered(arrays: Arrays, seed: int) -> Arrays:
    """With the rows of `in_shadow` in another order, of which few are in their own place."""
    rows = np.random.default_rng(seed).permutation(len(arrays["in_shadow"]))
    assert np.mean(rows == np.arange(len(rows))) <= 0.5
    return arrays | {"in_shadow": arrays["in_shadow"][rows]}


SWAPPED = {
    "member": (lambda a: inverted(a, "member"), "`member` looks inverted"),
    "in_shadow": (lambda a: inverted(a, "in_shadow"), "`in_shadow` looks inverted"),
    "both": (lambda a: inverted(a, "in_shadow", "member"), "`in_shadow` looks inverted"),
    "rows": (lambda a: reordered(a, 1), "`in_shadow` has rows in another order"),
    "classes": (lambda a: shifted(a, "labels"), "`labels` or `target` is shifted"),
    "labels": (lambda a: turned(a, "labels"), "`labels` or `target` is shifted"),
    "shadows": (lambda a: turned(a, "shadows"), "`shadows` is shifted or in another order"),
    "population": (
        lambda a: shifted(a, "population_labels"),
        "`population_labels` or `population` is shifted",
    ),
}


@pytest.mark.parametrize(("swap", "words"), SWAPPED.values(), ids=list(SWAPPED))
@pytest.mark.parametrize("queries", [0, 2])
def test_what_is_swapped_is_named_and_gives_no_verdict(
    swap: Callable[[Arrays], Arrays], words: str, queries: int
) -> None:
    result = own.audit(swap(simulated(1.0, queries=queries)))
    first = result.warnings[0]
    assert words in first
    assert result.verdict().startswith(f"No verdict. {first}")
    assert len(result.warnings) == 1 or "`member` looks inverted" in result.warnings[1]
    top = str(result.said()).split("\n")
    assert top[0] == "No verdict: an input looks wrong."
    assert first in top[1], "the warning stands at the top"
    summary = result.summary()
    assert summary["verdict"] is None
    assert summary["warnings"] == [*result.warnings]


def paired(arrays: Arrays, seen: np.ndarray, leak: float | np.ndarray, seed: int = 0) -> Arrays:
    """The arrays with other shadow models, which trained on the samples `seen (M, N)`."""
    hardness = np.random.default_rng(seed).normal(3, 1, seen.shape[1])
    noise = np.random.default_rng(seed + 1).normal(0, 0.5, seen.shape)
    labels = np.broadcast_to(arrays["labels"], seen.shape)
    z = np.zeros((*seen.shape, 5), np.float32)
    towards = hardness + leak * seen + noise
    np.put_along_axis(z, labels[..., None], towards[..., None], axis=2)
    known = {name: arrays[name] for name in logits.NEEDED}
    return known | {"shadows": z, "in_shadow": seen}


def test_a_row_of_in_shadow_that_belongs_to_another_model_is_named() -> None:
    """Complement pairs in each other's place: LiRA looks at the wrong sides, the target's own loss
    does not.
    """
    arrays = simulated(1.0, models=2)
    seen = np.concatenate([arrays["in_shadow"][:1], ~arrays["in_shadow"][:1]] * 4)
    right = paired(arrays, seen, leak=1.0)
    assert not own.audit(right).warnings
    (line,) = own.audit(right | {"in_shadow": np.roll(seen, 1, axis=0)}).warnings
    assert "`in_shadow`" in line


@pytest.mark.parametrize("leak", [0.5, 1.0, 3.0])
def test_rows_in_another_order_are_named_whatever_the_order(leak: float) -> None:
    for seed in range(20):
        arrays = simulated(leak, models=8, seed=seed)
        (line,) = own.audit(reordered(arrays, seed)).warnings
        assert line.startswith("`in_shadow` has rows in another order than `shadows`")
        assert "Row m belongs to shadows[m]" in line


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("models", [2, 3, 8])
@pytest.mark.parametrize("leak", [0.0, 0.05, 0.3, 1.0, 4.0])
def test_rows_in_their_own_order_are_not_warned_of(leak: float, models: int, pairs: bool) -> None:
    """Whether shadow models overfit or not, with independent training sets or complement pairs."""
    warned = []
    for seed in range(40):
        arrays = simulated(leak, n=120, models=models, seed=seed)
        seen = arrays["in_shadow"]
        if pairs:
            seen[1::2] = ~seen[: 2 * (models // 2) : 2]
        result = checks.warnings(logits.checked(paired(arrays, seen, leak, seed)), {})
        warned += [line for line in result if "another order" in line]
    assert len(warned) <= 1


def test_one_model_that_overfits_most_leaves_the_rows_of_the_others_in_order() -> None:
    """Its complement row fits the others better than their own, as they are compared with it."""
    for seed in range(20):
        arrays = simulated(1.0, n=2000, models=4, seed=seed)
        seen = arrays["in_shadow"]
        seen[1::2] = ~seen[::2]
        leak = np.array([[3.0], [0.0], [0.0], [0.0]])
        result = checks.warnings(logits.checked(paired(arrays, seen, leak, seed)), {})
        assert not any("another order" in line for line in result)


def test_a_verdict_says_what_is_lacking_and_nothing_else() -> None:
    enough = own.audit(simulated(1.0)).verdict()
    assert "needs" not in enough and "need about" not in enough
    few = own.audit(simulated(1.0, n=120, models=4)).verdict()
    assert "1 % FPR needs 100 non-members or more (here " in few
    assert few.endswith("LiRA, RMIA and BASE need about 16 shadow models (here 4).")


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_shadow_models_of_one_training_set_have_no_order(share: float) -> None:
    arrays = simulated(1.0, n=4000, models=8)
    row = np.random.default_rng(0).random((1, 4000)) < share
    seen = np.repeat(row, 8, axis=0)
    result = own.audit(paired(arrays, seen, leak=1.0))
    assert not result.warnings
    assert not any("by `in_shadow`" in note for note in result.notes)


def test_a_target_that_identifies_members_where_no_shadow_model_does_is_warned_of() -> None:
    """Samples of `in_shadow` in another order look like shadow models that were hardly trained."""
    arrays = simulated(1.0)
    words = "samples in `in_shadow` are in another order than in `shadows`"
    turned_samples = own.audit(turned(arrays, "in_shadow"))
    assert words in turned_samples.notes[0]
    assert turned_samples.verdict().startswith("The target leaks: ")
    for leak in (0.0, 0.1, 1.0, 3.0):
        for models in (2, 8):
            notes = own.audit(simulated(leak, models=models)).notes
            assert not any(words in note for note in notes), (leak, models)


def test_labels_in_another_order_are_warned_of() -> None:
    """No verdict, except where the labels happen to agree more often than the largest class: there
    a warning stands next to it.
    """
    arrays = simulated(1.0, models=2)
    unseen = 0
    for seed in range(60):
        labels = np.random.default_rng(seed).permutation(arrays["labels"])
        target_only = {name: arrays[name] for name in logits.NEEDED} | {"labels": labels}
        result = own.audit(target_only)
        at_chance = any("neither members nor non-members" in note for note in result.notes)
        unseen += not (result.warnings or at_chance)
    assert unseen <= 1
    assert not any("neither" in note for note in own.audit(arrays).notes)


def test_a_model_that_memorised_random_labels_is_not_told_that_arrays_are_swapped() -> None:
    """Nothing can predict the population; whether its labels are in order is not known."""
    arrays = simulated(1.0)
    rng = np.random.default_rng(0)
    n, z = len(arrays["labels"]), len(arrays["population_labels"])
    memorised = 4 * np.eye(5)[arrays["labels"]] * arrays["member"][:, None]
    target = rng.normal(0, 1, (n, 5)) + memorised
    result = own.audit(
        arrays
        | {
            "target": target,
            "population": rng.normal(0, 1, (z, 5)),
            "population_labels": rng.integers(5, size=z),
        }
    )
    (line,) = result.warnings
    assert "samples outside their training sets no better than by chance" in line
    assert "If your data are learnable" in line


@pytest.mark.parametrize("swap", ["member", "classes"])
def test_without_shadow_models_too(swap: str) -> None:
    alone = {name: simulated(1.5)[name] for name in logits.NEEDED}
    assert not own.audit(alone).warnings
    assert own.audit(SWAPPED[swap][0](alone)).verdict().startswith("No verdict")


def test_an_audit_without_a_leak_is_warned_of_once_in_a_hundred_at_most() -> None:
    warned = []
    for seed in range(300):
        result = own.audit(simulated(0.0, n=60, models=4, seed=seed))
        warned.append(bool(result.warnings))
    assert np.mean(warned) <= 0.01


@pytest.mark.parametrize("queries", [0, 2])
@pytest.mark.parametrize("leak", [0.1, 0.5, 3.0])
def test_a_leak_is_not_warned_of_whatever_its_size(leak: float, queries: int) -> None:
    for seed in range(8):
        arrays = simulated(leak, n=200, models=8, queries=queries, seed=seed)
        assert not own.audit(arrays).warnings


def test_attacks_without_orientation_may_lie_below_one_half() -> None:
    """Members are right and unsure, most non-members wrong and sure: by entropy these look like
    members.
    """
    n = 400
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=n)
    member = rng.random(n) < 0.5
    z = rng.normal(0, 0.1, (n, 5))
    moved = (labels + (rng.random(n) < 0.8)) % 5
    z[np.arange(n), np.where(member, labels, moved)] += np.where(member, 1.5, 6)
    result = own.audit({"target": z, "labels": labels, "member": member})
    assert result.auc["entropy"].high < 0.5 < result.auc["loss"].low
    assert not result.warnings
    assert result.verdict().startswith("The target leaks: ")


def test_a_model_of_rare_classes_may_be_worse_than_the_largest_class() -> None:
    n = 2000
    rng = np.random.default_rng(0)
    labels = (rng.random(n) < 0.1).astype(int)
    # weighted by class: .85, the largest class has .9
    guesses = np.where(rng.random(n) < 0.85, labels, 1 - labels)
    z = rng.normal(0, 0.3, (n, 2)) + 2 * np.eye(2)[guesses]
    arrays = {"target": z, "labels": labels, "member": rng.random(n) < 0.5}
    assert np.mean(z.argmax(1) == labels) < np.mean(labels == 0)
    assert not own.audit(arrays).warnings
    assert "`labels`" in own.audit(arrays | {"labels": 1 - labels}).warnings[0]


def test_accuracies_are_those_of_each_models_own_members() -> None:
    arrays = simulated(1.5, models=3)
    arrays["in_shadow"][2] = False
    result = own.audit(arrays)
    found = checks.accuracies(result.arrays)
    right = arrays["target"].argmax(1) == arrays["labels"]
    member = arrays["member"]
    assert found["target"] == {
        "members": right[member].mean(),
        "non_members": right[~member].mean(),
    }
    others = arrays["shadows"].argmax(2) == arrays["labels"]
    assert found["shadow models"]["members"] == others[arrays["in_shadow"]].mean()


def signals_of(members_right: int, outside_right: int) -> dict[str, np.ndarray]:
    """What `Signals` says of a model of 100 members and 100 non-members: so many are right."""
    right = np.concatenate([np.arange(100) < members_right, np.arange(100) < outside_right])
    return {
        "role": np.repeat([Role.MEMBER, Role.NONMEMBER], 100),
        "index": np.arange(200),
        "labels": np.zeros(200, int),
        "logits": np.stack([right, ~right], axis=1) * 2.0,
    }


def test_the_test_accuracy_is_stated_and_asked_where_it_is_not_known() -> None:
    signals = signals_of(96, 80)
    measured = "Test accuracy of the model, measured here: 0.800."
    assert checks.known_or_asked(signals, 0.81) == f"{measured} You know 0.81."
    assert checks.known_or_asked(signals, None).startswith(f"{measured} **Is this")


@pytest.mark.parametrize(
    ("target", "shadows", "words"),
    [
        ((96, 80), [(91, 80), (92, 80)], ["on members is 0.96", "0.92 in"]),
        ((96, 80), [(94, 80), (93, 80)], []),
        ((96, 80), [(99, 80), (80, 80)], []),
        ((99, 97), [(99, 72), (99, 75)], ["on non-members is 0.97"]),
        ((99, 97), [], []),
    ],
)
def test_shadow_models_unlike_their_target_give_one_warning(
    target: tuple[int, int], shadows: list[tuple[int, int]], words: list[str]
) -> None:
    arrays = logits.brought(signals_of(*target), [signals_of(*right) for right in shadows])
    line = checks.unlike_shadows(arrays)
    assert bool(line) == bool(words)
    assert all(word in line for word in words)


def test_warnings_of_shadow_models_stand_on_the_page() -> None:
    arrays = simulated(1.0)
    label = np.arange(5) == arrays["labels"][None, :, None]
    weak = np.where(label, arrays["shadows"] - 2, arrays["shadows"])
    note = own.audit(arrays | {"shadows": weak}).notes[0]
    assert note.startswith("Warning: The shadow models are unlike your model")
    assert not any("Warning" in note for note in own.audit(arrays).notes)
    fewer = np.random.default_rng(0).random((16, 600)) < 0.7
    seen = arrays["in_shadow"] & (fewer | ~arrays["member"])
    notes = own.audit(arrays | {"in_shadow": seen}).notes
    assert any("number of shadow models that trained on a sample" in note for note in notes)
