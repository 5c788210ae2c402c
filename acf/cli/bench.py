"""`acf bench`: how fast training is on this machine."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from acf.cli.names import METHODS


@dataclass(frozen=True)
class Bench:
    """Time a training step on this machine: whole populations, the step's parts, and the least it could take."""

    domains: tyro.conf.Positional[tuple[str, ...]] = ("taxi",)
    """Domains, in their preset's configuration."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(help=f"Methods: {METHODS}.")] = ("acf",)
    preset: str | None = None
    """quick, full, paper, FILE.toml; acf: sparse, no-fwd, no-inv and so on [default: full on a GPU, quick]."""
    members: tuple[int, ...] = (1, 5)
    """Population sizes."""
    out: Path | None = None
    """Also write the numbers to this JSON file."""

    def run(self) -> None:
        from acf.domains import make
        from acf.errors import AcfError
        from acf.files import write_atomic
        from acf.methods import get
        from acf.study import bench
        from acf.terminal import console, status, table
        from acf.training.presets import default_preset

        if not self.members or min(self.members) < 1:
            raise AcfError(f"expected population sizes of at least 1, got {self.members}")
        if self.out and self.out.is_dir():
            raise AcfError(f"expected a file name as --out, got the directory {self.out}")
        for domain in self.domains:
            make(domain)  # a wrong name is found before anything is compiled
        for method in self.methods:
            get(method)
        preset = self.preset or default_preset()
        if self.out:
            self.out.parent.mkdir(parents=True, exist_ok=True)
        with status("compiling and timing"):
            report = bench.bench(self.domains, self.methods, preset, self.members)
        about = report["device"]
        title = f"a training step, preset {preset}, on {about['device']} (jax {about['jax']}, {about['kernel']})"
        floors = any("floor" in row for row in report["rows"])
        rows = table(
            "", "members", "compile s", "ms a step", "ms a member", "MiB a member", *(["x floor"] * floors), title=title
        )
        for row in report["rows"]:
            cells = [f"{row[name]:.{digits}f}" for name, digits in (("compile_s", 1), ("step_ms", 3), ("member_ms", 4))]
            memory = f"{row['member_mib']:.0f}" if "member_mib" in row else ""
            # The floor is one device's, which trains a share of the members.
            ratio = f"{row['devices'] * row['member_ms'] / row['floor']['total_ms']:.1f}" if "floor" in row else ""
            rows.add_row(row["name"], str(row["members"]), *cells, memory, *([ratio] * floors))
        console.print(rows)
        if self.out:
            write_atomic(self.out, json.dumps(report, indent=2) + "\n")
            console.print(f"wrote {self.out}", soft_wrap=True)
