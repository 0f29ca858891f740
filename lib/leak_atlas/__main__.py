"""The command `leak-atlas`, or `python -m leak_atlas`. A room is imported when its command runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from leak_atlas import KEPT, BadInput, NothingKept, nearest, one_line, typed
from leak_atlas.engine import paths
from leak_atlas.engine.processes import BAD, FAILED, INTERRUPTED

NAME = "leak-atlas"
QUEUES = ("slurm", "pbs", "sge", "lsf")  # those of lab.cluster
WIDE = {"max_content_width": 100}  # of help
FILE = click.Path(path_type=Path)
POSITIVE = click.IntRange(min=1)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command that the arguments (None: the shell's) name; the exit code."""
    return exit_code(partial(commands.main, arguments, NAME, standalone_mode=False))


def exit_code(work: Callable[[], int | None]) -> int:
    """Does the work of a command and returns the exit code of the process.

    A user's mistake is one line, and so is what the machine refuses (a full disk, no memory). An
    error of ours keeps its traceback.
    """
    try:
        return work() or 0
    except BadInput as error:
        why, code = str(error), BAD
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else NAME
        why, code = f"{error.format_message()} See {command} --help", BAD
    except NothingKept as stop:
        why, code = str(stop), INTERRUPTED
    except KeyboardInterrupt:
        why, code = f"interrupted; {KEPT}", INTERRUPTED
    except OSError as error:
        why, code = f"{error.filename or 'output'}: {error.strerror or error}", BAD
    except MemoryError:
        why, code = f"out of memory; {KEPT}", BAD
    print(f"leak atlas: {one_line(why)}", file=sys.stderr, flush=True)
    return code


class Commands(click.Group):
    """A group whose commands end as `exit_code` says, before click answers their errors."""

    def invoke(self, context: click.Context) -> int:
        return exit_code(partial(super().invoke, context))


