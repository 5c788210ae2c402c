"""`acf data`: what is in a data set."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro


@dataclass(frozen=True)
class Data:
    """Check and describe a data set: counts, actions, what each action changes, size, hash."""

    path: tyro.conf.Positional[Path]
    """Directory that `acf collect` or `Transitions.save` wrote."""
    noop: int | None = None
    """Index of the action that does nothing, where the data does not say."""

    def run(self) -> None:
        from acf.data import Transitions
        from acf.data.describe import describe
        from acf.terminal import console, status

        with status(f"reading {self.path}"):
            about = describe(Transitions.open(self.path, noop=self.noop))
        console.print(_overview(about, self.path))
        console.print(_actions(about))
        options = "" if self.noop is None else f" --noop {self.noop}"
        options += "" if about["factors"] else " --latents K"
        console.print(
            f"Train on it with [bold]acf train {self.path} --out runs/{self.path.name}{options}[/]", soft_wrap=True
        )


def _overview(about: dict[str, Any], path: Path):
    from acf.terminal import table

    factors, known = about["factors"], about["controllable"]
    ours = [name for name, controllable in zip(factors, known, strict=False) if controllable]
    rows = table("", "", title=str(path))
    rows.show_header = False
    rows.columns[1].overflow = "fold"  # a hash is one long word
    rows.add_row("transitions", f"{about['transitions']:,} in {about['episodes']:,} episodes")
    rows.add_row("frames", f"{about['frames']:,} of {'x'.join(map(str, about['frame_shape']))}")
    rows.add_row("factors", " ".join(factors) or "not known")
    rows.add_row("no-op", about["noop"] or "none: no action does nothing")
    rows.add_row("controllable", " ".join(ours) if known else "not known")
    rows.add_row("size", f"{about['bytes'] / 2**20:,.1f} MiB")
    rows.add_row("hash", about["hash"])
    rows.add_row("made by", ", ".join(f"{name} {value}" for name, value in about["source"].items()))
    return rows


def _actions(about: dict[str, Any]):
    from acf.terminal import table

    rows = table("action", "count", "changed the frame", "and the factors", title="What each action does")
    for name, action in about["actions"].items():
        label = f"{name} (no-op)" if name == about["noop"] else name
        count = f"{action['count']:,} ({action['count'] / about['transitions']:.1%})"
        changed = [f"{factor} {share:.1%}" for factor, share in action.get("factors", {}).items() if share]
        rows.add_row(label, count, _share(action["changed"]), ", ".join(changed))
    return rows


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
