"""`acf run`: collect, train, evaluate and report in one."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import tyro


@dataclass(frozen=True)
class Run:
    """Collect, train, evaluate and report in one; the same command again goes on where it stopped."""

    domain: tyro.conf.Positional[str]
    """Domain: lamp, grid2d, taxi, fourrooms or doorkey."""
    method: str = "acf"
    """Method to train: acf, gcl, dms, msa or factored_markov."""
    preset: str | None = None
    """quick, paper, FILE.toml; acf: sparse, no-fwd, no-inv, no-policy, no-ratio [default: paper on a GPU or quick]."""
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
    kernel: Literal["auto", "xla", "pallas"] = "auto"
    """pallas: the GPU kernels; xla: plain JAX; auto: the kernels where there is a GPU for them."""

    def run(self) -> None:
        from acf.cli.tables import print_scores
        from acf.terminal import console

        out, scores, was_finished = self._work()
        print_scores(scores)
        if not was_finished:
            self._report(out)
        wrote = f"wrote {out}: config.json, metrics.jsonl, tensorboard/, members/, scores.json, report.html"
        console.print(f"{out} was finished already: nothing to do" if was_finished else wrote, soft_wrap=True)
        console.print(f"Look at it: open [bold]{out / 'report.html'}[/] in a browser", soft_wrap=True)
        console.print(f'Use it with [bold]acf.load("{out}").encode(frames)[/]', soft_wrap=True)

    @staticmethod
    def _report(out: Path) -> None:
        from acf.study.report import report_runs
        from acf.terminal import status

        with status("drawing the report"):
            report_runs([out])

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
        out = self.out or Path("runs") / f"{self.domain}-{self.method}-{Path(name).stem}"
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
            kernel=self.kernel,
        )
        scores = read_scores(out)
        with status("evaluating"):
            return out, scores or evaluate_run(out), scores is not None and (out / "report.html").exists()
