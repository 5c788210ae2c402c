"""A certificate, without true factors, that a code of whole numbers has the factors exactly.

If in every transition that changes the picture exactly one number changes, by one; if the states of an episode have
different numbers; and if what stands still keeps its numbers: then the numbers are the controllable factors, up to the
names of levels, chains that may hold two factors and cycles that may be two (`docs/lattice.md` has the proof).

A wrong certificate is worse than none: where too little was seen to tell, there is none, and it says why.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from acf.factors.moves import Moves
from acf.factors.share import Share

ONE_STEP, NO_STEP, INJECTIVE, STILL = 0.995, 0.005, 0.999, 0.995  # of what was counted
ONE_STEP_LOW, INJECTIVE_LOW = 0.98, 0.995  # of what may be so with 95 %: enough must have been seen
ACTION, ACTION_LOW = 0.97, 0.7  # of each action alone: 9 of 9 are enough, 8 of 8 are not, 29 of 30 neither
EPISODES = 20  # of layouts or starts; transitions of one episode are too much alike
PAIRS = 40_000
LAGS = 64  # steps apart that two visits are compared
MIXED, FEW_EPISODES = 0.1, 3  # share and number of episodes that look as before an action, but are not
AGAIN = 0.98  # of visits that seem the same
BACK = 0.01  # share of steps that lead back from which on they are no misreadings
LEFT_OUT = 0.005  # share of changes that no factor shows


KINDS = ("levels", "directions")
SHARES = ("one_step", "no_step", "injective", "again", "still", "worst", "along")


@dataclass(frozen=True)
class Certificate:
    """What was counted on held-out episodes, each action counting alike, and the verdict."""

    certified: bool
    because: tuple[str, ...]
    """Why not; empty where it is."""
    kind: str
    """`levels`; or `directions`, in a world without levels, of which nothing is certified."""
    one_step: Share
    """Changes of the picture that are one step along one axis."""
    no_step: Share
    injective: Share
    """Pairs of different pictures of one episode that have different numbers."""
    again: Share
    """Pairs of visits of an episode with the same numbers, and changes between, that show the same picture."""
    still: Share
    """Pictures that stay as they are and keep their numbers."""
    worst: Share
    """One step: of the action with the least sure share."""
    worst_action: int | None
    along: Share
    """Of each action's changes of coordinates, how much lies along one axis: also without levels."""

    def to_json(self) -> dict[str, Any]:
        return {
            name: value.to_json() if isinstance(value, Share) else list(value) if isinstance(value, tuple) else value
            for name, value in self.__dict__.items()
        }

    @staticmethod
    def from_json(found: dict[str, Any]) -> "Certificate":
        shares = {name: Share.from_json(value) for name, value in found.items() if isinstance(value, dict)}
        out = Certificate(**{**found, **shares, "because": tuple(found["because"])})
        right = out.worst_action is None or isinstance(out.worst_action, int)
        right &= isinstance(out.certified, bool) and out.kind in KINDS
        if not right or not all(isinstance(getattr(out, name), Share) for name in SHARES):
            raise ValueError("a certificate's fields are of other kinds")
        return out


class Read(NamedTuple):
    """Held-out transitions as a code reads them."""

    coordinates: Float[np.ndarray, "T m"]
    """Of the change."""
    levels: Int[np.ndarray, "T m"]
    """How many steps a state lies from the others."""
    steps: Int[np.ndarray, "T m"]
    """How many of which step each transition is."""
    factors: Bool[np.ndarray, " T"]
    """Whether any factor changes."""


