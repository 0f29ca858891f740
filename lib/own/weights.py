"""Your own weights. `python -m lib.own.weights net.pt` makes a safetensors file of a PyTorch checkpoint."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lib import BadInput, files, paths, reason, typed
from lib.command import Parser, command
from lib.recipe import Brought, Setup, model_seed

SUFFIX = ".safetensors"
PICKLED = b"PK\x03\x04", b"\x80"  # how files of torch.save begin: zip files, and pickles of before 2020
NESTED = "state_dict", "model_state_dict", "model", "net", "weights"  # under which checkpoints keep the weights


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
            f"make a safetensors file of its tensors: {typed(f'lib.own.weights {file}')}"
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
    save_file(net.state_dict(), partial := path.with_name(f".{path.name}.{os.getpid()}"))
    partial.replace(path)
    return path


def tensors(found: Any) -> dict[str, Any]:
    """The tensors of a checkpoint by name: it is a state dict, or holds one. BadInput where it is neither."""
    from torch import Tensor

    for name in NESTED:
        if isinstance(found, Mapping) and isinstance(found.get(name), Mapping):
            found = found[name]
    if not isinstance(found, Mapping) or not found or not all(isinstance(each, Tensor) for each in found.values()):
        held = f"{', '.join(map(str, [*found][:5]))}" if isinstance(found, Mapping) else type(found).__name__
        raise BadInput(f"it is no state dict, it holds {held}; write torch.save(net.state_dict(), ...)")
    parallel = all(name.startswith("module.") for name in found)  # of DataParallel
    return {name.removeprefix("module.") if parallel else name: each for name, each in found.items()}


@command
def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog=typed("lib.own.weights"), description=__doc__)
    parser.add_argument("file", type=Path, help="what torch.save has written of a state dict; nothing in it is run")
    parser.add_argument("--out", type=Path, help=f"the file to write (the same name, ending in {SUFFIX})")
    chosen = parser.parse_args(arguments)
    out = chosen.out or chosen.file.with_suffix(SUFFIX)
    if out.exists():
        raise BadInput(f"{out} is there already; remove it, or name another --out")
    import torch
    from safetensors.torch import save

    try:
        found = torch.load(files.regular(chosen.file), map_location="cpu", weights_only=True)
        weights = {name: each.detach().clone().contiguous() for name, each in tensors(found).items()}
    except BadInput as error:
        raise BadInput(f"{chosen.file}: {error}") from error
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError) as error:
        raise BadInput(
            f"{chosen.file} holds more than tensors, or is damaged, and is not read ({reason(error)[:60]}); where the "
            "model is, write torch.save(net.state_dict(), ...)"
        ) from error
    partial = out.with_name(f".{out.name}")
    partial.write_bytes(save(weights))
    partial.replace(out)
    print(f"{out} is ready: {len(weights)} tensors, {sum(each.numel() for each in weights.values()):,} numbers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
