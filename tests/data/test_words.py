"""Texts as numbers: by hand, and the same everywhere."""

import zlib
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident, resident
from leak_atlas.data.words import PADDING, UNKNOWN, encoded, vocabulary
from leak_atlas.models import Net, build
from leak_atlas.recipe import Augment, Data, Model, RandomHalves, Schedule, Signals, Train
from leak_atlas.training import answers

TEXTS = np.array(
    ["A cat; the cat!", "the dog a", "Zebra, the dog", "?!"], dtype=np.dtypes.StringDType()
)
GLOSSES = Data("wordnet-glosses", words=500, length=16)


def test_words_by_hand() -> None:
    assert vocabulary(TEXTS, 100) == {"the": 2, "a": 3, "cat": 4, "dog": 5, "zebra": 6}, (
        "equals by the alphabet"
    )
    assert vocabulary(TEXTS, 4) == {"the": 2, "a": 3}
    found = encoded(TEXTS, train=2, words=5, length=3)
    assert found.dtype == np.int32
    assert found.tolist() == [
        [2, 3, 4],
        [4, UNKNOWN, 2],
        [UNKNOWN, 4, UNKNOWN],
        [UNKNOWN, PADDING, PADDING],
    ]


def test_only_the_train_part_makes_the_vocabulary() -> None:
    other = TEXTS.copy()
    other[3] = "dog dog dog dog dog"
    np.testing.assert_array_equal(encoded(other, 3, 5, 4)[:3], encoded(TEXTS, 3, 5, 4)[:3])
    assert vocabulary(other, 5) != vocabulary(TEXTS, 5)


def test_glosses_are_the_same_everywhere() -> None:
    """And with every scikit-learn: the numbers are in no key, so they must not move."""
    assert zlib.crc32(resident(GLOSSES).samples.numpy().astype("<i4").tobytes()) == 1670060084


def test_texts_are_resident() -> None:
    data = resident(GLOSSES)
    assert data.samples.shape == (21_000, 16)
    assert data.samples.dtype == torch.int32
    assert not data.pictures
    x = augmentation.plain(data, torch.tensor([5, 0]))
    assert x.dtype == torch.int64
    assert torch.equal(x, data.samples[[5, 0]].long())


def test_what_has_no_pixels_has_one_view() -> None:
    data = resident(GLOSSES)
    net = build(Model("transformer", width=8), 500, 14, 0, 16)
    index = torch.arange(6)
    logits, views = answers.logits(net, data, index)
    assert logits.shape == (6, 14)
    assert views.shape == (6, 1)
    bits = Resident(
        torch.zeros(4, 8, dtype=torch.uint8), torch.arange(4), torch.empty(0), torch.empty(0), 4, 4
    )
    for each, asked in ((data, net), (bits, Net(OrderedDict(head=nn.Linear(8, 4))))):
        with pytest.raises(BadInput, match="only images can be cropped"):
            answers.logits(asked, each, index[:2], views=2)


def text_training(data: Data = GLOSSES, augment: Augment | None = None) -> Train:
    model = Model("transformer", width=8)
    return Train(data, RandomHalves(100), 0, model, Schedule(1, augment=augment))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Data("cifar10", words=100), "leave words out"),
        (lambda: Data("wordnet-glosses", pixels=8), "leave pixels out"),
        (lambda: Data("wordnet-glosses", words=2), "words takes 3 or more, not 2"),
        (lambda: text_training(Data()), "a transformer reads text"),
        (lambda: text_training(augment=Augment()), "only images are augmented"),
        (lambda: Signals(text_training(), views=2), "ask for views=1"),
    ],
)
def test_recipes_that_cannot_be(make: Callable[[], object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make()


def test_a_vocabulary_is_in_the_key() -> None:
    assert Data("wordnet-glosses", words=10_000, length=64).key == Data("wordnet-glosses").key
    others = (GLOSSES, Data("wordnet-glosses"), Data("wordnet-glosses", words=500))
    assert len({data.key for data in others}) == 3
