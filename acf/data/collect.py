"""Transitions from a domain: short rollouts of a behaviour policy, stepped and rendered on the device."""

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from acf.data.checks import DataError
from acf.data.policies import POLICIES
from acf.data.store import Writer, read
from acf.data.transitions import Transitions
from acf.domains import make
from acf.domains.base import Domain
from acf.errors import AcfError

BLOCK = 256  # episodes a call of the compiled program; its frames are all the memory that collecting needs on top

Progress = Callable[[int, int], None]  # transitions done, transitions in all


class Plan(NamedTuple):
    """What to collect. The same plan gives the same data."""

    domain: Domain
    transitions: int
    seed: int
    start: str
    horizon: int
    policy: str

    @property
    def source(self) -> dict[str, Any]:
        options = dataclasses.asdict(self.domain)  # pyright: ignore[reportArgumentType]
        return {**self._asdict(), "domain": self.domain.name, "options": options}

    @property
    def n_frames(self) -> int:
        return self.transitions + -(-self.transitions // self.horizon)  # an episode of n steps has n + 1 frames


class Block(NamedTuple):
    """Some consecutive episodes; `i` and `j` index the frames of the whole data set."""

    frames: UInt8[np.ndarray, "M H W C"]
    i: Int[np.ndarray, " T"]
    action: Int[np.ndarray, " T"]
    j: Int[np.ndarray, " T"]
    episode: Int[np.ndarray, " M"]
    factors: Float[np.ndarray, "M K"]


def collect(
    domain: Domain | str,
    transitions: int,
    *,
    seed: int = 0,
    start: str = "balanced",
    horizon: int = 10,
    policy: str = "uniform",
    out: str | Path | None = None,
    progress: Progress = lambda done, total: None,
) -> Transitions:
    """Roll out `policy` from `start` states for `horizon` steps at a time until there are `transitions` of them.

    With `out` the data is written there block by block and opened memory-mapped, and data that is already there from
    the same arguments is opened as it is; without, it stays in memory. Balanced starts and short rollouts keep rare
    states in the data: a long random walk forgets where it started.
    """
    plan = _plan(domain, transitions, seed, start, horizon, policy)
    if out is None:
        return _in_memory(plan, progress)
    out = Path(out)
    if out.exists() and any(out.iterdir()):
        return _reuse(plan, out)
    with Writer(
        out,
        _frame_shape(plan.domain),
        action_names=plan.domain.action_names,
        noop=plan.domain.noop,
        factor_names=plan.domain.factor_names,
        controllable=plan.domain.controllable,
        source=plan.source,
    ) as writer:
        for block in _blocks(plan, progress):
            writer.append(*block)
    return read(out, verify=False)  # the writer has just checked it all


def _plan(domain: Domain | str, transitions: int, seed: int, start: str, horizon: int, policy: str) -> Plan:
    """Bad arguments are found here, before any work."""
    domain = make(domain) if isinstance(domain, str) else domain
    domain.check_start(start)
    if transitions < 1 or horizon < 1:
        raise AcfError(f"expected at least one transition and a horizon of at least 1, got {transitions} and {horizon}")
    if policy not in POLICIES:
        raise AcfError(f"unknown policy {policy!r}: expected one of {', '.join(POLICIES)}")
    return Plan(domain, transitions, seed, start, horizon, policy)


def _reuse(plan: Plan, path: Path) -> Transitions:
    found = Transitions.open(path)
    if found.source != plan.source:
        changed = [
            f"{k}: {found.source.get(k)!r} there, {v!r} asked"
            for k, v in plan.source.items()
            if found.source.get(k) != v
        ]
        raise DataError(f"{path} holds other data ({'; '.join(changed)}). Choose another folder or remove this one.")
    return found


def _in_memory(plan: Plan, progress: Progress) -> Transitions:
    frames = np.empty((plan.n_frames, *_frame_shape(plan.domain)), np.uint8)
    small = []
    for block in _blocks(plan, progress):
        first = block.i[0]
        frames[first : first + len(block.frames)] = block.frames
        small.append(block[1:])
    i, action, j, episode, factors = (np.concatenate(parts) for parts in zip(*small, strict=True))
    domain = plan.domain
    return Transitions(
        frames=frames,
        i=i,
        action=action,
        j=j,
        episode=episode,
        action_names=domain.action_names,
        noop=domain.noop,
        factors=factors,
        factor_names=domain.factor_names,
        controllable=domain.controllable,
        source=plan.source,
    )


def _blocks(plan: Plan, progress: Progress) -> Iterator[Block]:
    key, h = jax.random.key(plan.seed), plan.horizon
    done = 0
    while done < plan.transitions:
        first = done // h  # episode
        # An episode's key depends on its number alone, so the block size does not show in the data.
        keys = jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(first, first + BLOCK))
        frames, factors, action = map(np.asarray, _rollouts(plan.domain, plan.start, h, plan.policy, keys))
        n = min(BLOCK * h, plan.transitions - done)
        m = n + -(-n // h)  # the last episode may be cut short
        t = np.arange(done, done + n, dtype=np.int32)
        i = t + t // h
        episode = np.repeat(np.arange(first, first + BLOCK, dtype=np.int32), h + 1)[:m]
        flat = frames.reshape(-1, *frames.shape[2:])[:m]
        yield Block(flat, i, action.reshape(-1)[:n], i + 1, episode, factors.reshape(-1, factors.shape[-1])[:m])
        done += n
        progress(done, plan.transitions)


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _rollouts(domain: Domain, start: str, horizon: int, policy: str, keys: PRNGKeyArray) -> tuple[Array, Array, Array]:
    def episode(key: PRNGKeyArray) -> tuple[Array, Array, Array]:
        start_key, key = jax.random.split(key)
        state = domain.sample(start_key, start)

        def step(state: Any, key: PRNGKeyArray):
            act_key, step_key = jax.random.split(key)
            logits = POLICIES[policy](domain.factors(state), domain.n_actions)
            action = jax.random.categorical(act_key, logits).astype(jnp.int32)
            return domain.step(step_key, state, action), (state, action)

        last, (states, actions) = jax.lax.scan(step, state, jax.random.split(key, horizon))
        states = jax.tree.map(lambda s, end: jnp.concatenate([s, end[None]]), states, last)
        return jax.vmap(domain.render)(states), jax.vmap(domain.factors)(states), actions

    return jax.vmap(episode)(keys)


def _frame_shape(domain: Domain) -> tuple[int, ...]:
    return jax.eval_shape(lambda key: domain.render(domain.sample(key)), jax.random.key(0)).shape
