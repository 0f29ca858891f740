"""Your own weights: a safetensors file becomes a state, as a training of the library does."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from leak_atlas import BadInput, reason, typed
from leak_atlas.engine import files
from leak_atlas.recipe import ImportedModel, Setup, State, model_seed, registry
from leak_atlas.recipe.steps import check_reads

if TYPE_CHECKING:
    from leak_atlas.models.net import Net, Tensors

SUFFIX = ".safetensors"
PICKLES = ".pt", ".pth", ".ckpt", ".pkl", ".bin"  # what torch.save writes is called
SAMPLES = 2  # on which a module is tried: the fewest that batch normalisation takes


def audited_model(weights: str, data: str, setup: Setup) -> State:
    """The target of an audit: the weights of the user's file, or without one ("") an example, which
    is trained here.

    Raises BadInput if a file is given and no data set, for then nobody knows what the model was
    trained on; and if the test part of that set was drawn here, for the model may be trained on it.
    """
    if not weights:
        refuse_misfits(setup)
        return setup.trained()[0]
    if not data:
        raise BadInput(
            f"{weights} was trained on data of yours: name them, data = 'my-set'; "
            f"{typed('leak-atlas data add my-set PATH')} adds them"
        )
    from leak_atlas.data.own import has_test_part

    if not has_test_part(registry.find(data)):
        raise BadInput(
            f"{data} has no test part of its own: a fifth of it was drawn. If your model was "
            "trained on all samples, none is a non-member. Add the set with train/ and test/, or as "
            "an .npz with x_train, y_train, x_test, y_test"
        )
    return import_model(weights, setup)


def import_model(file: str | Path, setup: Setup) -> ImportedModel:
    """The weights of a safetensors file as a state of `setup.model`, which was trained as row 0 of
    the design.

    It is signalled, scored, attacked, edited and trained on as any state is. Raises BadInput if
    weights, architecture, stages, data and design do not fit each other (`refuse_misfits`).
    """
    refuse_misfits(setup, file)
    path = Path(file).expanduser().resolve()
    return ImportedModel(
        setup.data,
        setup.design,
        0,
        setup.model,
        files.sha256(path),
        model_seed(setup.seed, 0),
        setup.precision,
        str(path),
    )


# ---------------------------------------------------------------- what does not fit


def refuse_misfits(setup: Setup, file: str | Path | None = None) -> None:
    """Raises BadInput if the design, the module and its stages, the data set, and a file of weights
    do not fit each other, before anything is trained. Without a `file` all but the weights are
    compared.
    """
    from leak_atlas.training import imported

    setup.design.check(*setup.data.parts)
    check_reads(setup.data, setup.model)
    net = _tried(setup)
    if file:
        description = setup.model.description
        given = read_weights(file)
        reasons = imported.misfits(given, net.state_dict(), description, Path(file).name)
        if reasons:
            raise BadInput("; ".join(reasons))


def read_weights(file: str | Path) -> Tensors:
    """The tensors of a safetensors file.

    Raises BadInput if it is none; of a checkpoint it names the command that converts it.
    """
    from leak_atlas.training import imported

    path = Path(file).expanduser().resolve()
    if path.suffix in PICKLES and path.is_file():
        convert = typed(f"leak-atlas model {quote(str(file))}")
        raise BadInput(f"{file} is a checkpoint of PyTorch; convert it to {SUFFIX}: {convert}")
    return imported.read(path)


def _tried(setup: Setup) -> Net:
    """The setup's network. Raises BadInput if it cannot be built, or called on samples of the data
    in training and in evaluation mode, or read at its stages.
    """
    import torch

    from leak_atlas.models import blank, build

    model = setup.model
    data = setup.data
    sample = blank(model, data.channels, data.size)
    x = torch.zeros_like(sample.expand(SAMPLES, *sample.shape[1:]), device="cpu")
    done = "built"
    try:
        with torch.random.fork_rng(devices=()), torch.no_grad():
            net = build(model, data.channels, data.classes, 0, data.size)
            done = f"called on samples {tuple(x.shape)}"
            net.train()(x)
            list(net.eval().features(x))
    except BadInput:
        raise
    except Exception as error:  # the user's code may raise anything
        raise BadInput(f"{model.description} cannot be {done}: {reason(error)}") from error
    return net