def certify(moves: Moves, read: Read, known: list[int], doubts: tuple[str, ...] = (), seed: int = 0) -> Certificate:
    """`known`: the actions that change the picture elsewhere; they must have been seen here. `doubts` speak against."""
    actions, each, counts = moves.by_action(np.abs(read.steps).sum(1) == 1)
    one = Share.of_means(each, counts)
    none = Share.of_means(moves.by_action((read.steps == 0).all(1))[1], counts)
    lost = _mean(moves.by_action((read.steps != 0).any(1) & ~read.factors)[1])
    different = _pairs_told_apart(moves, read.levels, np.random.default_rng(seed))
    injective = Share.of(_mean(different), len(different))
    at_rest = (read.steps[~moves.changed] == 0).all(1)
    still = Share.of(_mean(at_rest) if len(at_rest) else 1.0, len(at_rest))
    of_actions = [Share.of(value, count) for value, count in zip(each, counts.tolist(), strict=True)]
    worst = min(range(len(actions)), key=lambda n: of_actions[n].low, default=None)
    right, wrong, again = _returns(moves, read.levels)
    checks = (
        (read.levels.shape[1] > 0, "no steps were found: nothing that actions do repeats itself"),
        (len(np.unique(moves.episode)) >= EPISODES, f"fewer than {EPISODES} episodes to judge by"),
        (one.value >= ONE_STEP, f"only {one.value:.1%} of what actions change is one step (needs {ONE_STEP:.1%})"),
        (one.low >= ONE_STEP_LOW, f"too few changes to judge by: one step may be {one.low:.1%} of them only"),
        (none.value <= NO_STEP, f"{none.value:.1%} of what actions change is no step (at most {NO_STEP:.1%})"),
        (injective.value >= INJECTIVE, f"{1 - injective.value:.2%} of an episode's states look the same"),
        (injective.low >= INJECTIVE_LOW, f"only {len(different)} pairs of states to compare"),
        (not again.value < AGAIN, f"{1 - again.value:.1%} of visits that seem the same are not"),
        (still.value >= STILL, f"{1 - still.value:.1%} of what stands still moves"),
        (lost <= LEFT_OUT, f"{lost:.1%} of the steps are in no factor"),
    )
    because = [text for right, text in checks if not right]
    because += [_about(a, s, n) for a, s, n in zip(actions, of_actions, counts.tolist(), strict=True) if _poor(s)]
    because += [f"action {a} was seen to change nothing here, but elsewhere" for a in known if a not in actions]
    undone = _undone(moves, read.levels, read.steps)
    for a, r, w in zip(actions, right.tolist(), wrong.tolist(), strict=True):
        if w >= FEW_EPISODES and w > MIXED * (r + w):
            because.append(f"after action {a} states look like earlier ones that they are not")
        elif a in undone and r < FEW_EPISODES:
            because.append(f"action {a} never was seen to be undone, though other steps look like its way back")
    because += doubts
    along = Share.of_means(moves.by_action(direction_share(read.coordinates))[1], counts)
    return Certificate(
        certified=not because,
        because=tuple(because),
        kind="levels",
        one_step=one,
        no_step=none,
        injective=injective,
        again=again,
        still=still,
        worst=Share.of(float("nan"), 0) if worst is None else of_actions[worst],
        worst_action=None if worst is None else actions[worst],
        along=along,
    )


def no_levels(because: str, kind: str = "levels", along: Share | None = None) -> Certificate:
    """Where there is nothing to count."""
    unknown = Share.of(float("nan"), 0)
    shares = {**dict.fromkeys(SHARES, unknown), "along": along or unknown}
    return Certificate(False, (because,), kind, worst_action=None, **shares)


def direction_share(change: Float[np.ndarray, "T m"]) -> Float[np.ndarray, " T"]:
    """How much of each change lies along one axis: 1 if it is all along one, 1 / m if it is spread evenly."""
    size = np.abs(change)
    return size.max(1, initial=0) / np.maximum(size.sum(1), 1e-12)


def _poor(share: Share) -> bool:
    return share.value < ACTION or share.low < ACTION_LOW


