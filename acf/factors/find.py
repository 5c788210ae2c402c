"""The whole way from latents to factors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from acf.errors import AcfError
from acf.factors.basis import choose_basis
from acf.factors.certificate import Certificate, Read, certify, direction_share, no_levels
from acf.factors.levels import Levels, fit_levels
from acf.factors.moves import Moves
from acf.factors.regroup import Factor, regroup
from acf.factors.share import Share
from acf.factors.steps import WIDE, find_steps, independent, straightened


@dataclass(frozen=True, eq=False)
class Factors:
    """How factors are read from latents, and whether it is right to."""

    levels: Levels
    factors: tuple[Factor, ...]
    certificate: Certificate

    def read(self, z: Float[np.ndarray, "n K"]) -> Int[np.ndarray, "n F"] | Float[np.ndarray, "n F"]:
        """The factors' values; in a world that moves continuously, coordinates."""
        if self.levels.continuous:
            return self.levels.coordinates(z)
        levels = self.levels.read(z)
        columns = [factor.read(levels) for factor in self.factors]
        return np.stack(columns, axis=1) if columns else np.zeros((len(z), 0), np.int64)

    def describe(self, action_names: tuple[str, ...]) -> tuple[str, ...]:
        """Each factor in words: what moves it, and what it looks like."""
        return tuple(factor.describe(action_names) for factor in self.factors)

    def to_json(self) -> dict[str, Any]:
        factors = [factor.to_json() for factor in self.factors]
        return {"levels": self.levels.to_json(), "factors": factors, "certificate": self.certificate.to_json()}

    @staticmethod
    def from_json(found: dict[str, Any]) -> "Factors":
        """As `to_json` gave it; anything else is refused."""
        try:
            levels = Levels.from_json(found["levels"])
            factors = tuple(Factor.from_json(factor) for factor in found["factors"])
            certificate = Certificate.from_json(found["certificate"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise AcfError(f"factors: expected what Factors.to_json() writes, found something else ({error})") from None
        axes = levels.weights.shape[1]
        if not all(0 <= piece.axis < axes and piece.low <= piece.high for f in factors for piece in f.pieces):
            raise AcfError(f"factors: expected pieces of the {axes} axes there are, found {found['factors']}")
        return Factors(levels, factors, certificate)


def find_factors(train: Moves, held_out: Moves, n_actions: int) -> Factors:
    """Found on training episodes, judged on held-out ones."""
    if not train.finite or not held_out.finite:
        return _nothing(train, "the latents are not finite")
    steps = find_steps(train, n_actions)
    if not steps:
        return _nothing(train, "no steps were found: nothing that actions do repeats itself")
    basis = choose_basis(steps, train)
    levels = fit_levels(basis, train)
    if levels.continuous:
        return _directions(train, held_out, n_actions)
    now, then = levels.read(train.z), levels.read(train.z_next)
    factors, doubts = regroup(train, now, then, levels.rings, n_actions)
    doubts += tuple(f"action {a} does steps that are no whole number of others" for a in basis.broken)
    found = Factors(levels, factors, no_levels("not judged yet"))
    now, then = levels.read(held_out.z), levels.read(held_out.z_next)
    read = Read(
        coordinates=levels.coordinates(held_out.z_next) - levels.coordinates(held_out.z),
        levels=now @ levels.to_steps,
        steps=levels.steps_between(now, then),
        factors=(found.read(held_out.z) != found.read(held_out.z_next)).any(1),
    )
    return Factors(levels, factors, certify(held_out, read, train.effective(1), doubts))


def _directions(train: Moves, held_out: Moves, n_actions: int) -> Factors:
    """A world that moves continuously, or latents in which nothing repeats itself: directions are all there is."""
    steps = independent(find_steps(train, n_actions, same=WIDE))
    if not steps:
        return _nothing(train, "no steps were found: nothing that actions do repeats itself")
    weights = np.linalg.pinv(straightened(steps, train))
    m = len(steps)
    offset = -np.median(train.z @ weights, axis=0)
    levels = Levels(weights, offset, ((),) * m, np.eye(m, dtype=np.int64), (0,) * m, continuous=True)
    _, means, counts = held_out.by_action(direction_share(held_out.change @ weights))
    along = Share.of_means(means, counts)
    why = f"moves have no levels that could be counted; {along.value:.0%} of what actions change is along one direction"
    return Factors(levels, (), no_levels(why, "directions", along))


def _nothing(moves: Moves, why: str) -> Factors:
    K = moves.z.shape[1]
    levels = Levels(np.zeros((K, 0)), np.zeros(0), (), np.zeros((0, 0), np.int64), ())
    return Factors(levels, (), no_levels(why))
