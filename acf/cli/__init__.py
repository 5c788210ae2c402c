"""The `acf` command. One file a subcommand, each thin: arguments in, one library call, a few lines out.

Nothing heavy is imported before the arguments are read, so that `acf --help` answers at once.
"""

import atexit
import gc
import os
import sys
from typing import Annotated, NoReturn

import tyro
from tyro.conf import subcommand

from acf import __version__
from acf.cli.agent import Agent
from acf.cli.bench import Bench
from acf.cli.collect import Collect
from acf.cli.data import Data
from acf.cli.domains import Domains
from acf.cli.evaluate import Evaluate
from acf.cli.report import Report
from acf.cli.run import Run
from acf.cli.study import Study
from acf.cli.sweep import Sweep
from acf.cli.train import Train
from acf.errors import AcfError

Command = (
    Annotated[Run, subcommand("run")]
    | Annotated[Domains, subcommand("domains")]
    | Annotated[Collect, subcommand("collect")]
    | Annotated[Data, subcommand("data")]
    | Annotated[Train, subcommand("train")]
    | Annotated[Sweep, subcommand("sweep")]
    | Annotated[Bench, subcommand("bench")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Report, subcommand("report")]
    | Annotated[Study, subcommand("study")]
    | Annotated[Agent, subcommand("agent")]
)


def main(args: list[str] | None = None) -> None:
    if (sys.argv[1:] if args is None else args) == ["--version"]:
        print(f"acf-rl {__version__}")
        return
    command = tyro.cli(
        Command,  # pyright: ignore[reportArgumentType]
        prog="acf",
        description="Learn, from pixels, the state variables an agent can control.",
        args=args,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    from acf.terminal import show_warnings_plainly

    show_warnings_plainly()
    if os.getcwd() not in sys.path:  # noqa: PTH109 (as sys.path has it)
        sys.path.append(os.getcwd())  # noqa: PTH109
    atexit.register(gc.freeze)  # or Python spends a good part of a second on cycles in memory that goes anyway
    try:
        command.run()
    except (AcfError, OSError) as error:
        _leave(str(error), getattr(error, "exit_code", 1))
    except KeyboardInterrupt:
        _leave("interrupted", 130)


def _leave(message: str, exit_code: int) -> NoReturn:
    from rich.markup import escape

    from acf.terminal import errors

    label = "[bold red]error:[/] " if exit_code == 1 else ""  # to be asked to stop is not an error
    errors.print(f"{label}{escape(message)}", soft_wrap=True)
    sys.exit(exit_code)
