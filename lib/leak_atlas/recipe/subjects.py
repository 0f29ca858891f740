"""What an experiment is about: data, model, schedule."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, ClassVar, Literal

from leak_atlas import BadInput
from leak_atlas.recipe import registry
from leak_atlas.recipe.core import (
    Amount,
    Positive,
    Recipe,
    Record,
    Whole,
    Within,
    field_for,
    first_inapplicable,
)

__all__ = ["Architecture", "Augment", "Data", "Model", "Schedule"]

Precision = Literal["fp32", "bf16"]  # of the trainings
BOTTLENECKS = ("resnet50", "resnet101", "resnet152")  # a block has a quarter of its channels inside
NORMED = ("resnet", "vgg", "densenet", "wrn")  # architectures of convolutions with norms


class Data(Recipe):
    """A data set by name; its pinned digest enters the key."""

    name: str = "fashion-mnist-small"
    # side of the image after area resize; None leaves it as it is
    pixels: Positive | None = field_for("images", default=None)
    # of the vocabulary, padding (0) and unknown ones (1) included
    words: Annotated[int, Within(3)] = field_for("text", default=10_000)
    length: Positive = field_for("text", default=64)  # words kept of each sample
    joined: bool = False  # train and test part are one pool, as SAMIA has it; no test part remains
    # labels of each part permuted among its samples: a network can only memorize them
    permuted: bool = field(default=False, metadata={"recorded": "dealt"})
    # share of the train part whose labels are replaced by those of random other classes
    mislabelled: Annotated[float, Within(0, 0.5)] = 0.0

    def verify(self) -> None:
        entry = registry.find(self.name)
        wrong = first_inapplicable(self, entry.kind)
        if wrong:
            raise BadInput(
                f"{self.name} holds {entry.kind}, not {wrong.applies_to[0]}: leave {wrong.name} out"
            )
        if self.pixels and self.pixels > entry.shape[0]:
            raise BadInput(
                f"Data.pixels cannot be {self.pixels}: images of {self.name} can be reduced to 1 "
                f"to {entry.shape[0]}"
            )

    @property
    def kind(self) -> registry.Kind:
        return registry.find(self.name).kind

    @property
    def classes(self) -> int:
        return len(registry.find(self.name).classes)

    @property
    def channels(self) -> int:
        """Channels of an image, bits of a sample, words of the vocabulary."""
        return self.words if self.kind == "text" else registry.find(self.name).shape[-1]

    @property
    def size(self) -> int:
        """Side of an image in pixels, words of a text; bits have one place."""
        if self.kind == "images":
            return self.pixels or registry.find(self.name).shape[0]
        return self.length if self.kind == "text" else 1

    @property
    def parts(self) -> tuple[int, int]:
        """Samples of the train part, of which designs draw pools, and of the test part."""
        entry = registry.find(self.name)
        return (entry.size, 0) if self.joined else (entry.train, entry.test)

    def record(self) -> Record:
        return super().record() | {"name": self.name, "digest": registry.find(self.name).digest}


class Architecture(Recipe):
    """A network by what builds it: one of the library's (`Model`), or a user's own kind.

    A user's kind is a class with its sizes as fields, and a function registered for it that makes
    the module, any `torch.nn.Module` from samples to logits (`leak_atlas.models.network`). `stages`
    names modules in it, in the order of the forward pass: features are read of what they put out.
    """

    stages: ClassVar[tuple[str, ...]] = ()  # names as in `named_modules()`
    # whether a sample's output depends on its batch, as with BatchNorm: no DP-SGD then. DP-SGD
    # takes no forward that writes into a module's output, either.
    shares_statistics: ClassVar[bool] = True
    # kinds of data that it takes: "images", "numbers", "bits", "text"
    reads: ClassVar[tuple[registry.Kind, ...]] = ("images",)

    @property
    def description(self) -> str:
        """The architecture in a word."""
        return type(self).__name__


class Model(Architecture):
    """An architecture of the library at a width. The papers' networks have width 64; `fc` has 256,
    and a WRN-k has 16 k.
    """

    name: Literal[
        "resnet10", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
        "vgg11", "vgg13", "vgg16", "vgg19",
        "densenet121",
        "wrn16", "wrn28",
        "cnn2", "cnn4", "cnn6",
        "atm-xt", "atm-t", "atm-s", "atm-b",
        "vit", "transformer", "fc",
    ] = "resnet18"  # fmt: skip  # ATM: Active Token Mixer; fc: fully connected
    # channels of stage 1 (WRN: 16 k), DenseNet: of the stem; ViT: of a head; fc: units of layer 1
    width: Positive = 64
    # 3x3 convolution, without or with 3x3/2 max-pool
    stem: Literal["conv3", "conv3-pool"] = field_for("resnet", "densenet", default="conv3")
    # 1, 2, 4: the stage-4 map is as wide as stage 3's, half, a quarter
    stage4_stride: Positive = field_for("resnet", default=2)
    # output channels of stage 4; None: eight (bottlenecks: 32) times the width
    stage4_channels: Positive | None = field_for("resnet", "vgg", "atm", default=None)
    # output channels of stage 3; None: four (16; ATM: five) times
    stage3_channels: Positive | None = field_for("resnet", "vgg", "atm", default=None)
    # ViT: side of its patches, pixels; ATM, 1, 2, 4: stride of the 7x7 patch embedding
    patch: Positive = field_for("atm", "vit", default=4)
    # of all with BatchNorm; GroupNorm shares no statistics among samples, as DP-SGD needs
    norm: Literal["batch", "group"] = field_for(*NORMED, default="batch")
    # Xavier normal, biases zero: PPB's published code, of every architecture
    init: Literal["own", "xavier"] = "own"
    # between the two convolutions of a block; the paper has 0 and .3
    dropout: Annotated[float, Within(0, 0.99)] = field_for("wrn", default=0.0)

    def verify(self) -> None:
        wrong = first_inapplicable(self, self.name)
        if wrong:
            raise BadInput(
                f"{wrong.name} belongs to the {' and '.join(wrong.applies_to)} architectures: leave "
                f"it out of a {self.name}"
            )
        if self.name in ("densenet121", "fc") and self.width % 2:
            raise BadInput(
                f"layers of a {self.name} have half its width: give an even one, not {self.width}"
            )
        channels = [self.stage3_channels, self.stage4_channels]
        if self.name in BOTTLENECKS and any(given and given < 4 for given in channels):
            raise BadInput(
                f"blocks of a {self.name} have a quarter of their stage's channels inside: give "
                "stages at least 4"
            )

    def record(self) -> Record:
        """Attention was torch's own kernel in older versions, which rounds differently."""
        attends = self.name in ("vit", "transformer")
        return super().record() | ({"attention": "written out"} if attends else {})

    @property
    def description(self) -> str:
        return self.name

    @property
    def shares_statistics(self) -> bool:  # type: ignore[override]
        """Whether it has BatchNorm."""
        return self.norm == "batch" and self.name.startswith(NORMED)

    @property
    def reads(self) -> tuple[registry.Kind, ...]:  # type: ignore[override]
        """The kinds of data that the architecture takes."""
        if self.name == "fc":
            return "bits", "numbers"
        return ("text",) if self.name == "transformer" else ("images",)


class Augment(Recipe):
    """Random crop after zero padding, random horizontal flip."""

    crop: Whole = 4  # padding, pixels
    flip: bool = True


class Schedule(Recipe):
    """Epochs, optimizer and learning rate."""

    epochs: Positive = 100
    batch: Annotated[int, Within(2)] = 128
    optimizer: Literal["sgd", "adam"] = "sgd"
    lr: Amount = 0.1
    momentum: Annotated[float, Within(0, 0.9999)] = 0.9  # of SGD
    nesterov: bool = False
    weight_decay: Amount = 5e-4  # added to the gradient (L2), under Adam too
    decay: Literal["constant", "cosine"] = "cosine"  # by the epoch
    augment: Augment | None = None
    # stop after more than this many epochs without a better dev accuracy; keep the best
    patience: Whole | None = None
    # SAM's rho (Foret et al. 2021): gradients are taken so far uphill; .05 is usual
    sharpness: Amount = 0.0

    def record(self) -> Record:
        """Without SGD's momentum under Adam, which ignores it."""
        record = super().record()
        if self.optimizer == "adam":
            record.pop("momentum", None)
            record.pop("nesterov", None)
        return record
