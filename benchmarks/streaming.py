"""Data that stays on the host, streamed, against the same data on the device: the ratio of their rates.

python benchmarks/streaming.py --domain taxi --members 5
"""

from dataclasses import dataclass

import tyro

from acf.study import bench
from acf.terminal import console, table
from acf.training import program


@dataclass(frozen=True)
class Args:
    domain: str = "taxi"
    preset: str = "paper"
    members: int = 5


def main(args: Args) -> None:
    case = bench.make_case(args.domain, args.preset, args.members, data=bench.collect_for_bench(args.domain))
    (on_device,) = bench.time_cases([case])
    memory = program.memory()
    program.memory = lambda: min(memory, 2 * case.data.frames.nbytes - 1)  # half of it is too little for the data
    program.memory_of = program._bytes = lambda _: 0  # and the members need nothing
    (streamed,) = bench.time_cases([case])
    rows = table("data", "ms a step", title=f"{args.domain}, {args.preset}, {args.members} members")
    rows.add_row("on the device", f"{on_device.step_ms:.3f}")
    rows.add_row("streamed", f"{streamed.step_ms:.3f}")
    console.print(rows)
    console.print(f"streamed at {on_device.step_ms / streamed.step_ms:.0%} of the rate")


if __name__ == "__main__":
    main(tyro.cli(Args))
