"""Is the tool itself honest? What could tell members from non-members before any model was trained."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput
from leak_atlas.data.designs import Role
from leak_atlas.data.formats import places
from leak_atlas.recipe.readings import JUDGED

SAMPLES = 2000  # of each population at most, so that the blind classifier takes less than a second
DIMENSIONS = 1024  # wider inputs are projected at random to this many
PENALTY = 1.0  # L2 on standardised inputs, per dimension


def duplicates(x: NDArray, roles: NDArray) -> int:
    """How many samples occur, byte for byte, on both sides of the membership of one row.

    `x` (n, ...) samples of any fixed-size type, or (n,) strings; `roles` (n,) of `Role`. The one
    side is `MEMBER`, the other `NONMEMBER` and `TEST`, whose samples an attack takes for unseen.
    Counts the samples on both sides; 0 is clean. Dev, reference and unused samples take no part.
    """
    if len(x) != len(roles):
        raise BadInput(f"{len(x)} samples and {len(roles)} roles do not belong together")
    sides = np.isin(roles, (Role.MEMBER, Role.NONMEMBER, Role.TEST))
    return in_several_groups(x[sides], roles[sides] == Role.MEMBER)


def in_several_groups(x: NDArray, groups: NDArray) -> int:
    """How many samples of `x` (n, ...) occur, byte for byte, in more than one of the groups (n,),
    which are whole numbers.
    """
    content = _contents(x)
    pairs = np.unique(np.column_stack([content, groups]), axis=0)
    groups_of = np.bincount(pairs[:, 0])
    return int(np.count_nonzero(groups_of[content] > 1))


def _contents(x: NDArray) -> NDArray:
    """A number for each sample (n,), from 0: equal samples have the same one.

    Samples are compared by a random sum of their bytes modulo 2^64, because sorting the samples
    would take several times their memory. Two samples that differ have the same sum with a
    probability of at most 2^-57.
    """
    if x.dtype.kind == "T":
        return np.unique(x, return_inverse=True)[1]
    width = math.prod(x.shape[1:])
    rows = np.ascontiguousarray(x).reshape(len(x), width).view(np.uint8)
    weights = np.random.default_rng(0).integers(0, 2**64, rows.shape[1], np.uint64)
    sums = np.einsum("nd,d->n", rows, weights)
    return np.unique(sums, return_inverse=True)[1]


def _features(x: NDArray, rng: np.random.Generator) -> NDArray:
    """Samples as rows of at most `DIMENSIONS` numbers."""
    if x.dtype.kind == "T":
        from sklearn.feature_extraction.text import HashingVectorizer

        words = HashingVectorizer(n_features=DIMENSIONS, alternate_sign=False)
        return words.transform(x.tolist()).toarray()
    flat = x.reshape(len(x), -1).astype(np.float32)
    if flat.shape[1] <= DIMENSIONS:
        return flat
    directions = rng.standard_normal((flat.shape[1], DIMENSIONS), np.float32)
    return flat @ (directions / np.float32(np.sqrt(DIMENSIONS)))


def _in_turn(side: NDArray, classes: NDArray, most: int) -> tuple[NDArray, NDArray]:
    """The first `most` samples of a side with every class at its share, and each one's number
    within its class.
    """
    rank = places(classes)
    sizes = np.bincount(classes)
    share = rank / sizes[classes]
    order = np.lexsort((classes, share))
    first = order[:most]
    return side[first], rank[first]


def blind(x: NDArray, member: NDArray, labels: NDArray, seed: int = 0) -> tuple[NDArray, NDArray]:
    """Scores (m,) of a logistic regression that tries to tell members from non-members by the
    inputs alone, and the membership (m,) of the samples that it judges.

    `x` (n, ...) samples, `member` (n,) bool, `labels` (n,), at least `JUDGED` of each side. At most
    `SAMPLES` of them, equally many of each side and drawn by `seed`, are used: one half of either
    side is fitted, the other judged. Where both sides have the same classes by design, the cut is
    within class: a random one puts into the judged half what the fitted half lacks, which reads as
    an AUC below .5. (Elsewhere such a cut would give both halves the chance surplus of a class,
    which reads as an AUC above .5.) Cross-validation would judge all samples, but its folds' models
    share most of theirs and err together: with five folds the interval held .5 in only 77 to 90 %
    of fair designs, and the AUC varied as much as it does over one judged half.

    Judged one-sided: under a fair design the lower end of the AUC's interval lies above .5 in 2.5 %
    of seeds. If it does, something in the inputs tells the two sides apart, and every attack's
    score on this design is suspect. Raises BadInput if a side is too small.
    """
    from sklearn.linear_model import LogisticRegression

    member = np.asarray(member, bool)
    rng = np.random.default_rng(seed)
    others = rng.permutation(np.flatnonzero(~member))
    members = rng.permutation(np.flatnonzero(member))
    most = min(len(others), len(members), SAMPLES // 2)
    if len(x) != len(member) or most < JUDGED:
        raise BadInput(
            f"a blind test needs {JUDGED} members and the same number of non-members; there are "
            f"{member.sum()} among {len(member)} flags for {len(x)} samples"
        )

    _, classes = np.unique(labels, return_inverse=True)
    number = classes.max() + 1
    surplus = np.bincount(classes[members], minlength=number)
    surplus -= np.bincount(classes[others], minlength=number)
    if np.abs(surplus).max() > 1:  # not stratified
        classes = np.zeros(len(labels), int)
    left, left_rank = _in_turn(others, classes[others], most)
    right, right_rank = _in_turn(members, classes[members], most)
    rank = np.concatenate([left_rank, right_rank])
    judged = rank % 2 == 1
    fitted = ~judged

    features = _features(x[np.concatenate([left, right])], rng)
    mean = features[fitted].mean(axis=0)
    std = features[fitted].std(axis=0)
    scale = np.divide(1, std, out=np.zeros_like(std), where=std > 1e-6)
    features = (features - mean) * scale
    target = np.repeat([False, True], most)
    strength = PENALTY * features.shape[1]
    model = LogisticRegression(C=1 / strength, tol=1e-3, max_iter=200)
    model.fit(features[fitted], target[fitted])
    return model.decision_function(features[judged]), target[judged]