@click.group(cls=Commands, invoke_without_command=True, context_settings=WIDE)
@click.pass_context
def commands(context: click.Context) -> None:
    """Where does membership leak? Reproduces five papers, and audits your own networks.

    Example: leak-atlas audit mine.npz

    Exit codes: 0; 1 where a notebook failed or --fail-above is exceeded; 2 where an input is wrong;
    130 after Ctrl-C.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


# ---------------------------------------------------------------- notebooks


@commands.command()
@click.argument("names", nargs=-1)
@click.option("--profile", default="quick", show_default=True, help="A folder of params/.")
@click.option(
    "-p",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter for all notebooks that have it. Such a run has a folder of its own.",
)
@click.option("--workers", type=POSITIVE, help="Processes on this machine.  [default: all cores]")
@click.option(
    "--scheduler",
    default="",
    envvar="DASK_SCHEDULER_ADDRESS",
    show_envvar=True,
    metavar="ADDRESS",
    help="A running Dask scheduler trains the models.",
)
@click.option(
    "--queue",
    type=click.Choice(QUEUES),
    help="Jobs of this queue train the models, as Dask's configuration describes them.",
)
@click.option("--jobs", type=POSITIVE, default=1, show_default=True, help="Jobs of the queue.")
def reproduce(**given: Any) -> int:
    """Train what is missing and execute the notebooks NAMES.

    NAMES are names of notebooks, their beginnings or shell patterns. Without them all notebooks are
    executed. Pages lie in outputs/runs/PROFILE.

    Example: leak-atlas reproduce 'weights/*' --profile smoke
    """
    return _notebooks(**given, run_it=True)


@commands.command(params=reproduce.params)
def plan(**given: Any) -> int:
    """Say what `reproduce` would train, and what that costs.

    Example: leak-atlas plan 'layers/*' --profile desk
    """
    return _notebooks(**given, run_it=False)


def _notebooks(
    names: tuple[str, ...],
    profile: str,
    changes: tuple[str, ...],
    run_it: bool,
    queue: str | None,
    **place: Any,
) -> int:
    from leak_atlas.lab.cluster import Where
    from leak_atlas.lab.declare import read_parameters
    from leak_atlas.report import batch

    where = Where(queue=queue or "", **place)
    return batch.reproduce(names, profile, read_parameters(changes), where, run_it)


@commands.command()
@click.argument("profile")
def report(profile: str) -> None:
    """Publish the run of a profile in outputs/reports.

    The tables in docs/findings.md and docs/printed_numbers.md are refreshed too, unless the run
    changes parameters by -p, or LEAK_ATLAS_OUTPUTS moves the reports.

    Example: leak-atlas report quick
    """
    from leak_atlas.report import contents, printed

    if profile == contents.OWN:
        raise BadInput("audits of one's own are not published: read outputs/runs/own")
    runs = [path.name for path in paths.runs("").glob("*") if path.name != contents.OWN]
    if profile not in runs:
        makes = f"; `{typed('leak-atlas reproduce')}` makes one"
        hint = nearest(profile, runs) if runs else makes
        raise BadInput(f"there is no run of profile '{profile}'{hint}")
    folder = paths.runs(profile)
    contents.index(folder)
    print(f"index: {folder / 'index.html'}")
    names = contents.publish(folder, paths.reports())
    print(f"{len(names)} reports published: {paths.reports() / profile / 'index.md'}")
    # Documents of the repository list its own reports alone.
    own_reports = paths.ROOT / "outputs" / "reports"
    if "+" in profile or paths.reports().resolve() != own_reports.resolve():
        return
    docs = paths.ROOT / "docs"
    contents.refresh(docs / "findings.md", contents.results_table(paths.reports()))
    profiles = [each for each in contents.published(paths.reports()) if "+" not in each["profile"]]
    contents.refresh(docs / "printed_numbers.md", printed.gathered(profiles, paths.reports()))
    print("docs/findings.md and docs/printed_numbers.md are refreshed")


@commands.command()
def site() -> None:
    """Make pages of all published reports in outputs/site.

    They are read without a server.

    Example: leak-atlas site
    """
    from leak_atlas.report import contents

    place = paths.outputs() / "site"
    pages = contents.site(paths.reports(), place)
    print(f"{len(pages)} pages; open {place / 'index.html'}")


@commands.command()
def app() -> None:
    """Show the explorers in a browser, without code.

    It runs on this machine until Ctrl-C. It needs Voila, which `make app` installs.

    Example: leak-atlas app
    """
    from importlib.util import find_spec

    from leak_atlas.explore import app

    if not find_spec("voila"):
        raise BadInput("the app needs Voila: pip install voila, or make app")
    place = paths.outputs() / "app"
    environment = os.environ | app.prepare(place)
    voila = [sys.executable, "-m", "voila", "--token", "--Voila.ip=127.0.0.1", str(place)]
    os.execve(sys.executable, voila, environment)


# ---------------------------------------------------------------- what users bring


@commands.command()
@click.argument("file", type=FILE)
@click.option("--name", default="", help="Name of the report.  [default: the file's]")
@click.option("--example", is_flag=True, help="Write FILE instead: networks trained in seconds.")
@click.option(
    "--fail-above",
    multiple=True,
    metavar="LIMIT",
    help="auc=0.6 or, for TPR at an FPR, tpr@0.01=0.05; may be repeated. Exit code 1 where the"
    " estimate of some attack is larger (not its interval); 2 where it cannot be judged.",
)
def audit(file: Path, name: str, example: bool, fail_above: tuple[str, ...]) -> int:
    """Attack a model by its logits in an .npz; write a report.

    The report lies in outputs/runs/own.

    \b
    FILE has arrays of N samples, C classes, M shadow models, Z samples of a population:
      target              (N, C)      logits of the model under audit, floating point
      labels              (N,)        true classes, whole numbers 0 .. C-1
      member              (N,)        Boolean: did the target train on the sample?
      shadows             (M, N, C)   logits of shadow models on the same samples
      in_shadow           (M, N)      Boolean: did that shadow train on the sample?
      population          (Z, C)      the target's logits on samples that no model trained on
      population_labels   (Z,)        true classes of these
      population_shadows  (M, Z, C)   the shadows' logits on these

    target, labels and member are needed. With shadows and in_shadow come LiRA, BASE and an attack
    network, with the population RMIA too. In place of (N, C) stands (N, A, C) of A queries a
    sample, the plain one first.

    Example: leak-atlas audit mine.npz --fail-above auc=0.6
    """
    from leak_atlas.engine import files
    from leak_atlas.own import findings, limits, logits
    from leak_atlas.report import batch

    allowed = [limits.limit(text) for text in fail_above]
    if example:
        print(_example(file))
        return 0
    scores = logits.place(name or file.stem, file)
    page = scores.with_name(scores.name.removesuffix(".csv"))
    arrays = logits.read(file)  # refuses a faulty file before anything is written
    samples = f"{arrays.member.sum():,} members, {(~arrays.member).sum():,} non-members"
    print(f"{file}: {samples}, {arrays.models} shadow models", flush=True)
    rates = {*findings.RATES, *(each.fpr for each in allowed if each.fpr)}
    given = {"file": str(file.resolve()), "name": page.name, "rates": sorted(rates, reverse=True)}
    print(_in_short(batch.audit(page, given)))
    kinds = {"page": "html", "notebook": "ipynb", "scores": "csv", "numbers": "json"}
    for what, suffix in kinds.items():
        print(f"  {what:<9} {page}.{suffix}")
    numbers = page.with_name(f"{page.name}.json")
    summary = files.read_json(numbers, dict[str, Any])
    above = limits.exceeded(summary, allowed)
    if above:
        print(f"leak atlas: above the limit: {'; '.join(above)}", file=sys.stderr, flush=True)
    return FAILED if above else 0


def _example(file: Path) -> str:
    """Writes arrays of small networks to a new .npz and says how to audit it."""
    from shlex import quote

    from leak_atlas.own import logits

    if file.suffix != ".npz":
        raise BadInput(f"--example writes an .npz: {file} has to end in .npz")
    if file.exists():
        raise BadInput(f"{file} is there already: audit it, or name another")
    logits.save(file, logits.example())
    return f"{file} is ready; audit it: {typed(f'leak-atlas audit {quote(str(file))}')}"


def _in_short(notebook: Any) -> str:
    """What the report says in short: the first output of its notebook in words."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "text/markdown" in output.get("data", {}):
                return str(output["data"]["text/plain"])
    return ""


