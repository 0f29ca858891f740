"""Transformers (Vaswani et al. 2017) with LayerNorm before each layer: for texts here, for images
in `vit`.

Maps are `(B, tokens, channels)`. Where texts differ in length, the places after a text's end are
zero in every map, and no token attends to them. So a part finds the length of each text in its
input map.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from leak_atlas import BadInput
from leak_atlas.models.atm import mlp
from leak_atlas.models.net import Net, assembled
from leak_atlas.recipe import Model

LAYERS, HEADS, RATIO = 2, 4, 4


def here(x: Tensor) -> Tensor:
    """True where a text `(B, tokens, channels)` has not ended: `(B, tokens)`."""
    return (x != 0).any(dim=-1)


def attended(
    qkv: Tensor,
    heads: int,
    mask: Tensor | None = None,
    drop: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Self-attention in several heads, `(B, tokens, channels)`: of queries, keys and values `qkv
    (B, tokens, 3 channels)`.

    `mask (B, tokens)` is True for the tokens to attend to; `drop` is the dropout of the weights.
    Written out, because torch's fused kernels sum in no fixed order on CUDA and their operations
    are not counted, and its plain kernel is slower at few tokens.
    """
    by_head = qkv.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    q, k, v = by_head.unbind()  # (B, heads, tokens, channels / heads) each
    scaled = q * q.shape[-1] ** -0.5
    match = scaled @ k.transpose(-2, -1)
    if mask is not None:
        # Finite, because -inf would give NaN for a text without words.
        lowest = torch.finfo(match.dtype).min
        match = match.masked_fill(~mask[:, None, None], lowest)
    weights = match.softmax(dim=-1)
    if drop is not None:
        weights = drop(weights)
    return (weights @ v).transpose(1, 2).flatten(2)


class Attention(nn.Module):
    """Self-attention with the maps before and behind it."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(channels, 3 * channels, bias=False)
        self.project = nn.Linear(channels, channels)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.project(attended(self.qkv(x), self.heads, mask))


class Block(nn.Module):
    """Attention over the tokens, then an MLP over the channels, each after a LayerNorm and with a
    shortcut.

    `ragged`: whether texts may end before the last token.
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        inner: int,
        ragged: bool = False,
    ) -> None:
        super().__init__()
        self.ragged = ragged
        self.norm1 = nn.LayerNorm(channels)
        self.attention = Attention(channels, heads)
        self.norm2 = nn.LayerNorm(channels)
        self.mlp = mlp(channels, inner, channels)

    def forward(self, x: Tensor) -> Tensor:
        mask = here(x) if self.ragged else None
        x = x + self.attention(self.norm1(x), mask)
        x = x + self.mlp(self.norm2(x))
        return x if mask is None else x * mask[..., None]


class Stem(nn.Module):
    """Words `(B, tokens)` as vectors, with a learnt vector of each place added; 0 is no word."""

    def __init__(
        self,
        words: int,
        length: int,
        channels: int,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, channels)
        self.positions = nn.Parameter(torch.empty(length, channels))

    def forward(self, x: Tensor) -> Tensor:
        vectors = self.embedding(x) + self.positions[: x.shape[1]]
        is_word = (x != 0)[..., None]
        return vectors * is_word


class Head(nn.Module):
    """LayerNorm, mean over a text's words and a linear layer."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        mask = here(x)[..., None]
        total = (self.norm(x) * mask).sum(dim=1)
        words = mask.sum(dim=1).clamp(min=1)
        return self.fc(total / words)


def transformer(
    model: Model,
    words: int,
    classes: int,
    length: int,
) -> Net:
    """Stem, two stages of a block each with 4 heads and an MLP of four times the width, head; no
    dropout.

    For a vocabulary of `words` and texts of at most `length`. The papers give no sizes of their
    text transformer; these are ours. Embeddings and positions are normal with 0.02, the rest is the
    default of torch. Raises BadInput if the heads do not divide the width.
    """
    if model.width % HEADS:
        raise BadInput(
            f"a transformer's width is a multiple of its {HEADS} heads, not {model.width}"
        )
    stem = Stem(words, length, model.width)
    stages = [Block(model.width, HEADS, RATIO * model.width, ragged=True) for _ in range(LAYERS)]
    net = assembled(stem, stages, Head(model.width, classes))
    for tensor in stem.parameters():
        nn.init.normal_(tensor, std=0.02)
    return net
