"""Your own weights: a safetensors file becomes a state, as a training of the library does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from leak_atlas import BadInput, typed
from leak_atlas.engine import files, paths
from leak_atlas.own.misfits import refuse_misfits
from leak_atlas.recipe import ImportedModel, Setup, model_seed

SUFFIX = ".safetensors"


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

    It is signalled, scored, attacked, edited and trained on as any state is. Raises BadInput, which
    names all misfits of weights, architecture, stages, data and design at once
    (`leak_atlas.own.misfits`).
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