@commands.command()
@click.argument("file", type=FILE)
@click.option("--out", type=FILE, help="The file to write.  [default: FILE's name, .safetensors]")
def model(file: Path, out: Path | None) -> None:
    """Convert a PyTorch checkpoint to a file that an audit reads.

    FILE is what torch.save wrote of a state dict. Nothing in it is run. The notebook
    own/audit_my_model audits the model.

    Example: leak-atlas model mine.pt
    """
    from leak_atlas.own import checkpoints

    print(checkpoints.convert(file, out))


# ---------------------------------------------------------------- data sets


@commands.group(invoke_without_command=True)
@click.pass_context
def data(context: click.Context) -> None:
    """List the data sets, get one, or add one of your own.

    Example: leak-atlas data get cifar10
    """
    if context.invoked_subcommand is None:
        context.invoke(list_)


@data.command("list")
def list_() -> None:
    """Show each data set, whether it is there and how to get it (the default).

    Example: leak-atlas data list
    """
    from leak_atlas.data.listing import listing

    print(listing())


@data.command()
@click.argument("names", nargs=-1, required=True)
def get(names: tuple[str, ...]) -> None:
    """Download or take over data sets, check and prepare them.

    Example: leak-atlas data get mnist cifar10
    """
    from leak_atlas.data import readers
    from leak_atlas.recipe import registry

    for name in names:
        registry.find(name)
    for name in names:
        print(f"{name} is ready: {readers.prepare(name)}", flush=True)


def values(text: str) -> tuple[float, ...]:
    """Numbers with a comma between each two."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError as error:
        raise click.UsageError(f"Numbers are needed, 0.5,0.5,0.5, not {text!r}.") from error


@data.command()
@click.argument("name")
@click.argument("path", type=FILE)
@click.option(
    "--label",
    default="label",
    show_default=True,
    help="A .csv's column of classes, or its place if there is no header.",
)
@click.option("--seed", default=0, show_default=True, help="Draws the test part if there is none.")
@click.option(
    "--size",
    type=int,
    metavar="S",
    help="Resize each image's shorter side to S pixels and crop the middle, S x S.",
)
@click.option(
    "--mean",
    type=values,
    metavar="M,M,M",
    help="What a model subtracts from pixel / 255, a value a channel.  [default: the train part's]",
)
@click.option(
    "--std",
    type=values,
    metavar="S,S,S",
    help="What it then divides by, a value a channel.  [default: the train part's]",
)
def add(name: str, path: Path, **given: Any) -> None:
    """Make a data set NAME of your own from PATH.

    \b
    PATH is one of
      table.csv    numbers or bits, a sample a line; the column `label` has the classes
      arrays.npz   `x` and `y`, or `x_train`, `y_train`, `x_test`, `y_test`: x is uint8
                   images (N, H, H) or (N, H, H, 3), or rows of numbers (N, D);
                   y (N,) whole numbers or names
      pictures/    a folder of pictures for each class, or `train/` and `test/` with such

    Example: leak-atlas data add mine pictures --size 32
    """
    from leak_atlas.data import own
    from leak_atlas.data.listing import added

    options = {key: value for key, value in given.items() if value is not None}
    print(added(own.add(name, path, **options)))


if __name__ == "__main__":
    sys.exit(main())
