"""`acf collect`: transitions of a domain, on disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from acf.cli.names import DOMAINS


@dataclass(frozen=True)
class Collect:
    """Collect transitions of a domain into a directory; the same arguments again reuse it."""

    domain: Annotated[tyro.conf.Positional[str], tyro.conf.arg(help=f"Domain: {DOMAINS}.")]
    out: Path | None = None
    """Directory to write [default: data/DOMAIN]."""
    transitions: int = 150_000
    """How many transitions."""
    seed: int = 0
    """Seed of everything random."""
    start: str = "balanced"
    """Start distribution; `acf domains` lists them."""
    horizon: int = 10
    """Steps before the next start state."""
    policy: str = "uniform"
    """Behaviour policy: uniform, or skewed (depends on the state)."""

    def run(self) -> None:
        from acf.data import collect
        from acf.registry import own_part
        from acf.terminal import console, counting

        out = self.out or Path("data") / own_part(self.domain)
        there = (out / "meta.json").exists()
        with counting(f"collecting {self.domain}") as progress:
            data = collect(
                self.domain,
                self.transitions,
                seed=self.seed,
                start=self.start,
                horizon=self.horizon,
                policy=self.policy,
                out=out,
                progress=progress,
            )
        size = f"{len(data):,} transitions, {len(data.frames):,} frames, {data.frames.nbytes / 2**20:,.0f} MiB"
        console.print(f"{'reused' if there else 'wrote'} {out}: {size}", soft_wrap=True)
        console.print(f"Look into it with [bold]acf data {out}[/]", soft_wrap=True)
