"""Batches by episode and class, for methods that contrast the states of one episode with each other.

An anchor's class, (action, did the picture change?), is drawn evenly, then an anchor of it, then transitions spread
over its episode. So what happens once in a thousand transitions is in every other batch, beside its like.
"""

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from acf.methods.base import Sampler

if TYPE_CHECKING:
    from acf.data import Transitions

FRAMES = 16  # transitions of an episode in a batch
RARE = 10  # a class with fewer transitions than these is not worth a share of every batch
_BLOCK = 4096  # transitions whose pictures are compared at a time
_EQUAL = 1e-2  # squared distance of pictures up to which they are one: rounding, and no more than a grey level or two


class Known(NamedTuple):
    """What drawing needs to know of the data, and what else is known of it once its pictures were compared."""

    by_class: Int[Array | np.ndarray, " T"]
    """The transitions, class by class."""
    first: Int[Array | np.ndarray, " C"]
    size: Int[Array | np.ndarray, " C"]
    by_episode: Int[Array | np.ndarray, " T"]
    """The transitions, episode by episode."""
    start: Int[Array | np.ndarray, " T"]
    length: Int[Array | np.ndarray, " T"]
    """Of each transition's own episode, in `by_episode`."""
    still: Float[Array | np.ndarray, ""]
    """Pictures whose squared distance is no larger show the same state (`still_distance`)."""


def know(data: "Transitions") -> Known:
    moved = picture_distances(data)
    still = still_distance(moved[data.action == data.noop])
    of_class = 2 * data.action + (moved > still)
    first, count = _runs(of_class)
    usual = count >= min(RARE, count.max())
    first_of, length_of = _runs(episode := data.episode[data.i])
    of_transition = np.unique(episode, return_inverse=True)[1]
    narrow = lambda x: np.asarray(x, np.int32)  # noqa: E731
    return Known(
        by_class=narrow(np.argsort(of_class, kind="stable")),
        first=narrow(first[usual]),
        size=narrow(count[usual]),
        by_episode=narrow(np.argsort(episode, kind="stable")),
        start=narrow(first_of[of_transition]),
        length=narrow(length_of[of_transition]),
        still=np.array(still, np.float32),
    )


def draw(known: Known, key: PRNGKeyArray, n: int) -> Int[Array, " n"]:
    """`n // FRAMES` episodes after each other, the anchor's and transitions spread evenly over each.

    An episode shorter than `FRAMES` gives some of its transitions twice.
    """
    episodes = n // FRAMES
    of_class, in_class, spread = jax.random.split(key, 3)
    chosen = jax.random.randint(of_class, (episodes,), 0, len(known.first))
    place = jax.random.uniform(in_class, (episodes,)) * known.size[chosen]
    anchor = known.by_class[known.first[chosen] + place.astype(jnp.int32)]
    start, length = known.start[anchor][:, None], known.length[anchor][:, None]
    slot = (jnp.arange(FRAMES) + jax.random.uniform(spread, (episodes, 1))) * length / FRAMES
    rows = known.by_episode[start + jnp.minimum(slot.astype(jnp.int32), length - 1)]
    # The anchor stands where it was drawn anyway, or else first.
    own = jnp.argmax(rows == anchor[:, None], axis=1)
    return rows.at[jnp.arange(episodes), own].set(anchor).reshape(-1)


def picture_distances(data: "Transitions") -> Float[np.ndarray, " T"]:
    """Squared distance of each transition's two pictures, black to white counting 1 for every number of a pixel."""
    out = np.empty(len(data), np.float32)
    for first in range(0, len(data), _BLOCK):
        part = slice(first, first + _BLOCK)
        change = data.frames[data.j[part]].astype(np.float32) - data.frames[data.i[part]]
        out[part] = (change.reshape(len(change), -1) ** 2).sum(1) / 255**2
    return out


def still_distance(of_noop: Float[np.ndarray, " n"]) -> float:
    """How far apart two pictures of one state may be: as far as the no-op takes a picture by itself.

    Where the no-op leaves most pictures as they are, equal pictures count as one state and no others do. Where it does
    not, there is noise in them, or something moves by itself: then all that a no-op does counts as nothing.
    """
    if not len(of_noop) or np.median(of_noop) <= _EQUAL:
        return _EQUAL
    return 1.2 * float(np.quantile(of_noop, 0.99))


def _runs(values: Int[np.ndarray, " T"]) -> tuple[Int[np.ndarray, " C"], Int[np.ndarray, " C"]]:
    """Where each of the values begins in their order, and how often it occurs."""
    _, count = np.unique(values, return_counts=True)
    return np.cumsum(count) - count, count


BY_EPISODE = Sampler(know, draw, FRAMES)
