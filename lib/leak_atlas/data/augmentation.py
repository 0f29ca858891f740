"""Random crop and flip by index arithmetic on the device, and the seeded tables that say which."""

from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from leak_atlas import BadInput
from leak_atlas.data.resident import Resident
from leak_atlas.recipe import Augment


class Tables(NamedTuple):
    """The randomness of one epoch over n samples, each `(n,)` on the CPU.

    `perm` int64 is the order; sample `perm[i]` comes i-th, cut from its padded image at row `dy[i]`
    and column `dx[i]` (int64, 0 .. 2 crop) and mirrored where `flip[i]` (bool).
    """

    perm: Tensor
    dy: Tensor
    dx: Tensor
    flip: Tensor


def generator(seed: int, epoch: int, stream: int = 0) -> torch.Generator:
    """A CPU generator for one epoch of a training; stream 0 is that of `tables`, a defence's own
    draws have others.
    """
    key = (stream,) if stream else ()
    seeds = np.random.SeedSequence([seed, epoch], spawn_key=key)
    state = seeds.generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]))


def tables(seed: int, epoch: int, n: int, augment: Augment | None, stream: int = 0) -> Tables:
    """The tables of one epoch: they depend on the arguments alone, not on who else draws."""
    draws = generator(seed, epoch, stream)
    crop = augment.crop if augment else 0
    flips = augment.flip if augment else False
    perm = torch.randperm(n, generator=draws)
    offsets = torch.randint(2 * crop + 1, (2, n), generator=draws)
    flip = torch.zeros(n, dtype=torch.bool)
    if flips:
        flip = torch.rand(n, generator=draws) < 0.5
    return Tables(perm, offsets[0], offsets[1], flip)


def gather(
    data: Resident, index: Tensor, dy: Tensor, dx: Tensor, flip: Tensor, crop: int
) -> Tensor:
    """Samples `index (B,)`, cropped, mirrored and normalised: `(B, channels, height, width)`
    float32, channels_last.

    Equal to torchvision's RandomCrop(size, padding=crop), RandomHorizontalFlip, ToTensor and
    Normalize on the same draws; `dy`, `dx`, `flip` as in `Tables`. All tensors lie on the data's
    device. With a crop of 0 and no flip the images come as they are (see `plain`, which is faster).
    """
    height, width, channels = data.shape
    padded = data.padded(crop)
    _, rows, columns = padded.shape[:3]
    first = (index * rows + dy) * columns + dx  # each sample's first pixel among all
    window = data.window(crop)
    place = window.index_select(0, flip.to(torch.int64))
    place.add_(first[:, None])
    every = padded.view(-1, channels)
    pixels = every.index_select(0, place.view(-1))
    return _normalised(data, pixels.view(len(index), height, width, channels))


def plain(data: Resident, index: Tensor) -> Tensor:
    """Samples `index (B,)` as a network takes them.

    Images normalised, `(B, channels, height, width)` float32, channels_last; bits and numbers `(B,
    D)` float32; words `(B, length)` int64.
    """
    x = data.samples.index_select(0, index)
    if data.pictures:
        return _normalised(data, x)
    if x.dtype in (torch.uint8, torch.float32):
        return x.float()
    return x.long()


def _normalised(data: Resident, pixels: Tensor) -> Tensor:
    # A whole row at a time: an inner loop over one to three channels would take three times as
    # long.
    scale, shift = data.row
    rows = pixels.flatten(2).to(torch.float32)
    rows.mul_(scale).sub_(shift)
    return rows.view(pixels.shape).permute(0, 3, 1, 2)


def views(n: int, crop: int = 4) -> list[tuple[int, int, bool]]:
    """Fixed views for queries, each `(dy, dx, flip)`: offsets from the middle in pixels, and
    whether it is mirrored.

    1: the plain image; 2: and its mirror image; 18: mirror x nine shifts by -crop, 0 or crop
    pixels. View 0 is the plain image. Shifted-in pixels are black, as in training. Raises BadInput
    for another `n`.
    """
    if n not in (1, 2, 18):
        raise BadInput(f"an attack queries 1, 2 or 18 views, not {n}")
    steps = (0, -crop, crop) if n == 18 else (0,)
    flips = (False,) if n == 1 else (False, True)
    return list(product(steps, steps, flips))
