"""What does not fit together in the audit of a user's model.

One line names all of it, before anything is trained.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from textwrap import shorten
from typing import TYPE_CHECKING

from leak_atlas import LINE, BadInput, typed
from leak_atlas.engine import files
from leak_atlas.recipe import Model, Setup
from leak_atlas.recipe.steps import readable

if TYPE_CHECKING:
    from torch import Tensor, nn

# How files of torch.save begin: zip files, and pickles of before 2020.
PICKLED = b"PK\x03\x04", b"\x80"
SAMPLES = 2  # on which a module is tried: the fewest that batch normalisation takes


def refuse_misfits(setup: Setup, file: str | Path | None = None) -> None:
    """Compares the design, the module and its stages, the data set, and a file of weights.

    BadInput, which names all that does not fit. Without a `file` all but the weights are compared.
    """
    wrong = [*_design_misfits(setup), *_model_misfits(setup, file)]
    if wrong:
        raise BadInput(in_one_line(wrong))


def in_one_line(wrong: list[str]) -> str:
    """All misfits, numbered. If they are longer than a message may be, the longest are cut."""
    if len(wrong) == 1:
        return wrong[0]
    start = f"{len(wrong)} misfits:"
    room = (LINE - len(start)) // len(wrong) - len(" (1) ;")
    spare = sum(max(0, room - len(misfit)) for misfit in wrong)
    long = sum(len(misfit) > room for misfit in wrong)
    longest = room + spare // max(1, long)
    cut = [shorten(misfit, longest, placeholder=" ...") for misfit in wrong]
    numbered = [f"({number}) {misfit}" for number, misfit in enumerate(cut, 1)]
    return f"{start} {'; '.join(numbered)}"


def read_weights(file: str | Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file.

    BadInput where it is none; of a pickle it names the command that makes one.
    """
    from leak_atlas.training import imported

    path = Path(file).expanduser().resolve()
    with open(files.regular(path), "rb") as opened:
        start = opened.read(9)
    # A safetensors file begins with eight bytes of size, which may look like a pickle, and a "{".
    if start.startswith(PICKLED) and not start.endswith(b"{"):
        raise BadInput(
            f"{file} is a pickle, and to read one may run what is in it; "
            f"make a safetensors file of its tensors: {typed(f'leak-atlas model {quote(str(file))}')}"
        )
    return imported.read(path)


def _design_misfits(setup: Setup) -> list[str]:
    try:
        setup.design.check(*setup.data.parts)
    except BadInput as error:
        return [str(error)]
    return []


def _model_misfits(setup: Setup, file: str | Path | None) -> list[str]:
    """Of the architecture with the data, and of the weights with the architecture."""
    wrong: list[str] = []
    state: dict[str, Tensor] | None = None
    try:
        readable(setup.data, setup.model)
        module = _module(setup)
        state = dict(module.state_dict())
        wrong += _call_misfits(module, setup)
    except BadInput as error:
        wrong.append(str(error))
    return wrong + (_weight_misfits(file, state, setup) if file else [])


def _module(setup: Setup) -> nn.Module:
    """The module that the user's code makes for the data, or the library's own network."""
    import torch

    from leak_atlas.models import build, network

    model, data = setup.model, setup.data
    shape = data.channels, data.classes
    if isinstance(model, Model):
        return build(model, *shape, 0, data.size)
    with torch.random.fork_rng(devices=()):
        try:
            module = network(model, *shape, data.size)
        except BadInput:
            raise
        except Exception as error:  # the user's code may raise anything
            needs = f"{shape[0]} channels, {shape[1]} classes and size {data.size}"
            why = f"{type(error).__name__}: {error}"
            raise BadInput(f"{model.description} cannot be built for {needs}: {why}") from error
    if not isinstance(module, torch.nn.Module):
        raise BadInput(f"{model.description} takes a torch.nn.Module, not {type(module).__name__}")
    return module


def _call_misfits(module: nn.Module, setup: Setup) -> list[str]:
    """Of the stages and of what the module answers, on two samples of zeros."""
    import torch

    from leak_atlas.models import blank, own

    if isinstance(setup.model, Model):
        return []
    data = setup.data
    sample = blank(setup.model, data.channels, data.size)
    x = torch.zeros_like(sample.expand(SAMPLES, *sample.shape[1:]), device="cpu")
    with torch.random.fork_rng(devices=()):
        return own.misfits(module, setup.model.stages, setup.model.description, x, data.classes)


def _weight_misfits(
    file: str | Path,
    state: dict[str, Tensor] | None,
    setup: Setup,
) -> list[str]:
    """Of the weights with a network's own state; without one only whether the file can be read."""
    from leak_atlas.training import imported

    try:
        weights = read_weights(file)
    except BadInput as error:
        return [str(error)]
    return (
        imported.misfits(weights, state, setup.model.description, Path(file).name) if state else []
    )
