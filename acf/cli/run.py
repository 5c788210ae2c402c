"""`acf run`: collect, train, evaluate and report in one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from acf.cli.names import DOMAINS, METHODS


@dataclass(frozen=True)
class Run:
    """Collect, train, evaluate and report in one; the same command again goes on where it stopped."""

    domain: Annotated[tyro.conf.Positional[str], tyro.conf.arg(help=f"Domain: {DOMAINS}.")]
    method: Annotated[
        str | None,
        tyro.conf.arg(help=f"Method to train: {METHODS} [default: lattice; acf on grid2d and with its presets]."),
    ] = None
    preset: str | None = None
    """quick, full, paper, FILE.toml; acf: sparse, no-fwd, no-inv and so on [default: full on a GPU, quick]."""
    seed: int = 0
    """First seed."""
    seeds: int | None = None
    """How many seeds, from the first on, trained together [default: 1; with lattice, until one is certified]."""
    keep: int = 1
    """Lattice without --seeds: how many certified seeds to train for."""
    max_seeds: int = 16
    """Lattice without --seeds: how many seeds to try at most."""
    out: Path | None = None
    """Run directory [default: runs/DOMAIN-METHOD-PRESET]."""
    epochs: int | None = None
    """Passes over the data [default: the preset's]."""
    hparams: dict[str, float] = field(default_factory=dict)
    """Hyperparameters that differ from the preset: --hparams lr 1e-3 noise 0.05"""
    encoder: Literal["places", "residual"] | None = None
    """places: looks at each place of the picture alone; residual: the paper's [default: the preset's]."""
    kernel: Literal["auto", "xla", "pallas"] = "auto"
    """Of the energies. pallas: GPU kernels; xla: plain JAX; auto: the kernels where there is a GPU for them."""

    def run(self) -> None:
        took = _Took()
        self._show(self._train(took), took)

    def _train(self, took: "_Took") -> Path:
        from acf.data import collect
        from acf.domains import make
        from acf.errors import AcfError
        from acf.files import exclusive_lock
        from acf.methods import get
        from acf.registry import own_part
        from acf.study.restarts import train_until_certified
        from acf.terminal import counting, errors
        from acf.training import RunDir, train
        from acf.training.config import make_settings
        from acf.training.presets import default_method, default_preset
        from acf.training.train import check_place, disk_trouble

        name, seeds = (
            self.preset or default_preset(),
            range(self.seed, self.seed + (1 if self.seeds is None else self.seeds)),
        )
        domain = make(self.domain)  # what is wrong is found before anything is written
        method = self.method or default_method(domain.continuous, self.preset)
        preset, _ = make_settings(method, name, domain.name, seeds, self.hparams, self.epochs)
        parts = own_part(self.domain), get(method).name, Path(name).stem
        out = self.out or Path("runs") / "-".join(parts)
        there = RunDir(out)
        check_place(there)
        if there.config.exists() and (out / there.read_config().data["path"]).resolve() != there.data.resolve():
            raise AcfError(f"{out} holds a run on data that lies elsewhere. Choose another --out.")
        with (
            disk_trouble(there),
            exclusive_lock(out),
            counting(f"collecting {self.domain}") as progress,
            took("collecting"),
        ):
            collect(
                domain,
                preset.transitions,
                start=preset.start,
                horizon=preset.horizon,
                out=there.data,
                progress=progress,
            )
        options = {
            "method": method,
            "preset": name,
            "hparams": self.hparams,
            "epochs": self.epochs,
            "encoder": self.encoder,
            "kernel": self.kernel,
        }
        with took("training"):
            if self.seeds is None and get(method).finds_factors:
                restarts = {"keep": self.keep, "most": self.max_seeds, "seed": self.seed, "say": errors.print}
                train_until_certified(there.data, out, **restarts, **options)
            else:
                train(there.data, out, seeds=seeds, **options)
        return out

    @staticmethod
    def _show(out: Path, took: "_Took") -> None:
        from acf.cli.tables import print_scores
        from acf.study.evaluate import evaluate_held_out, read_scores
        from acf.study.held_out import open_run
        from acf.study.report import REPORT, report_held_out
        from acf.terminal import console, status

        scores = read_scores(out)
        if scores and (out / REPORT).exists():
            print_scores(scores)
            console.print(f"{out} was finished already: nothing to do", soft_wrap=True)
        else:
            with status("evaluating"), took("evaluating"):
                held_out = open_run(out)
                scores = scores or evaluate_held_out(held_out)
            print_scores(scores)
            with status("drawing the report"), took("drawing"):
                report_held_out(held_out, scores)
            took.say()
            wrote = "config.json, metrics.jsonl, tensorboard/, members/, scores.json, report.html"
            console.print(f"wrote {out}: {wrote}", soft_wrap=True)
        console.print(f"Look at it: open [bold]{out / REPORT}[/] in a browser", soft_wrap=True)
        console.print(f'Use it with [bold]acf.load("{out}").encode(frames)[/]', soft_wrap=True)


class _Took:
    """Where the time went."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._seconds[what] = time.monotonic() - began

    def say(self) -> None:
        from acf.terminal import errors

        errors.print("took " + ", ".join(f"{seconds:.0f} s {what}" for what, seconds in self._seconds.items()))
