"""`python -m leak_atlas.own mine.pt`: the tensors of a PyTorch checkpoint as mine.safetensors,
which an audit reads.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leak_atlas import BadInput, typed
from leak_atlas.engine import files
from leak_atlas.engine.command import Parser, command
from leak_atlas.own.weights import SUFFIX

# under which checkpoints keep the weights
NESTED = "state_dict", "model_state_dict", "model", "net", "weights"


def tensors(found: Any) -> dict[str, Any]:
    """The tensors of a checkpoint by name: it is a state dict, or holds one. BadInput where it is
    neither.
    """
    from torch import Tensor

    for name in NESTED:
        if isinstance(found, Mapping) and isinstance(found.get(name), Mapping):
            found = found[name]
    if (
        not isinstance(found, Mapping)
        or not found
        or not all(isinstance(each, Tensor) for each in found.values())
    ):
        held = (
            f"{', '.join(map(str, [*found][:5]))}"
            if isinstance(found, Mapping)
            else type(found).__name__
        )
        raise BadInput(
            f"it is no state dict, it holds {held}; write torch.save(net.state_dict(), ...)"
        )
    return dict(found)


@command
def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog=typed("leak_atlas.own"), description=__doc__)
    parser.add_argument(
        "file", type=Path, help="what torch.save has written of a state dict; nothing in it is run"
    )
    parser.add_argument(
        "--out", type=Path, help=f"the file to write (the same name, ending in {SUFFIX})"
    )
    chosen = parser.parse_args(arguments)
    out = chosen.out or chosen.file.with_suffix(SUFFIX)
    if out.exists():
        raise BadInput(f"{out} is there already; name another --out")
    file = files.regular(chosen.file)
    import torch
    from safetensors.torch import save

    try:
        found = torch.load(file, map_location="cpu", weights_only=True)
        weights = {
            name: each.detach().clone().contiguous() for name, each in tensors(found).items()
        }
        blob = save(weights)
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from error
    except Exception as error:  # a damaged file fails anywhere in torch's reader
        raise BadInput(
            f"{file} holds more than tensors, or is damaged, and is not read; where the model is, write "
            "torch.save(net.state_dict(), ...)"
        ) from error
    with files.whole(out) as partial:
        partial.write_bytes(blob)
    print(
        f"{out} is ready: {len(weights)} tensors, {sum(each.numel() for each in weights.values()):,} numbers"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
