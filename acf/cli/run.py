"""`acf run`: collect, train and evaluate in one."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro


@dataclass(frozen=True)
class Run:
    """Collect, train and evaluate in one; the same command again goes on where it stopped."""

    domain: tyro.conf.Positional[str]
    """Domain: lamp, grid2d, taxi, fourrooms or doorkey."""
    method: str = "acf"
    """Method to train: acf, gcl, dms, msa or factored_markov."""
    preset: str | None = None
    """quick or paper; acf has sparse, no-fwd, no-inv, no-policy, no-ratio too [default: paper on a GPU, else quick]."""
    seed: int = 0
    """First seed."""
    seeds: int = 1
    """How many seeds, from the first on, trained together."""
    out: Path | None = None
    """Run directory [default: runs/DOMAIN-METHOD-PRESET]."""
    epochs: int | None = None
    """Passes over the data [default: the preset's]."""
    hparams: dict[str, float] = field(default_factory=dict)
    """Hyperparameters that differ from the preset: --hparams lr 1e-3 noise 0.05"""

    def run(self) -> None:
        from acf.terminal import console

        out, scores, was_finished = self._work()
        console.print(_table(scores))
        wrote = f"wrote {out}: config.json, metrics.jsonl, tensorboard/, members/, scores.json"
        console.print(f"{out} was finished already: nothing to do" if was_finished else wrote, soft_wrap=True)
        console.print(f'Use it with [bold]acf.load("{out}").encode(frames)[/]', soft_wrap=True)

    def _work(self) -> tuple[Path, dict[str, Any], bool]:
        from acf.data import collect
        from acf.domains import make
        from acf.files import exclusive_lock
        from acf.methods import get
        from acf.study.evaluate import evaluate_run, read_scores
        from acf.terminal import counting, status
        from acf.training import RunDir, train
        from acf.training.presets import default_preset, get_preset

        name = self.preset or default_preset()
        make(self.domain)  # a wrong name is found before anything is written
        get(self.method)
        preset = get_preset(name, self.method, self.domain)
        out = self.out or Path("runs") / f"{self.domain}-{self.method}-{name}"
        with exclusive_lock(out), counting(f"collecting {self.domain}") as progress:
            collect(
                self.domain,
                preset.transitions,
                start=preset.start,
                horizon=preset.horizon,
                out=RunDir(out).data,
                progress=progress,
            )
        train(
            RunDir(out).data,
            out,
            method=self.method,
            preset=name,
            seeds=range(self.seed, self.seed + self.seeds),
            hparams=self.hparams,
            epochs=self.epochs,
        )
        scores = read_scores(out)
        with status("evaluating"):
            return out, scores or evaluate_run(out), scores is not None


def _table(scores: dict[str, Any]):
    from acf.terminal import table

    columns = ("diag", "off_diag", "diag_controllable", "off_diag_controllable")
    title = f"{scores['method']} on {scores['domain']}: R² of latents and factors, held-out episodes"
    rows = table(
        "", "diag (1 is best)", "off-diag (0 is best)", "diag, controllable", "off-diag, controllable", title=title
    )
    for member in scores["members"]:
        stopped = f", diverged at step {member['diverged_at']}" if member["diverged_at"] >= 0 else ""
        rows.add_row(f"seed {member['seed']}{stopped}", *(f"{member[c]:.3f}" for c in columns))
    rows.add_section()
    if len(scores["members"]) > 1:
        rows.add_row("mean ± std", *(f"{scores[c]['mean']:.3f} ± {scores[c]['std']:.3f}" for c in columns))
    rows.add_row("oracle", *(f"{scores['oracle'][c]:.3f}" for c in columns))
    rows.add_row("chance", *(f"{scores['chance'][c]:.3f}" for c in columns))
    return rows
