"""Time and peak memory of collecting and saving 150,000 rendered transitions, against the data's own size.

uv run python benchmarks/collect.py --domains taxi doorkey --out benchmarks/collect.json
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import tyro

from acf.terminal import console, table


@dataclass(frozen=True)
class Args:
    domains: tuple[str, ...] = ("grid2d", "taxi", "fourrooms", "doorkey")
    transitions: int = 150_000
    out: Path | None = None
    """JSON to write."""
    child: str | None = None
    """Used by the script itself: measure this domain in a process of its own, so that peaks do not mix."""


def measure(domain: str, transitions: int) -> dict[str, float | str]:
    import acf

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        data = acf.collect(domain, transitions, out=Path(folder) / "data")
        seconds = time.perf_counter() - began
        size = sum(file.stat().st_size for file in (Path(folder) / "data").iterdir())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert len(data) == transitions
    mib = {"mib": size / 2**20, "peak_mib": peak / 2**20}
    return {"domain": domain, "seconds": seconds, **mib, "peak/size": peak / size}


def main(args: Args) -> None:
    if args.child:
        print(json.dumps(measure(args.child, args.transitions)))
        return
    rows = table("domain", "seconds", "data MiB", "peak MiB", "peak / data", title=f"{args.transitions:,} transitions")
    results = []
    for domain in args.domains:
        command = [sys.executable, __file__, "--child", domain, "--transitions", str(args.transitions)]
        results.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        name, *numbers = results[-1].values()
        rows.add_row(name, *(f"{number:.2f}" for number in numbers))
    console.print(rows)
    if args.out:
        args.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Args))
