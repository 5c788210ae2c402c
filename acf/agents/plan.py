"""Planning on a model: the states it can reach, and the shortest ways between them."""

import numpy as np
from jaxtyping import Bool, Float, Int

from acf.agents.model import FactoredModel
from acf.errors import AcfError

FAR = 10**6  # steps to what cannot be reached
MOST = 400_000


class Ranges:
    """The levels seen so far: a state is a number, and what a model predicts beyond them is none."""

    def __init__(self, levels: Int[np.ndarray, "n K"]):
        self.low, self.high = levels.min(0), levels.max(0)

    def widen(self, levels: Int[np.ndarray, "n K"]) -> bool:
        low, high = np.minimum(self.low, levels.min(0)), np.maximum(self.high, levels.max(0))
        wider = bool((low < self.low).any() or (high > self.high).any())
        self.low, self.high = low, high
        return wider

    def code(self, levels: Int[np.ndarray, "n K"]) -> Int[np.ndarray, " n"]:
        """-1 for what is out of range."""
        inside = ((levels >= self.low) & (levels <= self.high)).all(-1)
        return np.where(inside, (levels - self.low) @ self._radix(), -1)

    def levels(self, code: Int[np.ndarray, " n"]) -> Int[np.ndarray, "n K"]:
        return code[:, None] // self._radix() % (self.high - self.low + 1) + self.low

    def _radix(self) -> Int[np.ndarray, " K"]:
        width = self.high - self.low + 1
        if np.prod(width.astype(float)) > 2**62:
            raise AcfError(
                f"expected factors with at most 2**62 combinations of levels, got {width.tolist()} levels. "
                "Leave out factors that the task does not need."
            )
        return np.concatenate([[1], np.cumprod(width)[:-1]])


class Reachable:
    """All states that the model says can be reached from the given ones, and what each action leads to."""

    def __init__(self, model: FactoredModel, ranges: Ranges, starts: Int[np.ndarray, "n K"]):
        self.model, self.ranges = model, ranges
        self._codes = np.unique(ranges.code(starts))
        self._next = np.zeros((0, model.A), np.int64)  # of `states`, in the order they were found
        self._found = np.zeros(0, np.int64)
        self._versions = model.versions.copy()
        self.update()

    def update(self) -> None:
        """Follows the model, of which only the actions that changed are asked again."""
        for action in np.flatnonzero(self._versions != self.model.versions):
            self._next[:, action] = self._successors(self._found, int(action))
        self._versions = self.model.versions.copy()
        new = self._codes[:0] if len(self._found) else self._codes
        known = np.sort(self._found)
        new = np.setdiff1d(np.append(new, self._next[self._next >= 0]), known)
        while len(new):
            fresh = np.stack([self._successors(new, a) for a in range(self.model.A)], axis=1)
            self._found, self._next = np.concatenate([self._found, new]), np.concatenate([self._next, fresh])
            if len(self._found) > MOST:
                raise AcfError(
                    f"expected at most {MOST:,} states to plan over, found more; there are too many factors, "
                    "or their model is wrong"
                )
            known = np.sort(self._found)
            ahead = np.unique(fresh[fresh >= 0])
            new = ahead[~_contains(known, ahead)]
        self._sorter = np.argsort(self._found)
        self.codes = self._found[self._sorter]
        self.states = self.ranges.levels(self.codes)
        self.next = self.index(self._next[self._sorter].ravel()).reshape(-1, self.model.A)

    def index(self, codes: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The rows of these states; the number of states where they are none of them."""
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[place] == codes, place, len(self.codes))

    def _successors(self, codes: Int[np.ndarray, " n"], action: int) -> Int[np.ndarray, " n"]:
        return self.ranges.code(self.model.predict(self.ranges.levels(codes), action))


def _contains(known: Int[np.ndarray, " n"], codes: Int[np.ndarray, " m"]) -> Bool[np.ndarray, " m"]:
    place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return known[place] == codes


def steps_to(goal: Bool[np.ndarray, " N"], following: Int[np.ndarray, "N A"]) -> Int[np.ndarray, " N+1"]:
    """Shortest number of steps to a goal from every state; the last entry stands for states that are not there.

    >>> steps_to(np.array([False, False, True]), np.array([[0, 1], [0, 2], [3, 2]])).tolist()
    [2, 1, 0, 1000000]
    """
    steps = np.append(np.where(goal, 0, FAR), FAR)
    while True:
        better = np.where(goal, 0, np.minimum(steps[:-1], 1 + steps[following].min(1)))
        if (better == steps[:-1]).all():
            return steps
        steps[:-1] = better


def richest_way(start: int, following: Int[np.ndarray, "N A"], worth: Float[np.ndarray, "N A"]) -> list[int]:
    """The actions of the way that gains most a step, of all shortest ways and one action more.

    `worth[s, a]` is gained by action a in state s. Ways without loops are taken only, since what is tried once is not
    new a second time.

    >>> nothing = np.zeros((3, 1))
    >>> richest_way(0, np.array([[1], [2], [2]]), nothing + [[0], [0], [9]])
    [0, 0, 0]
    >>> richest_way(0, np.array([[1], [2], [2]]), nothing + [[4], [0], [9]])
    [0, 0, 0]
    >>> richest_way(0, np.array([[1], [2], [2]]), nothing + [[5], [0], [9]])
    [0]
    """
    n, A = following.shape
    seen, came, gained = np.zeros(n, bool), np.zeros(n, np.int64), np.zeros(n)
    seen[start] = True
    front, depth, best = np.array([start]), 1, (-1.0, 0, 0)
    while len(front):
        gains = (gained[front, None] + worth[front]).ravel()
        top = int(gains.argmax())
        best = max(best, (gains[top] / depth, int(front[top // A]), top % A))
        order = np.argsort(-gains, kind="stable")  # of several ways to a state the richest comes first
        ahead, first = np.unique(following[front].ravel()[order], return_index=True)
        new = (ahead < n) & ~seen[np.minimum(ahead, n - 1)]
        by, ahead = order[first[new]], ahead[new]
        came[ahead], gained[ahead], seen[ahead] = front[by // A] * A + by % A, gains[by], True
        front, depth = ahead, depth + 1
    _, state, action = best
    actions = [action]
    while state != start:
        state, action = divmod(int(came[state]), A)
        actions.append(action)
    return actions[::-1]
