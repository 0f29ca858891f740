"""Texts as rows of word numbers: scikit-learn finds the words, the data set's train part says which
ones count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PADDING, UNKNOWN = 0, 1  # where a text has ended; a word that the vocabulary lacks
WORD = r"\w+"  # in lower case, words of one letter too


def vocabulary(texts: NDArray, words: int) -> dict[str, int]:
    """The `words` - 2 most frequent words of `texts (n,)`, numbered from 2 by frequency, equals by
    the alphabet.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(token_pattern=WORD)
    by_text = counter.fit_transform(texts.tolist())
    counts = np.asarray(by_text.sum(axis=0))[0]
    known = counter.get_feature_names_out()  # by the alphabet
    order = np.argsort(-counts, kind="stable")[: words - 2]
    frequent = known[order].tolist()
    return {word: number for number, word in enumerate(frequent, 2)}


def encoded(texts: NDArray, train: int, words: int, length: int) -> NDArray:
    """The first `length` words of each of `texts (n,)` by number, `(n, length)` int32, filled up
    with `PADDING`.

    The vocabulary is that of the first `train` texts, of members and non-members alike: that a word
    is known says nothing of who trained on it. A text without any word is one unknown word.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    number = vocabulary(texts[:train], words)
    split = CountVectorizer(token_pattern=WORD).build_analyzer()
    out = np.full((len(texts), length), PADDING, np.int32)
    for row, text in zip(out, texts.tolist(), strict=True):
        first = split(text)[:length]
        numbers = [number.get(word, UNKNOWN) for word in first]
        row[: len(numbers)] = numbers
        if not numbers:
            row[0] = UNKNOWN
    return out
