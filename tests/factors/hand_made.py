"""Codes written by hand from true factors, and latents that show them: what an encoder might have learned."""

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt8

import acf
from acf.domains.lamp import Lamp
from acf.factors import Factors, Moves, find_factors

UNIT, NOISE, CONSTANT, LATENTS = 3.0, 0.1, 0.3, 12
STARTS = {"doorkey": "balanced+facing"}


class World(NamedTuple):
    """Transitions of a domain: `factors` of every frame, and which frames are alike."""

    factors: Int[np.ndarray, "M F"]
    """The controllable ones, as levels."""
    all_factors: Float[np.ndarray, "M G"]
    picture: Int[np.ndarray, " M"]
    i: Int[np.ndarray, " T"]
    j: Int[np.ndarray, " T"]
    action: Int[np.ndarray, " T"]
    episode: Int[np.ndarray, " M"]
    action_names: tuple[str, ...]
    names: tuple[str, ...]

    def columns(self, *names: str) -> list[np.ndarray]:
        return [self.factors[:, self.names.index(name)] for name in names]


def collected(name: str, transitions: int) -> acf.Transitions:
    domain = Lamp(flip=0.0) if name == "still_lamp" else acf.make(name)
    return acf.collect(domain, transitions, horizon=30, start=STARTS.get(name, "balanced"))


def pictures(name: str, transitions: int) -> UInt8[np.ndarray, "M H W C"]:
    """Not kept: they are large."""
    return np.asarray(collected(name, transitions).frames)


@cache
def world(name: str, transitions: int = 30_000) -> World:
    data = collected(name, transitions)
    controllable = np.flatnonzero(data.controllable)
    pixels = data.frames.reshape(len(data.frames), -1).astype(np.int64)
    mixed = pixels @ np.random.default_rng(0).integers(1, 2**40, pixels.shape[1])
    assert data.factors is not None
    return World(
        factors=np.round(data.factors[:, controllable]).astype(np.int64),
        all_factors=np.asarray(data.factors),
        picture=np.unique(mixed, return_inverse=True)[1],
        i=np.asarray(data.i),
        j=np.asarray(data.j),
        action=np.asarray(data.action),
        episode=np.asarray(data.episode),
        action_names=data.action_names,
        names=tuple(data.factor_names[k] for k in controllable),
    )


def latents(
    world: World,
    code: np.ndarray | list[np.ndarray],
    *,
    rotate: bool = False,
    units: float | np.ndarray = UNIT,
    noise: float = NOISE,
    constant: float = CONSTANT,
    K: int = LATENTS,
    seed: int = 0,
) -> Float[np.ndarray, "M K"]:
    """Columns of a code as latents: scaled, rotated into K dimensions, with noise and a constant of each episode."""
    code = np.stack(code, axis=1) if isinstance(code, list) else code
    rng = np.random.default_rng(seed)
    z = code * np.broadcast_to(units, code.shape[1:])
    if rotate:
        z = z @ np.linalg.qr(rng.normal(size=(K, K)))[0][: z.shape[1]]
    constants = rng.uniform(-constant, constant, (world.episode.max() + 1, z.shape[1]))
    return z + constants[world.episode] + noise * rng.normal(size=z.shape)


def split(world: World, z: Float[np.ndarray, "M K"], held_out: float = 0.4) -> tuple[Moves, Moves]:
    """Moves of training and of held-out episodes."""
    last = world.episode[world.i] >= (1 - held_out) * (world.episode.max() + 1)
    return moves(world, z, ~last), moves(world, z, last)


def moves(world: World, z: Float[np.ndarray, "M K"], rows: np.ndarray | None = None) -> Moves:
    rows = np.ones(len(world.i), bool) if rows is None else rows
    i, j = world.i[rows], world.j[rows]
    changed = world.picture[i] != world.picture[j]
    return Moves(z[i], z[j], world.action[rows], world.episode[i], changed, world.picture[i])


def found_in(world: World, z: Float[np.ndarray, "M K"], held_out: float = 0.4) -> Factors:
    train, judge = split(world, z, held_out)
    return find_factors(train, judge, len(world.action_names))


def found_by_code(world: World, code: np.ndarray | list[np.ndarray], **how) -> Factors:
    return found_in(world, latents(world, code, **how))


def exact(found: Factors, world: World, z: Float[np.ndarray, "M K"], cycles: tuple[str, ...] = ("dir",)) -> bool:
    """Whether the factors read are the true ones, each once: up to order, sign and where they count from."""
    read = found.read(z)
    if read.shape[1] != world.factors.shape[1]:
        return False
    true = [read_as(read, column, name in cycles) for column, name in zip(world.factors.T, world.names, strict=True)]
    return sorted(n for one in true for n in one) == list(range(read.shape[1])) and all(len(one) == 1 for one in true)


def read_as(read: Int[np.ndarray, "M F"], true: Int[np.ndarray, " M"], cycle: bool) -> list[int]:
    """The columns that are this factor."""
    out = []
    for n, column in enumerate(read.T):
        levels = int(true.max()) + 1
        shifts = [sign * true - column for sign in (1, -1)]
        shifts = [shift % levels if cycle else shift for shift in shifts]
        if column.min() >= 0 and any((shift == shift[0]).all() for shift in shifts):
            out.append(n)
    return out
