"""`acf evaluate`: finished runs to scores."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Evaluate:
    """Score finished runs on their held-out episodes, with the oracle's floor and the chance level beside."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories that `acf train` or `acf run` made."""
    seed: int = 0
    """Seed of the split and of the regressors."""

    def run(self) -> None:
        from acf.cli.tables import print_scores
        from acf.errors import AcfError
        from acf.study.evaluate import evaluate_run
        from acf.terminal import console, status
        from acf.training import RunDir

        if not self.runs:
            raise AcfError("expected at least one run directory: acf evaluate RUN...")
        for run in self.runs:
            RunDir(run).read_finished()
        for run in self.runs:
            with status(f"evaluating {run}"):
                scores = evaluate_run(run, seed=self.seed)
            print_scores(scores)
            console.print(f"wrote {run / 'scores.json'}", soft_wrap=True)
        console.print(f"Look at it with [bold]acf report {' '.join(map(str, self.runs))}[/]", soft_wrap=True)
