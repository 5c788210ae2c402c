"""Random worlds, and codes that are right, mixed, out of order or random: what is certified is exact."""

from itertools import product

import numpy as np
import pytest
from hand_made import World, exact, found_in, latents
from worlds import walk

OFTEN = 30  # moves across each cut: what is never moved cannot be found


def random_world(rng: np.random.Generator, seed: int) -> tuple[World, tuple[str, ...]]:
    """Up to three factors, chains and rings; what an action moves may hang on another factor. And which are rings."""
    F, A = int(rng.integers(1, 4)), int(rng.integers(2, 6))
    levels, ring = rng.integers(2, 5, F), rng.random(F) < 0.3
    moves, sign, by = rng.integers(0, F, (A, 2)), rng.choice([-1, 1], (A, 2)), rng.integers(0, F, A)
    same = (moves == by[:, None]).any(1)  # nothing does other things at other levels of the factor it moves
    moves[same, 1], sign[same, 1] = moves[same, 0], sign[same, 0]

    def rule(state, action):
        n = int(state[by[action]] > 0)
        k, out = moves[action, n], list(state)
        value = state[k] + sign[action, n]
        out[k] = int(value % levels[k] if ring[k] else min(max(value, 0), levels[k] - 1))
        return tuple(out)

    world = walk(rule, list(product(*map(range, levels.tolist()))), A, episodes=300, horizon=25, seed=seed)
    return world, tuple(name for name, is_ring in zip(world.names, ring, strict=True) if is_ring)


def moved(world: World) -> bool:
    """Whether every cut of every factor is crossed."""
    now, then = world.factors[world.i], world.factors[world.j]
    for k in range(now.shape[1]):
        lower = np.minimum(now, then)[now[:, k] != then[:, k], k]
        cuts = int(world.factors[:, k].max())
        if not len(lower) or np.bincount(lower, minlength=cuts)[:cuts].min() < OFTEN:
            return False
    return True


def random_code(world: World, rng: np.random.Generator) -> np.ndarray:
    true = world.factors
    F, kind = true.shape[1], rng.integers(0, 5)
    if kind == 0:
        return true
    if kind == 1:
        return true @ rng.integers(-2, 3, (F, int(rng.integers(1, F + 2))))
    if kind == 2:
        return np.stack([rng.permutation(int(column.max()) + 1)[column] for column in true.T], axis=1)
    if kind == 3:
        state = np.unique(true, axis=0, return_inverse=True)[1].reshape(-1)
        return rng.integers(0, 3, (state.max() + 1, F + 1))[state]
    return np.concatenate([true // 2, (true + 1) // 2], axis=1)


@pytest.mark.parametrize("seed", range(2))
def test_what_is_certified_is_exact(seed):
    rng = np.random.default_rng(seed)
    certified = 0
    for n in range(50):
        world, rings = random_world(rng, n)
        if not moved(world):
            continue
        z = latents(world, random_code(world, rng), rotate=True)
        found = found_in(world, z)
        assert exact(found, world, z, rings) or not found.certificate.certified, (n, found.describe(world.action_names))
        certified += found.certificate.certified
    assert certified > 2
