"""What is known of each data set without touching it: names, shapes, classes, pinned digests. Standard library only.

`digest` names the content: results carry it in their keys, so a data set that changed can never answer for the old one.
For embedded files it is the file's SHA-256, for scikit-learn's digits that of the thresholded arrays, and for the sets
that torchvision fetches it is derived from the MD5 of each source file. CIFAR's MD5s are those that torchvision pins;
for the two MNISTs they are of the *uncompressed* idx files, because mirrors and distributions compress them anew.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from lib import BadInput, nearest


@dataclass(frozen=True)
class Entry:
    """The facts about one data set."""

    name: str
    title: str
    kind: Literal["images", "bits", "text"]
    shape: tuple[int, ...]  # (H, W, C) of images, (D,) of bits, () of text
    classes: tuple[str, ...]  # the label is the index
    train: int  # samples in the train part, which come first
    test: int
    source: str  # how to get it, one line
    licence: str
    mean: tuple[float, ...] = ()  # of the train part's pixels in [0, 1], one a channel
    std: tuple[float, ...] = ()
    embedded: bool = False  # there without a download: in this package, or in one that it requires
    file: str = ""  # below lib/data/embedded
    sha256: str = ""  # of `file`, or of the arrays where there is none
    files: tuple[tuple[str, str], ...] = ()  # (name, MD5) of each source file, in torchvision's names
    layout: str = ""  # the folder in which torchvision expects them, below its root
    note: str = ""

    @property
    def digest(self) -> str:
        """SHA-256, in hex, that identifies the content."""
        if self.sha256:
            return self.sha256
        return hashlib.sha256("".join(f"{name} {md5}\n" for name, md5 in self.files).encode()).hexdigest()

    @property
    def size(self) -> int:
        """Samples, train and test part together."""
        return self.train + self.test


def _idx(images: str, labels: str, test_images: str, test_labels: str) -> tuple[tuple[str, str], ...]:
    return (
        ("train-images-idx3-ubyte", images),
        ("train-labels-idx1-ubyte", labels),
        ("t10k-images-idx3-ubyte", test_images),
        ("t10k-labels-idx1-ubyte", test_labels),
    )


_CLOTHES = ("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
_DIGITS = tuple("0123456789")
_CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_CIFAR100 = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy",
    "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock",
    "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish",
    "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange",
    "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine",
    "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk",
    "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
    "telephone", "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale",
    "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip
_FILES_OF_NOUNS = (
    "act", "animal", "artifact", "attribute", "body", "cognition", "communication", "food", "group", "location",
    "person", "plant", "state", "substance",
)  # fmt: skip

_ALL = (
    Entry(
        name="fashion-mnist-small",
        title="Fashion-MNIST, a class-balanced part",
        kind="images",
        shape=(28, 28, 1),
        classes=_CLOTHES,
        train=6_000,
        test=2_000,
        mean=(0.2869,),
        std=(0.3538,),
        embedded=True,
        file="fashion-mnist-small.npz",
        sha256="e697b8acf85f9ece60b9c975bc17c87e516fc4ce2b00615cd32064e13c1ca39d",
        source="part of this package",
        licence="MIT, (c) 2017 Zalando SE",
        note="the first 600 train and 200 test images of each class, without exact duplicates",
    ),
    Entry(
        name="digits-bits",
        title="scikit-learn digits thresholded to bits",
        kind="bits",
        shape=(64,),
        classes=_DIGITS,
        train=1_404,
        test=346,
        embedded=True,
        sha256="f5ea43c9958fa39c7b340ad384885610e9395dd637fdeed567c2ffa0eefe9181",
        source="part of scikit-learn, which this package requires",
        licence="CC BY 4.0 (UCI, Optical Recognition of Handwritten Digits, Alpaydin and Kaynak 1998)",
        note="a bit is set where the pixel is at least 8 of 16; repeated patterns are dropped; not a set of the papers",
    ),
    Entry(
        name="wordnet-glosses",
        title="WordNet 3.0 glosses of 14 noun files",
        kind="text",
        shape=(),
        classes=tuple(f"noun.{name}" for name in _FILES_OF_NOUNS),
        train=16_800,
        test=4_200,
        embedded=True,
        file="wordnet-glosses.tsv",
        sha256="d3f7b3202070e5159cf0f380254350350495ac86845ee9459878d68886657a43",
        source="part of this package",
        licence="WordNet 3.0 licence, (c) 2006 Princeton University",
        note="1,200 train and 300 test glosses of each class, without example sentences and exact duplicates",
    ),
    Entry(
        name="fashion-mnist",
        title="Fashion-MNIST",
        kind="images",
        shape=(28, 28, 1),
        classes=_CLOTHES,
        train=60_000,
        test=10_000,
        mean=(0.2860,),
        std=(0.3530,),
        files=_idx(
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
        layout="FashionMNIST/raw",
        source="torchvision's download (31 MB), or Debian's package dataset-fashion-mnist",
        licence="MIT, (c) 2017 Zalando SE",
    ),
    Entry(
        name="mnist",
        title="MNIST",
        kind="images",
        shape=(28, 28, 1),
        classes=_DIGITS,
        train=60_000,
        test=10_000,
        mean=(0.1307,),
        std=(0.3081,),
        files=_idx(
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
        layout="MNIST/raw",
        source="torchvision's download (12 MB)",
        licence="CC BY-SA 3.0 (LeCun, Cortes and Burges)",
    ),
    Entry(
        name="cifar10",
        title="CIFAR-10",
        kind="images",
        shape=(32, 32, 3),
        classes=_CIFAR10,
        train=50_000,
        test=10_000,
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
        files=(
            ("data_batch_1", "c99cafc152244af753f735de768cd75f"),
            ("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
            ("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
            ("data_batch_4", "634d18415352ddfa80567beed471001a"),
            ("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
            ("test_batch", "40351d587109b95175f43aff81a1287e"),
            ("batches.meta", "5ff9c542aee3614f3951f8cda6e48888"),
        ),
        layout="cifar-10-batches-py",
        source="torchvision's download (171 MB)",
        licence="none stated; cite Krizhevsky 2009",
    ),
    Entry(
        name="cifar100",
        title="CIFAR-100, fine labels",
        kind="images",
        shape=(32, 32, 3),
        classes=_CIFAR100,
        train=50_000,
        test=10_000,
        mean=(0.5071, 0.4865, 0.4409),
        std=(0.2673, 0.2564, 0.2762),
        files=(
            ("train", "16019d7e3df5f24257cddd939b257f8d"),
            ("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),
            ("meta", "7973b15100ade9c7d40fb424638fde48"),
        ),
        layout="cifar-100-python",
        source="torchvision's download (169 MB)",
        licence="none stated; cite Krizhevsky 2009",
        note="pixel-identical images: 14 groups in the train part, 10 test images equal a train image; designs do not"
        " keep them on one side, the self-audit counts them",
    ),
)

ENTRIES: dict[str, Entry] = {entry.name: entry for entry in _ALL}


def find(name: str) -> Entry:
    """The entry of that name; BadInput, with the nearest name, where there is none."""
    if name not in ENTRIES:
        raise BadInput(f"there is no data set '{name}'{nearest(str(name), list(ENTRIES))}")
    return ENTRIES[name]
