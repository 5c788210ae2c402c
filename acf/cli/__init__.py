"""The `acf` command. One file a subcommand, each thin: arguments in, one library call, a few lines out.

Nothing heavy is imported before the arguments are read, so that `acf --help` answers at once.
"""

import sys
from typing import Annotated

import tyro
from tyro.conf import subcommand

from acf.cli.collect import Collect
from acf.cli.data import Data
from acf.cli.domains import Domains
from acf.cli.run import Run
from acf.cli.train import Train
from acf.errors import AcfError

Command = (
    Annotated[Run, subcommand("run")]
    | Annotated[Domains, subcommand("domains")]
    | Annotated[Collect, subcommand("collect")]
    | Annotated[Data, subcommand("data")]
    | Annotated[Train, subcommand("train")]
)


def main(args: list[str] | None = None) -> None:
    command = tyro.cli(
        Command,  # pyright: ignore[reportArgumentType]
        prog="acf",
        description="Learn, from pixels, the state variables an agent can control.",
        args=args,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    try:
        command.run()
    except (AcfError, OSError) as error:
        from acf.terminal import errors

        errors.print(f"[bold red]error:[/] {_escape(str(error))}", soft_wrap=True)
        sys.exit(1)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
