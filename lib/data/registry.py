"""What is known of each data set without touching it: names, shapes, classes, pinned digests. Standard library only.

`digest` names the content: results carry it in their keys, so a data set that changed can never answer for the old one.
For embedded files it is the file's SHA-256, for scikit-learn's digits that of the thresholded arrays, and for the sets
that are prepared from source files it is derived from the MD5 of each. CIFAR's MD5s are those that torchvision pins,
DBpedia-14's is torchtext's, and CINIC-10's is the one that public loaders of it state. For the two MNISTs they are of
the *uncompressed* idx files, because mirrors and distributions compress them anew, and for sets of a user's own arrays
they are of the values (images uint8, labels little-endian int64), not of .npy headers.
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
    layout: str = ""  # the folder in which torchvision expects them, below its root, or to which the archive unpacks
    url: str = ""  # of the archive that is the one source file, where torchvision does not read the set
    note: str = ""

    @property
    def digest(self) -> str:
        """SHA-256, in hex, that identifies the content."""
        if self.sha256:
            return self.sha256
        return hashlib.sha256("".join(f"{name} {md5}\n" for name, md5 in self.files).encode()).hexdigest()

    @property
    def arrays(self) -> bool:
        """Whether the source files are arrays that a user brings: {x,y}_{train,test}.npy."""
        return any(name.endswith(".npy") for name, _ in self.files)

    @property
    def size(self) -> int:
        """Samples, train and test part together."""
        return self.train + self.test


def _arrays(x_train: str, y_train: str, x_test: str, y_test: str) -> tuple[tuple[str, str], ...]:
    return ("x_train.npy", x_train), ("y_train.npy", y_train), ("x_test.npy", x_test), ("y_test.npy", y_test)


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
_ONTOLOGY = (
    "Company", "EducationalInstitution", "Artist", "Athlete", "OfficeHolder", "MeanOfTransportation", "Building",
    "NaturalPlace", "Village", "Animal", "Plant", "Album", "Film", "WrittenWork",
)  # fmt: skip
# The folder names of Tiny ImageNet's train part, in order: WordNet 3.0's numbers of noun synsets.
_SYNSETS = """
    n01443537 n01629819 n01641577 n01644900 n01698640 n01742172 n01768244 n01770393 n01774384 n01774750 n01784675
    n01855672 n01882714 n01910747 n01917289 n01944390 n01945685 n01950731 n01983481 n01984695 n02002724 n02056570
    n02058221 n02074367 n02085620 n02094433 n02099601 n02099712 n02106662 n02113799 n02123045 n02123394 n02124075
    n02125311 n02129165 n02132136 n02165456 n02190166 n02206856 n02226429 n02231487 n02233338 n02236044 n02268443
    n02279972 n02281406 n02321529 n02364673 n02395406 n02403003 n02410509 n02415577 n02423022 n02437312 n02480495
    n02481823 n02486410 n02504458 n02509815 n02666196 n02669723 n02699494 n02730930 n02769748 n02788148 n02791270
    n02793495 n02795169 n02802426 n02808440 n02814533 n02814860 n02815834 n02823428 n02837789 n02841315 n02843684
    n02883205 n02892201 n02906734 n02909870 n02917067 n02927161 n02948072 n02950826 n02963159 n02977058 n02988304
    n02999410 n03014705 n03026506 n03042490 n03085013 n03089624 n03100240 n03126707 n03160309 n03179701 n03201208
    n03250847 n03255030 n03355925 n03388043 n03393912 n03400231 n03404251 n03424325 n03444034 n03447447 n03544143
    n03584254 n03599486 n03617480 n03637318 n03649909 n03662601 n03670208 n03706229 n03733131 n03763968 n03770439
    n03796401 n03804744 n03814639 n03837869 n03838899 n03854065 n03891332 n03902125 n03930313 n03937543 n03970156
    n03976657 n03977966 n03980874 n03983396 n03992509 n04008634 n04023962 n04067472 n04070727 n04074963 n04099969
    n04118538 n04133789 n04146614 n04149813 n04179913 n04251144 n04254777 n04259630 n04265275 n04275548 n04285008
    n04311004 n04328186 n04356056 n04366367 n04371430 n04376876 n04398044 n04399382 n04417672 n04456115 n04465501
    n04486054 n04487081 n04501370 n04507155 n04532106 n04532670 n04540053 n04560804 n04562935 n04596742 n04597913
    n06596364 n07579787 n07583066 n07614500 n07615774 n07695742 n07711569 n07715103 n07720875 n07734744 n07747607
    n07749582 n07753592 n07768694 n07871810 n07873807 n07875152 n07920052 n09193705 n09246464 n09256479 n09332890
    n09428293 n12267677
