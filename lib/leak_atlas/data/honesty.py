"""Is the tool itself honest? What could tell members from non-members before any model was trained."""

from __future__ import annotations

import numpy as np

from leak_atlas import BadInput
from leak_atlas.audit import Estimate, auc_interval
from leak_atlas.data.designs import Role
from leak_atlas.data.formats import places

SAMPLES = 2000  # of each population at most, so that the blind classifier takes less than a second
DIMENSIONS = 1024  # wider inputs are projected at random to this many
LEAST = 10  # samples of each side
PENALTY = 1.0  # L2 on standardised inputs, per dimension


def contents(x: np.ndarray) -> np.ndarray:
    """A number for each sample, (n,) int64, equal exactly where the samples' content is equal.

    `x` (n, ...) of any fixed-size type, compared byte by byte, or (n,) of strings.
    """
    if x.dtype.kind == "T":
        return np.unique(x, return_inverse=True)[1]
    flat = np.ascontiguousarray(x).reshape(len(x), -1)
    whole = flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1])))[:, 0]
    return np.unique(whole, return_inverse=True)[1]


def duplicates(x: np.ndarray, roles: np.ndarray) -> int:
    """How many samples occur, byte for byte, on both sides of the membership of one row.

    `x` (n, ...) samples, `roles` (n,) of `Role`. The one side is `MEMBER`, the other `NONMEMBER`
    and `TEST`, whose samples an attack takes for unseen. Counts the samples on both sides; 0 is
    clean. Dev, reference and unused samples take no part.
    """
    if len(x) != len(roles):
        raise BadInput(f"{len(x)} samples and {len(roles)} roles do not belong together")
    inside, outside = roles == Role.MEMBER, np.isin(roles, (Role.NONMEMBER, Role.TEST))
    number = contents(x)
    both = np.intersect1d(number[inside], number[outside])
    return int(np.isin(number[inside | outside], both).sum())


def _features(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if x.dtype.kind == "T":
        from sklearn.feature_extraction.text import HashingVectorizer

        return (
            HashingVectorizer(n_features=DIMENSIONS, alternate_sign=False)
            .transform(x.tolist())
            .toarray()
        )
    flat = x.reshape(len(x), -1).astype(np.float32)
    if flat.shape[1] > DIMENSIONS:
        flat = flat @ (
            rng.standard_normal((flat.shape[1], DIMENSIONS), np.float32)
            / np.float32(np.sqrt(DIMENSIONS))
        )
    return flat


def _in_turn(side: np.ndarray, classes: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `most` samples of a side with every class at its share, and each one's number
    within its class.
    """
    rank = places(classes)
    first = np.lexsort((classes, rank / np.bincount(classes)[classes]))[:most]
    return side[first], rank[first]


def blind(x: np.ndarray, member: np.ndarray, labels: np.ndarray, seed: int = 0) -> Estimate:
    """AUC of a logistic regression that tries to tell members from non-members by the inputs alone,
    with its interval.

    `x` (n, ...) samples, `member` (n,) bool, `labels` (n,), at least `LEAST` of each side. At most
    `SAMPLES` of them, equally many of each side and drawn by `seed`, are used: one half of either
    side is fitted, the other judged. Where both sides have the same classes by design, the cut is
    within class: a random one puts into the judged half what the fitted half lacks, which reads as
    an AUC below .5. (Elsewhere such a cut would give both halves the chance surplus of a class,
    which reads as an AUC above .5.) Cross-validation would judge all samples, but its folds' models
    share most of theirs and err together: with five folds the interval held .5 in only 77 to 90 %
    of fair designs, and the AUC varied as much as it does over one judged half.

    Judged one-sided: under a fair design the lower end lies above .5 in 2.5 % of seeds. If it does,
    something in the inputs tells the two sides apart, and every attack's score on this design is
    suspect. BadInput where a side is too small.
    """
    from sklearn.linear_model import LogisticRegression

    member = np.asarray(member, bool)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    sides = [rng.permutation(np.flatnonzero(member == side)) for side in (False, True)]
    classes = np.unique(labels, return_inverse=True)[1]
    counts = [np.bincount(classes[side], minlength=classes.max() + 1) for side in sides]
    if np.abs(counts[0] - counts[1]).max() > 1:  # not stratified
        classes = np.zeros(len(labels), int)
    each = min(*map(len, sides), SAMPLES // 2)
    if len(x) != len(member) or each < LEAST:
        raise BadInput(
            f"a blind test needs {LEAST} members and as many non-members; there are {member.sum()} among {len(member)}"
            f" flags for {len(x)} samples"
        )
    index, rank = (
        np.concatenate(both)
        for both in zip(*(_in_turn(side, classes[side], each) for side in sides), strict=True)
    )
    features, target = _features(x[index], rng), np.repeat([False, True], each)
    judged = rank % 2 == 1
    mean, std = features[~judged].mean(0), features[~judged].std(0)
    features = (features - mean) * np.divide(1, std, out=np.zeros_like(std), where=std > 1e-6)
    model = LogisticRegression(C=1 / (PENALTY * features.shape[1]), tol=1e-3, max_iter=200)
    model.fit(features[~judged], target[~judged])
    return auc_interval(model.decision_function(features[judged]), target[judged])
