"""Your own weights: a safetensors file becomes a state, as a training of the library does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shlex import quote

from lib import BadInput, files, paths, typed
from lib.recipe import Brought, Setup, model_seed

SUFFIX = ".safetensors"
PICKLED = b"PK\x03\x04", b"\x80"  # how files of torch.save begin: zip files, and pickles of before 2020


def bring(file: str | Path, setup: Setup, row: int = 0) -> Brought:
    """The weights of a safetensors file as a state of `setup.model`, which was trained as row `row` of the design.

    It is signalled, scored, attacked, edited and trained on as any state is. Raises BadInput where the file is a
    pickle or no safetensors file, and where its tensors do not fit the architecture.
    """
    from lib.training import brought

    path = files.regular(Path(file).expanduser()).resolve()
    with open(path, "rb") as opened:
        start = opened.read(9)
    if start.startswith(PICKLED) and not start.endswith(b"{"):  # which follows a safetensors file's eight bytes of size
        raise BadInput(
            f"{file} is a pickle, and to read one may run what is in it; "
            f"make a safetensors file of its tensors: {typed(f'lib.own {quote(str(file))}')}"
        )
    brought.fitted(brought.read(path), setup.model, setup.data, file)
    what = setup.data, setup.design, row, setup.model, brought.digest(path)
    return Brought(*what, model_seed(setup.seed, row), setup.precision, str(path))


def example(setup: Setup) -> Path:
    """A file of weights to try: the setup's model, trained by plain PyTorch on row 0's members, in seconds; kept."""
    import torch
    from safetensors.torch import save_file

    from lib.data.augmentation import plain
    from lib.data.designs import Role
    from lib.subject import Subject

    own = Subject(replace(setup.trained()[0].training, seed=model_seed(setup.seed, 9999)))
    path = paths.outputs() / "own" / f"example-{own.training.key[:12]}{SUFFIX}"
    if path.is_file():
        return path
    net, members, dice = own.initial(), own.samples(Role.MEMBER), torch.Generator().manual_seed(0)
    step = torch.optim.Adam(net.parameters(), lr=0.005)
    for _ in range(setup.schedule.epochs):
        for rows in members[torch.randperm(len(members), generator=dice)].to(own.data.device).split(50):
            step.zero_grad()
            torch.nn.functional.cross_entropy(net(plain(own.data, rows)), own.data.labels[rows]).backward()
            step.step()
    files.folder(path.parent, "LEAK_ATLAS_OUTPUTS moves it")
    with files.whole(path) as partial:
        save_file(net.state_dict(), partial)
    return path