"""
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
    Entry(
        name="tinyimagenet",
        title="Tiny ImageNet",
        kind="images",
        shape=(64, 64, 3),
        classes=tuple(_SYNSETS.split()),
        train=100_000,
        test=10_000,
        mean=(0.4802, 0.4481, 0.3975),
        std=(0.2770, 0.2691, 0.2821),
        files=(("tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de"),),
        layout="tiny-imagenet-200",
        url="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        source="cs231n.stanford.edu (248 MB; 1.4 GB when prepared)",
        licence="none stated; its images are ImageNet's, for non-commercial research",
        note="the test part is the archive's val part, for its own test part has no labels",
    ),
    Entry(
        name="cinic10",
        title="CINIC-10",
        kind="images",
        shape=(32, 32, 3),
        classes=_CIFAR10,
        train=180_000,
        test=90_000,
        mean=(0.4789, 0.4723, 0.4305),
        std=(0.2421, 0.2383, 0.2587),
        files=(("CINIC-10.tar.gz", "6ee4d0c996905fe93221de577967a372"),),
        layout="CINIC-10",
        url="https://datashare.ed.ac.uk/server/api/core/bitstreams/e8e186cc-2688-48f1-aa5a-3fda1a43f8b6/content",
        source="Edinburgh DataShare, doi 10.7488/ds/2448 (688 MB; 830 MB when prepared)",
        licence="CC BY 4.0 (Darlow, Crowley, Antoniou and Storkey 2018); its images are CIFAR-10's and ImageNet's",
        note="the train part is the archive's train part and then its valid part, which its makers drew alike and say"
        " can be joined; a pool of 90,000 leaves as many for dev and reference. All of CIFAR-10's test images are in"
        " the test part. Mean and deviation are those that the makers publish, unmeasured here",
    ),
    Entry(
        name="dbpedia14",
        title="DBpedia-14",
        kind="text",
        shape=(),
        classes=_ONTOLOGY,
        train=560_000,
        test=70_000,
        files=(("dbpedia_csv.tar.gz", "dca7b1ae12b1091090db52aa7ec5ca64"),),
        layout="dbpedia_csv",
        url="https://drive.usercontent.google.com/download?id=0Bz8a_Dbh9QhbQ2Vic1kxMmZZQ1k&export=download&confirm=t",
        source="its author's Google Drive, as torchtext (68 MB; 200 MB when prepared)",
        licence="CC BY-SA 3.0 and GFDL (DBpedia; Zhang, Zhao and LeCun 2015)",
        note="a text is title and content; 40,000 train and 5,000 test texts of each class. A mirror on GitHub, now"
        " empty, had the archive with another MD5: of such a copy, unpack the folder",
    ),
    Entry(
        name="cifar100-half",
        title="CIFAR-100, a class-balanced half",
        kind="images",
        shape=(32, 32, 3),
        classes=_CIFAR100,
        train=25_000,
        test=5_000,
        mean=(0.5066, 0.4867, 0.4410),
        std=(0.2673, 0.2560, 0.2759),
        files=_arrays(
            "474cca68f7bbd63c92e95c026492b687",
            "7d45b2cb1950999365d6b877062fa430",
            "6b738a2dc9af901b22afe7f2e964be1a",
            "e107f42c8003165df1645198213ba48d",
        ),
        source="your own x_train.npy, y_train.npy, x_test.npy, y_test.npy; for development",
        licence="none stated; cite Krizhevsky 2009",
        note="a class-balanced half, for development: 250 train and 50 test images of each class, shuffled; seven"
        " groups of pixel-identical images, two of them across the parts",
    ),
    Entry(
        name="tinyimagenet32-half",
        title="Tiny ImageNet, a lossy half at 32x32",
        kind="images",
        shape=(32, 32, 3),
        classes=tuple(_SYNSETS.split()),
        train=50_000,
        test=5_000,
        mean=(0.4808, 0.4489, 0.3989),
        std=(0.2521, 0.2449, 0.2593),
        files=_arrays(
            "a0a8114618477d8fad3a96aa9f33e6f6",
            "4fce7bef69d792633196b845101a7d82",
            "0588aea16bbdf10e29a68f0ea5f6172e",
            "3156c5f0e9edba84d15bf650a78e3e76",
        ),
        source="your own x_train.npy, y_train.npy, x_test.npy, y_test.npy; for development",
        licence="none stated; its images are ImageNet's, for non-commercial research",
        note="a class-balanced half, for development: 250 train and 25 val images of each class, shuffled; lossy:"
        " reduced to 32x32 and encoded as JPEG again; four groups of pixel-identical images",
    ),
)

ENTRIES: dict[str, Entry] = {entry.name: entry for entry in _ALL}


def find(name: str) -> Entry:
    """The entry of that name; BadInput, with the nearest name, where there is none."""
    if name not in ENTRIES:
        raise BadInput(f"there is no data set '{name}'{nearest(str(name), list(ENTRIES))}")
    return ENTRIES[name]