def _about(action: int, share: Share, count: int) -> str:
    if share.value < ACTION:
        return f"only {share.value:.1%} of what action {action} changes is one step (needs {ACTION:.0%})"
    return f"action {action} changes something {count} times only: too few to judge by"


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _pairs_told_apart(
    moves: Moves, levels: Int[np.ndarray, "T m"], rng: np.random.Generator
) -> Bool[np.ndarray, " pairs"]:
    """Of random pairs of states of one episode whose pictures differ, whether their numbers differ too.

    Pairs are drawn without regard to which: no more than there are, or a few would look like many.
    """
    order = np.argsort(moves.episode, kind="stable")
    _, first, count = np.unique(moves.episode[order], return_index=True, return_counts=True)
    there_are = int((count * (count - 1) // 2).sum())
    if not there_are:
        return np.zeros(0, bool)
    weights = count * (count - 1) / (2 * there_are)
    episode = rng.choice(len(first), min(PAIRS, there_are), p=weights)
    one = (rng.random(len(episode)) * count[episode]).astype(int)
    other = (one + 1 + (rng.random(len(episode)) * (count[episode] - 1)).astype(int)) % count[episode]
    a, b = order[first[episode] + one], order[first[episode] + other]
    differ = moves.picture[a] != moves.picture[b]
    return (levels[a[differ]] != levels[b[differ]]).any(1)


def _returns(
    moves: Moves, levels: Int[np.ndarray, "T m"]
) -> tuple[Int[np.ndarray, " E"], Int[np.ndarray, " E"], Share]:
    """Pairs of visits of one episode with the same numbers, and changes between.

    Of each action that changes anything between: the episodes in which pictures are the same too, and those in which
    they are not. Then the share of all pairs that are the same, as sure as the number of episodes lets it be. Random
    pairs hardly ever meet this: a key that counts one up and a door that counts it down again are seen when an agent
    comes back to where it was. Counted are episodes, since one misreading makes many such pairs.
    """
    order = np.argsort(moves.episode, kind="stable")
    episode, picture, code = moves.episode[order], moves.picture[order], levels[order]
    actions = moves.effective(1)
    acted = np.array([moves.of_action(a)[order] for a in actions]).reshape(len(actions), len(order)).T
    before = np.concatenate([np.zeros((1, len(actions)), np.int64), np.cumsum(acted, axis=0, dtype=np.int64)])
    found, pairs = [np.zeros((0, 3), np.int64)], np.zeros(2)
    for lag in range(1, min(LAGS, len(order) - 1) + 1):
        rows = np.flatnonzero((episode[lag:] == episode[:-lag]) & (code[lag:] == code[:-lag]).all(1))
        rows = rows[(before[rows + lag] > before[rows]).any(1)]
        same = picture[rows + lag] == picture[rows]
        pairs += np.bincount(same, minlength=2)
        pair, which = np.nonzero(before[rows + lag] > before[rows])
        found.append(np.stack([which, same[pair], episode[rows[pair]]], axis=1))
    which, same, where = np.unique(np.concatenate(found), axis=0).T
    right, wrong = (np.bincount(which[same == s], minlength=len(actions)) for s in (1, 0))
    return right, wrong, Share.of(float(pairs[1] / pairs.sum()) if pairs.any() else float("nan"), len(np.unique(where)))


def _undone(moves: Moves, levels: Int[np.ndarray, "T m"], steps: Int[np.ndarray, "T m"]) -> list[int]:
    """Actions whose steps the code has forth and back: at the same level of an axis others cross the other way."""
    one = moves.changed & (np.abs(steps).sum(1) == 1)  # the others are misread, or more than one thing
    rows, axes = np.nonzero(steps * one[:, None])
    sign, level = np.sign(steps[rows, axes]), np.minimum(levels[rows, axes], (levels + steps)[rows, axes])
    place = np.unique(np.stack([axes, level], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    ways = np.stack([np.bincount(place[sign == s], minlength=place.max(initial=-1) + 1) for s in (-1, 1)])
    against = ways[(sign < 0).astype(int), place]
    often = (against >= FEW_EPISODES) & (against > BACK * ways[(sign > 0).astype(int), place])
    by = moves.action[rows]
    return [a for a in moves.effective(1) if (by == a).any() and often[by == a].mean() > 0.5]
