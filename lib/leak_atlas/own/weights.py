"""Your own weights: a safetensors file becomes a state, as a training of the library does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from leak_atlas import BadInput, typed
from leak_atlas.engine import files, paths
from leak_atlas.recipe import ImportedModel, Model, Setup, model_seed
from leak_atlas.recipe.steps import readable

if TYPE_CHECKING:
    from torch import Tensor, nn

SUFFIX = ".safetensors"
PICKLES = ".pt", ".pth", ".ckpt", ".pkl", ".bin"  # what torch.save writes is called
SAMPLES = 2  # on which a module is tried: the fewest that batch normalisation takes


def imported_or_example(weights: str, data: str, setup: Setup) -> ImportedModel:
    """The target of an audit: the weights of the user's file, or without one ("") those of
    `example`.

    BadInput where a file is given and no data set, for then nobody knows what the model was trained
    on.
    """
    if weights and not data:
        raise BadInput(
            f"{weights} was trained on data of yours: name them, data = 'my-set'; "
            f"{typed('leak-atlas data add my-set PATH')} adds them"
        )
    return import_model(weights or example(setup), setup)


def import_model(file: str | Path, setup: Setup, row: int = 0) -> ImportedModel:
    """The weights of a safetensors file as a state of `setup.model`, which was trained as row `row`
    of the design.

    It is signalled, scored, attacked, edited and trained on as any state is. BadInput where
    weights, architecture, stages, data and design do not fit each other (`refuse_misfits`).
    """
    from leak_atlas.training import imported

    refuse_misfits(setup, file)
    path = Path(file).expanduser().resolve()
    what = setup.data, setup.design, row, setup.model, imported.digest(path)
    return ImportedModel(*what, model_seed(setup.seed, row), setup.precision, str(path))


def example(setup: Setup) -> Path:
    """A file of weights to try: the setup's model, trained by plain PyTorch on row 0's members, in
    seconds; kept.
    """
    refuse_misfits(setup)
    import torch
    from safetensors.torch import save_file

    from leak_atlas.data.augmentation import plain
    from leak_atlas.data.designs import Role
    from leak_atlas.models.subject import Subject

    subject = Subject(replace(setup.trained()[0].training, seed=model_seed(setup.seed, 9999)))
    path = paths.outputs() / "own" / f"example-{subject.training.key[:12]}{SUFFIX}"
    if path.is_file():
        return path
    data, net, members = subject.data, subject.initial(), subject.samples(Role.MEMBER)
    dice = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    for _ in range(setup.schedule.epochs):
        order = members[torch.randperm(len(members), generator=dice)]
        for rows in order.to(data.device).split(50):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(plain(data, rows)), data.labels[rows])
            loss.backward()
            optimizer.step()
    files.folder(path.parent, "LEAK_ATLAS_OUTPUTS moves it")
    with files.whole(path) as partial:
        save_file(net.state_dict(), partial)
    return path


# ---------------------------------------------------------------- what does not fit


def refuse_misfits(setup: Setup, file: str | Path | None = None) -> None:
    """BadInput where the design, the module and its stages, the data set, and a file of weights do
    not fit each other, before anything is trained. Without a `file` all but the weights are
    compared.
    """
    from leak_atlas.training import imported

    setup.design.check(*setup.data.parts)
    readable(setup.data, setup.model)
    module = _module(setup)
    state = dict(module.state_dict())  # before the module is tried, which changes statistics
    wrong = _call_misfits(module, setup)
    if file:
        name = Path(file).name
        wrong += imported.misfits(read_weights(file), state, setup.model.description, name)
    if wrong:
        raise BadInput("; ".join(wrong))


def read_weights(file: str | Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file.

    BadInput where it is none; of a checkpoint it names the command that converts it.
    """
    from leak_atlas.training import imported

    path = Path(file).expanduser().resolve()
    if path.suffix in PICKLES and path.is_file():
        convert = typed(f"leak-atlas model {quote(str(file))}")
        raise BadInput(f"{file} is a checkpoint of PyTorch; convert it to {SUFFIX}: {convert}")
    return imported.read(path)


def _module(setup: Setup) -> nn.Module:
    """The module that the user's code makes for the data, or the library's own network."""
    import torch

    from leak_atlas.models import build, network

    model, data = setup.model, setup.data
    if isinstance(model, Model):
        return build(model, data.channels, data.classes, 0, data.size)
    with torch.random.fork_rng(devices=()):
        try:
            module = network(model, data.channels, data.classes, data.size)
        except BadInput:
            raise
        except Exception as error:  # the user's code may raise anything
            needs = f"{data.channels} channels, {data.classes} classes and size {data.size}"
            why = f"{type(error).__name__}: {error}"
            raise BadInput(f"{model.description} cannot be built for {needs}: {why}") from error
    if not isinstance(module, torch.nn.Module):
        raise BadInput(f"{model.description} takes a torch.nn.Module, not {type(module).__name__}")
    return module


def _call_misfits(module: nn.Module, setup: Setup) -> list[str]:
    """Of the stages and of what the module answers, on samples of zeros."""
    import torch

    from leak_atlas.models import blank, own

    model, data = setup.model, setup.data
    if isinstance(model, Model):
        return []
    sample = blank(model, data.channels, data.size)
    x = torch.zeros_like(sample.expand(SAMPLES, *sample.shape[1:]), device="cpu")
    with torch.random.fork_rng(devices=()):
        return own.misfits(module, model.stages, model.description, x, data.classes)
