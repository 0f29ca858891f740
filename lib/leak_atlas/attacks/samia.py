"""The net of SAMIA (Yuan & Zhang 2022): self-attention over the classes. `networks` trains it."""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leak_atlas.attacks.networks import build
from leak_atlas.models.transformer import attended
from leak_atlas.recipe import SAMIA

HEADS = 4
CHUNK = 1000  # samples in one forward pass of evaluation: memory


class Dropout(nn.Module):
    """Dropout by random bytes, eight a draw: torch's own dropout takes a third of a step here.

    The dropout rate is 51 / 256 = .199 instead of the published .2.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        words = -(-x.numel() // 8)
        draws = torch.empty(words, dtype=torch.int64, device=x.device)
        draws.random_(-(2**63), None)
        values = draws.view(torch.uint8)[: x.numel()]
        kept = values.view(x.shape) >= 51
        return x * (kept * (256 / 205))


class Encoder(nn.Module):
    """torch's TransformerEncoderLayer, written out: attention over all tokens, then two linear
    maps, with a LayerNorm after each.

    With this class's dropout a step takes 26, 73, 365 ms for 10, 30, 100 classes; torch's layer
    takes 37, 118, 618 ms. The attention's weights and their initialisation are those of torch's
    `MultiheadAttention`: the published code initialises only modules of class "Linear" again, and
    the two maps of torch's attention have other classes. The output map of 64 channels has an RMS
    of .072 (Xavier: .125).
    """

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(channels, HEADS)
        self.norm1 = nn.LayerNorm(channels)
        self.up = nn.Linear(channels, inner)
        self.down = nn.Linear(inner, channels)
        self.norm2 = nn.LayerNorm(channels)
        self.drop = Dropout()

    def forward(self, x: Tensor) -> Tensor:
        """Tokens `(N, T, channels)` to tokens of the same shape."""
        maps = self.attention
        qkv = F.linear(x, maps.in_proj_weight, maps.in_proj_bias)
        joined = attended(qkv, HEADS, drop=self.drop)
        attention = self.drop(maps.out_proj(joined))
        x = self.norm1(x + attention)
        hidden = self.drop(F.gelu(self.up(x)))
        out = self.drop(self.down(hidden))
        return self.norm2(x + out)


class Net(nn.Module):
    """Maps the inputs of C classes `(N, inputs C)` to one logit `(N, 1)`: that of "member" minus
    that of "non-member".
    """

    def __init__(self, attacker: SAMIA, classes: int) -> None:
        super().__init__()
        width, inputs = attacker.WIDTH, len(attacker.input_names)
        self.norm = nn.BatchNorm1d(inputs * classes)
        self.tokens = nn.Unflatten(1, (inputs, classes))
        self.embed = nn.Linear(inputs, width)
        # As in torch's TransformerEncoder, layers are copies of one layer: weights that `_xavier`
        # does not draw again are the same in all layers at first.
        layer = Encoder(width, attacker.INNER)
        copies = [copy.deepcopy(layer) for _ in range(attacker.LAYERS)]
        self.layers = nn.Sequential(*copies)
        self.judge = nn.Sequential(
            nn.Flatten(),
            nn.Linear(width * classes, width),
            nn.ReLU(),
            nn.Linear(width, 2),
        )

    def forward(self, x: Tensor) -> Tensor:
        if not self.training and len(x) > CHUNK:
            chunks = [self(rows) for rows in x.split(CHUNK)]
            return torch.cat(chunks)
        inputs = self.tokens(self.norm(x))
        tokens = inputs.transpose(1, 2)  # one for each class: (N, C, inputs)
        embedded = F.gelu(self.embed(tokens))
        logits = self.judge(self.layers(embedded))
        # The binary cross entropy of the difference is the cross entropy of both logits.
        return logits[:, 1:] - logits[:, :1]


@build.register(SAMIA)
def _(attacker: SAMIA, classes: int) -> nn.Module:
    return Net(attacker, classes)
