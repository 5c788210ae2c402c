"""`acf agent`: how many steps an agent needs for a task."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from acf.cli.names import DOMAINS

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Agent:
    """Let an agent learn a task of a domain: steps to 95 % greedy success, and which factor depends on which."""

    domain: Annotated[tyro.conf.Positional[str], tyro.conf.arg(help=f"Domain: {DOMAINS}.")]
    task: str | None = None
    """The task; `docs/agents.md` lists them [default: the domain's first one]."""
    encoder: Literal["true"] = "true"
    """Where the agent's state comes from: the true factors, and what else of the state can be seen."""
    agent: Literal["factored", "rmax", "q"] = "factored"
    """factored, or to compare it with, R-max or Q-learning on whole states (or a hash of clean frames: the same)."""
    goal: Literal["given", "learned"] = "given"
    """Whether the factored agent is told the task's predicate, or finds it out from the rewards as the others do."""
    steps: int = 2_000
    """At most this many steps of the environment a seed."""
    seeds: int = 5
    """Seeds 0, 1, ... one after the other."""
    out: Path | None = None
    """JSON file for curves and graphs [default: agents/DOMAIN-TASK-AGENT-GOAL.json]."""

    def run(self) -> None:
        from acf.agents.compare import compare, write
        from acf.agents.world import DomainWorld, find_task
        from acf.domains import make
        from acf.errors import AcfError
        from acf.terminal import console, counting

        domain = make(self.domain)
        task = self.task or next(iter(domain.tasks), "")
        find_task(domain, task)
        out = self.out or Path("agents") / f"{domain.name}-{task}-{self.agent}-{self.goal}.json"
        if out.is_dir():
            raise AcfError(f"expected a file name as --out, got the directory {out}")
        with counting(f"{domain.name}: {domain.tasks[task].summary}") as progress:
            result = compare(DomainWorld(domain, task), self.agent, self.goal, self.steps, self.seeds, progress)
        result["command"] = self._command(task)
        write(result, out)
        console.print(_lives(result))
        if "graph" in result["lives"][0]["facts"]:
            console.print(_graph(result["lives"][0]["facts"]["graph"]))
        console.print(f"wrote {out}", soft_wrap=True)

    def _command(self, task: str) -> str:
        chosen = f"--task {task} --encoder {self.encoder} --agent {self.agent} --goal {self.goal}"
        return f"acf agent {self.domain} {chosen} --steps {self.steps} --seeds {self.seeds}"


def _lives(result: dict[str, Any]) -> "Table":
    from acf.terminal import table

    title = f"{result['domain']}, {result['task']}: {result['agent']}, goal {result['goal']}"
    rows = table("seed", "steps to 95 %", "curve (steps: success)", "leaves", "transitions predicted", title=title)
    for life in result["lives"]:
        facts, curve = life["facts"], life["curve"]
        some = curve[: -1 : max(1, len(curve) // 4)] + curve[-1:]
        shown = " ".join(f"{step:,}: {share:.2f}" for step, share in some)
        solved = "not reached" if life["solved_at"] is None else f"{life['solved_at']:,}"
        predicted = f"{facts['accuracy']:.1%}" if "accuracy" in facts else ""
        rows.add_row(str(life["seed"]), solved, shown, str(facts.get("leaves", "")), predicted)
    return rows


def _graph(graph: dict[str, dict[str, list[str]]]) -> "Table":
    from acf.terminal import table

    rows = table("factor", "moved by", "depends on", title="who depends on whom, seed 0")
    for factor, edges in graph.items():
        rows.add_row(factor, " ".join(edges["moved_by"]), " ".join(edges["depends_on"]))
    return rows
