"""From a finished run to the factors of each member, without a look at the true ones: `members/N/factors.json`."""

import json
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from acf.data.transitions import Transitions, used_frames
from acf.factors import Factors, Moves, find_factors
from acf.files import write_atomic
from acf.methods.sampling import picture_distances, still_distance
from acf.training.run_dir import RunDir, Trained

MOST = 20_000  # transitions of training and of held-out episodes each: whole episodes, spread over the data


Latents = tuple[Float[np.ndarray, "n K"], Float[np.ndarray, "m K"]]  # of the frames of training and held-out episodes


class Sample(NamedTuple):
    """Transitions of some whole episodes, and the frames they use."""

    frames: UInt8[np.ndarray, "n H W C"]
    factors: Float[np.ndarray, "n K"] | None
    """The true ones, for scoring what was found."""
    i: Int[np.ndarray, " T"]
    j: Int[np.ndarray, " T"]
    action: Int[np.ndarray, " T"]
    episode: Int[np.ndarray, " T"]
    changed: Bool[np.ndarray, " T"]
    picture: Int[np.ndarray, " n"]

    def moves(self, z: Float[np.ndarray, "n K"]) -> Moves:
        """With these latents of the frames."""
        return Moves(z[self.i], z[self.j], self.action, self.episode, self.changed, self.picture[self.i])


def take_sample(data: Transitions, still: float, most: int = MOST) -> Sample:
    episode = data.episode[data.i]
    names = np.unique(episode)
    n = max(1, min(len(names), len(names) * most // len(data)))
    kept = np.unique(np.linspace(0, len(names) - 1, n).astype(int))
    part = data.select(np.flatnonzero(np.isin(episode, names[kept])))
    rows = used_frames(part)
    frames = np.asarray(data.frames[rows])
    return Sample(
        frames=frames,
        factors=None if data.factors is None else data.factors[rows],
        i=np.searchsorted(rows, part.i),
        j=np.searchsorted(rows, part.j),
        action=part.action,
        episode=part.episode[part.i],
        changed=picture_distances(part) > still,
        picture=number_pictures(frames, data.episode[rows], still),
    )


def number_pictures(
    frames: UInt8[np.ndarray, "n H W C"], episode: Int[np.ndarray, " n"], still: float
) -> Int[np.ndarray, " n"]:
    """Within an episode, pictures no further apart than `still` have the same number: that of the first such one."""
    rows = frames.reshape(len(frames), -1).astype(np.float32) / 255 - 0.5
    out = np.empty(len(frames), np.int64)
    for name in np.unique(episode):
        own = np.flatnonzero(episode == name)
        x = rows[own]
        squares = (x**2).sum(1)
        near = squares[:, None] + squares[None] - 2 * x @ x.T <= still
        np.fill_diagonal(near, True)
        out[own] = own[near.argmax(1)]
    return out


def still_of(data: Transitions) -> float:
    """How far apart two pictures of one state may be, as lattice's batches have it (`acf.methods.sampling`)."""
    rows = np.flatnonzero(data.action == data.noop)[:MOST] if data.noop is not None else []
    return still_distance(picture_distances(data.select(rows)) if len(rows) else np.zeros(0, np.float32))


def samples_of(run: RunDir, data: Transitions) -> tuple[Sample, Sample]:
    """Of the training episodes, and of those that were kept from training."""
    train, test = run.split(data)
    still = still_of(train)
    return take_sample(train, still), take_sample(test, still)


def latents_of(trained: Trained, samples: tuple[Sample, Sample]) -> Latents:
    """Those that actions move, of every frame of both samples."""
    train, test = (trained.controllable(trained.encode(sample.frames)).astype(np.float64) for sample in samples)
    return train, test


def find_member_factors(trained: Trained, z: Latents, samples: tuple[Sample, Sample]) -> Factors:
    train, test = (sample.moves(own) for sample, own in zip(samples, z, strict=True))
    return find_factors(train, test, trained.config.spec.n_actions)


def keep_factors(run: RunDir, member: int, found: Factors) -> None:
    write_atomic(run.factors(member), json.dumps(found.to_json(), indent=2) + "\n")


def exactness(found: Factors, z: Latents, samples: tuple[Sample, Sample], of: list[int]) -> dict[str, Any]:
    """The share of held-out frames in which the factors tell each of these true factors, and all of them, exactly.

    What a combination of values stands for is taken from the training frames; one that they do not have tells nothing.
    """
    train, test = samples
    assert train.factors is not None and test.factors is not None
    codes = [found.read(part) for part in z]
    if not codes[0].shape[1]:
        return {"state": 0.0, "factors": [0.0] * len(of)}
    _, number = np.unique(np.concatenate(codes), axis=0, return_inverse=True)
    known, asked = np.split(number.reshape(-1), [len(codes[0])])
    right = np.stack([_told(known, train.factors[:, k], asked, test.factors[:, k]) for k in of], axis=1)
    return {"state": float(right.all(1).mean()), "factors": right.mean(0).tolist()}


def _told(
    known: Int[np.ndarray, " n"],
    values: Float[np.ndarray, " n"],
    asked: Int[np.ndarray, " m"],
    truth: Float[np.ndarray, " m"],
) -> Bool[np.ndarray, " m"]:
    """Whether the value most frequent with a code is the true one."""
    levels, level = np.unique(values, return_inverse=True)
    counts = np.zeros((max(known.max(), asked.max()) + 1, len(levels)), np.int64)
    np.add.at(counts, (known, level), 1)
    return (levels[counts.argmax(1)][asked] == truth) & (counts.sum(1)[asked] > 0)
