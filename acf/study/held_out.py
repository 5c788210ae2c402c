"""A finished run and what its members make of the held-out episodes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, UInt8

from acf.data.transitions import Transitions, used_frames
from acf.errors import AcfError
from acf.training.config import Config
from acf.training.run_dir import RunDir, Trained, load

MAX_TRANSITIONS = 4096  # for what is averaged over transitions


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Latents of all members on the held-out frames, and some held-out transitions between these frames."""

    run: Path
    config: Config
    data: Transitions
    members: tuple[Trained, ...]
    frames: UInt8[np.ndarray, "n H W C"]
    episode: Int[np.ndarray, " n"]
    factors: Float[np.ndarray, "n K"] | None
    z: Float[np.ndarray, "members n d"]
    i: Int[np.ndarray, " T"]
    action: Int[np.ndarray, " T"]
    j: Int[np.ndarray, " T"]

    def scores(self, member: int) -> Float[np.ndarray, "T d A"] | None:
        """The member's `∂E_k(z'_k, a, z) / ∂z'_k` at the transitions; None for a method without energies.

        And for data without a no-op: they are looked at as differences to its score.
        """
        if self.data.noop is None:
            return None
        z = self.z[member]
        scores = self.members[member].scores(z[self.j], z[self.i])
        return None if scores is None else _finite(scores)


def open_run(run: str | Path) -> HeldOut:
    """Open a finished run on the data that it was trained on."""
    directory = RunDir(Path(run))
    config = directory.read_config()
    members = tuple(load(run, n) for n in range(len(config.members)))
    data = directory.open_data(config)
    if data.hash != config.data["hash"]:
        hashes = f"expected hash {config.data['hash']}, found {data.hash}"
        raise AcfError(f"the data of {run} has changed since training: {hashes}")
    _, test = directory.split(data)
    rows = used_frames(test)
    frames = np.asarray(data.frames[rows])
    some = np.random.default_rng(0).permutation(len(test))[:MAX_TRANSITIONS]
    return HeldOut(
        run=Path(run),
        config=config,
        data=data,
        members=members,
        frames=frames,
        episode=data.episode[rows],
        factors=None if data.factors is None else data.factors[rows],
        z=_finite(np.stack([member.encode(frames) for member in members])),
        i=np.searchsorted(rows, test.i[some]),
        action=test.action[some],
        j=np.searchsorted(rows, test.j[some]),
    )


def _finite(x: np.ndarray) -> np.ndarray:
    # A diverged member's weights are finite; what they make of a frame need not be, and then tells nothing about it.
    return np.nan_to_num(x, posinf=0, neginf=0)
