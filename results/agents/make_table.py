"""Writes the table of README.md from the JSON files here: `python results/agents/make_table.py`."""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
GATES = {
    "taxi-deliver-given": 1_500,
    "taxi-deliver-learned": 2_500,
    "doorkey-open-given": 15_000,
    "taxi10-deliver-given": 5_000,
}


def row(path: Path) -> str:
    result = json.loads(path.read_text())
    at = [life["solved_at"] for life in result["lives"]]
    steps = ", ".join("not reached" if s is None else f"{s:,}" for s in at)
    middle = np.median([np.inf if s is None else s for s in at])
    gate = GATES.get(path.stem)
    kept = "" if gate is None else f"{gate:,}: {sum(s is not None and s <= gate for s in at)} of {len(at)}"
    facts = [life["facts"] for life in result["lives"]]
    leaves = f"{min(f['leaves'] for f in facts)}-{max(f['leaves'] for f in facts)}" if "leaves" in facts[0] else ""
    right = f"{min(f['accuracy'] for f in facts):.1%}" if "accuracy" in facts[0] else ""
    again = ", ".join("-" if life["again"] is None else f"{life['again']:.2f}" for life in result["lives"])
    named = f"{result['domain']} {result['task']} | {result['agent']}, {result['goal']}"
    return f"| {named} | {steps} | {middle:,.0f} | {kept} | {again} | {leaves} | {right} | `{result['command']}` |"


def main() -> None:
    readme = HERE / "README.md"
    head = readme.read_text().split("| task |")[0]
    columns = (
        "task",
        "agent, goal",
        "steps to 95 % by seed",
        "median",
        "gate",
        "after",
        "leaves",
        "predicted",
        "command",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *map(row, sorted(HERE.glob("*.json")))]
    readme.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
