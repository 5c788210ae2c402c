"""`acf domains`: what there is to learn from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from acf.cli.names import DOMAINS
from acf.domains import REGISTRY, make
from acf.errors import AcfError
from acf.registry import own_part


@dataclass(frozen=True)
class Domains:
    """List the domains, or draw one: `acf domains taxi --out taxi.png`."""

    name: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(help=f"Domain to draw: {DOMAINS}.")] = None
    out: Path | None = None
    """Where the contact sheet of random states goes [default: NAME.png]."""
    start: str | None = None
    """Start distribution to draw from [default: the domain's last one]."""
    seed: int = 0
    """Seed of the random states."""

    def run(self) -> None:
        from acf.terminal import console

        if self.name is None:
            console.print(_overview())
            console.print("Look at one with [bold]acf domains taxi --out taxi.png[/]")
            return
        from acf.report.sheet import contact_sheet

        domain = make(self.name)
        own = own_part(self.name)
        out = self.out or Path(f"{own}.png")
        if out.suffix != ".png":
            raise AcfError(f"expected the name of a PNG file as --out, such as {own}.png, got {out}")
        contact_sheet(domain, out, start=self.start or domain.starts[-1], seed=self.seed)
        console.print(f"wrote {out}: random states of {self.name} with their factors", soft_wrap=True)
        console.print(f"Collect transitions with [bold]acf collect {self.name} --out data/{own}[/]", soft_wrap=True)


def _overview():
    from acf.terminal import table

    rows = table("domain", "what", "actions", "controllable (and other) factors", "starts")
    for name in REGISTRY.names():
        domain = make(name)
        named = zip(domain.factor_names, domain.controllable, strict=True)
        rows.add_row(
            name,
            domain.summary,
            str(domain.n_actions),
            " ".join(name if ours else f"({name})" for name, ours in named),
            " ".join(domain.starts),
        )
    return rows
