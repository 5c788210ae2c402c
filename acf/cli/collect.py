"""`acf collect`: transitions of a domain or an environment, on disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from acf.cli.names import DOMAINS


@dataclass(frozen=True)
class Collect:
    """Collect transitions of a domain, or of your environment, into a directory; the same arguments again reuse it."""

    domain: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(help=f"Domain: {DOMAINS}. Or an environment: gym:ID, minari:ID, MODULE:NAME of your own."),
    ]
    out: Path | None = None
    """Directory to write [default: data/DOMAIN]."""
    transitions: int = 150_000
    """How many transitions."""
    seed: int = 0
    """Seed of everything random."""
    start: str | None = None
    """Start distribution of a domain; `acf domains` lists them [default: balanced]."""
    horizon: int | None = None
    """Steps before the next start [default: 10 for a domain, the environment's own episodes]."""
    policy: str = "uniform"
    """Domain: uniform or skewed; environment: random, MODULE:NAME of a function, or sb3:PPO:FILE."""
    noop: str = "auto"
    """Environment: action that does nothing, by name or number; none [default: the one called so]."""
    size: int | None = None
    """Environment: height and width of the frames [default: as they come]."""
    gray: bool = False
    """Environment: gray frames."""
    stack: int = 1
    """Environment: how many consecutive pictures a frame holds as channels."""
    factors: str | None = None
    """Environment: true state variables, info:KEY, or MODULE:FUNCTION of the environment."""
    render: bool = False
    """Environment: take what it renders; without asking where its observation is no picture."""

    def run(self) -> None:
        from acf.data import collect
        from acf.registry import own_part
        from acf.terminal import console, counting

        out = self.out or Path("data") / own_part(self.domain).replace("/", "-")
        there = (out / "meta.json").exists()
        with counting(f"collecting {self.domain}") as progress:
            data = collect(
                self.domain,
                self.transitions,
                seed=self.seed,
                start=self.start,
                horizon=self.horizon,
                policy=self.policy,
                noop=self.noop,
                size=self.size,
                gray=self.gray,
                stack=self.stack,
                factors=self.factors,
                render=self.render,
                out=out,
                progress=progress,
            )
        size = f"{len(data):,} transitions, {len(data.frames):,} frames, {data.frames.nbytes / 2**20:,.0f} MiB"
        console.print(f"{'reused' if there else 'wrote'} {out}: {size}", soft_wrap=True)
        if data.source.get("render") and not self.render:
            console.print("Its observation is no picture: the frames are what it renders", soft_wrap=True)
        console.print(f"Look into it with [bold]acf data {out}[/]", soft_wrap=True)
