"""`acf sweep`: search a method's hyperparameters."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from acf.cli.names import METHODS

if TYPE_CHECKING:
    from acf.study.sweep import Sweep as Found


@dataclass(frozen=True)
class Sweep:
    """Search a method's hyperparameters at random, many samples and seeds at once; the winner becomes a preset file.

    Selection is on validation episodes: the test episodes that `acf run` scores on are never seen. The same command
    goes on where it stopped; with more samples it adds to those that were tried.
    """

    data: tyro.conf.Positional[str]
    """A domain, which is collected as the preset says, or the directory of a data set."""
    method: Annotated[str, tyro.conf.arg(help=f"Method to tune: {METHODS}.")] = "acf"
    preset: str | None = None
    """What is not searched: quick, paper, FILE.toml; acf: sparse, no-fwd, no-inv and so on [default: as acf run]."""
    samples: int = 50
    """How many settings to draw."""
    seeds: int = 5
    """How many seeds to train each of them with."""
    seed: int = 0
    """Seed of the drawing, and first of the seeds."""
    out: Path | None = None
    """Directory of the sweep [default: runs/DATA-METHOD-sweep]."""
    population: int = 64
    """Members (samples x seeds) that train at once, as one program."""
    objective: Literal["supervised", "udr", "loss"] | None = None
    """supervised: diag - off_diag, by the true factors; udr: agreement of seeds; loss [default: supervised or udr]."""
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Ranges that differ from the method's own, log-uniform unless from 0: --ranges lr 1e-5 1e-3 noise 0 0.1"""
    sampler: Literal["random", "tpe"] = "random"
    """tpe: each population's samples learn from those before (optuna's TPE)."""
    prune: bool = False
    """Drop the worse half of the samples after a quarter of the epochs."""
    with_preset: bool = True
    """Try the preset's own settings too, to compare with."""
    latents: int | None = None
    """Number of latents [default: the number of factors, where the data knows them]."""
    storage: str | None = None
    """URL of a database to keep the optuna study in, such as postgresql://USER@HOST/DATABASE [default: a file]."""
    ray: str | None = None
    """Train on the Ray cluster at this HOST:PORT, or auto; all its machines must see --out under the same path."""

    def run(self) -> None:
        from acf.methods import get
        from acf.registry import own_part
        from acf.study.sweep import sweep
        from acf.terminal import console

        name = f"{own_part(Path(self.data).name)}-{get(self.method).name}-sweep"

        found = sweep(
            self.data,
            self.out or Path("runs") / name,
            method=self.method,
            preset=self.preset,
            samples=self.samples,
            seeds=self.seeds,
            seed=self.seed,
            population=self.population,
            objective=self.objective,
            sampler=self.sampler,
            prune=self.prune,
            with_preset=self.with_preset,
            ranges=self.ranges,
            latents=self.latents,
            storage=self.storage,
            ray=self.ray,
        )
        self._print(found)
        wrote = f"wrote {found.path}: best.toml, trials.csv, trials.png, plan.json, populations/"
        finished = f"{found.path} was finished already: nothing to do"
        console.print(finished if found.was_finished else wrote, soft_wrap=True)
        best = found.path / "best.toml"
        more = "" if self.method == "acf" else f" --method {self.method}"
        how = f"--preset {best}{more} --seed {self.seed + self.seeds} --seeds {self.seeds}"
        then = f"acf run {self.data} {how}"
        if "domain" not in found.plan.data:
            then = f"acf train {self.data} --out RUN {how} && acf evaluate RUN"
        console.print(f"Score it on test episodes, with other seeds: [bold]{then}[/]", soft_wrap=True)

    def _print(self, found: "Found") -> None:
        """The best few, and the preset."""
        from statistics import pstdev

        from acf.errors import AcfError
        from acf.study.sweep.objectives import OBJECTIVES
        from acf.terminal import console, table

        if found.best is None:
            raise AcfError("every sample diverged, so none is the best: give lower ranges, above all of lr")
        plan = found.plan
        ended = sorted(
            (one for one in found.tried if one.state == "complete"),
            key=lambda one: (-1 if plan.maximise else 1) * (one.outcome.objective or 0.0),
        )
        rows = table("", "objective", *plan.ranges, title=OBJECTIVES[plan.objective].title)
        for place, one in enumerate(ended):
            if place < 5 or one.sample.number == 0:
                own = plan.preset.hparams | one.sample.hparams
                name = f"sample {one.sample.number}" if one.sample.number else "the preset"
                spread = f" ± {pstdev(v for v in one.outcome.seeds if v is not None):.3f}" if plan.seeds > 1 else ""
                rows.add_row(
                    name, f"{one.outcome.objective:.3f}{spread}", *(f"{own[name]:.3g}" for name in plan.ranges)
                )
        console.print(rows)
        counts = {state: sum(one.state == state for one in found.tried) for state in ("complete", "pruned", "diverged")}
        line = ", ".join(f"{n} {state}" for state, n in counts.items() if n)
        console.print(f"{len(found.tried)} samples: {line}", soft_wrap=True)
