"""The whole way from latents to factors."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from acf.factors.certificate import Certificate, certify
from acf.factors.levels import Levels, fit_levels
from acf.factors.moves import Moves
from acf.factors.regroup import Factor, regroup
from acf.factors.steps import choose_basis, find_steps


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


def find_factors(train: Moves, held_out: Moves, n_actions: int) -> Factors:
    """Found on training episodes, judged on held-out ones."""
    steps, unit = find_steps(train, n_actions)
    basis = choose_basis(steps, unit)
    levels = fit_levels(basis, np.concatenate([train.z, train.z_next]))
    now, then = levels.read(train.z), levels.read(train.z_next)
    certificate = certify(held_out, levels.read(held_out.z), levels.read(held_out.z_next), basis.carries)
    return Factors(levels, regroup(train, now, then, n_actions), certificate)
