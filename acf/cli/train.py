"""`acf train`: a population from a data set into a run directory."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from acf.cli.names import METHODS


@dataclass(frozen=True)
class Train:
    """Train a method on a data set, one member a seed; the same command on the same directory goes on."""

    data: tyro.conf.Positional[Path]
    """Directory that `acf collect` or `Transitions.save` wrote."""
    out: Path
    """Run directory."""
    method: Annotated[str, tyro.conf.arg(help=f"Method to train: {METHODS}.")] = "acf"
    preset: str | None = None
    """quick, full, paper, FILE.toml; acf: sparse, no-fwd, no-inv and so on [default: full on a GPU, quick]."""
    seed: int = 0
    """First seed."""
    seeds: int = 1
    """How many seeds, from the first on, trained together."""
    latents: int | None = None
    """Number of latents [default: the number of factors, where the data knows them]."""
    epochs: int | None = None
    """Passes over the data [default: the preset's]."""
    hparams: dict[str, float] = field(default_factory=dict)
    """Hyperparameters that differ from the preset: --hparams lr 1e-3 noise 0.05"""
    bf16: bool | None = None
    """Encoder arithmetic in bfloat16 [default: on with a GPU that is fast in it]."""
    encoder: Literal["places", "residual"] | None = None
    """places: looks at each place of the picture alone; residual: the paper's [default: the preset's]."""
    kernel: Literal["auto", "xla", "pallas"] = "auto"
    """Of the energies. pallas: GPU kernels; xla: plain JAX; auto: the kernels where there is a GPU for them."""
    noop: int | None = None
    """Index of the action that does nothing, where the data does not say."""
    save_every: float = 30.0
    """Seconds between two saves of the state that a stopped run goes on from."""
    wandb: str | None = None
    """Also log to this Weights & Biases project."""

    def run(self) -> None:
        from acf.terminal import console
        from acf.training import RunDir, train

        there = RunDir(self.out)
        epochs = there.read_config().epochs if there.looks_finished() else None
        run = train(
            self.data,
            self.out,
            method=self.method,
            preset=self.preset,
            seeds=range(self.seed, self.seed + self.seeds),
            hparams=self.hparams,
            latents=self.latents,
            epochs=self.epochs,
            bf16=self.bf16,
            encoder=self.encoder,
            kernel=self.kernel,
            noop=self.noop,
            wandb=self.wandb,
            save_every=self.save_every,
        )
        done = "was finished already: nothing to do" if run.read_config().epochs == epochs else "is trained"
        console.print(f"{run.path} {done}", soft_wrap=True)
        console.print(f'Use it with [bold]acf.load("{run.path}").encode(frames)[/]', soft_wrap=True)
