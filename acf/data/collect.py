"""`collect`: transitions from a domain, stepped and rendered on the device, or from a Gymnasium environment."""

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from acf.data.blocks import Block, Header, Progress, keep, there
from acf.data.environments import Asked, collect_environment, is_environment
from acf.data.minari import collect_minari
from acf.data.policies import POLICIES
from acf.data.transitions import Transitions
from acf.domains import make
from acf.domains.base import Domain
from acf.errors import AcfError
from acf.registry import load

if TYPE_CHECKING:
    import gymnasium

BLOCK = 256  # episodes a call of the compiled program; its frames are all the memory that collecting needs on top


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
    def header(self) -> Header:
        domain = self.domain
        shape = jax.eval_shape(lambda key: domain.render(domain.sample(key)), jax.random.key(0)).shape
        named = domain.action_names, domain.noop, domain.factor_names, domain.controllable
        return Header(shape, *named, self.source)


def collect(
    domain: "Domain | type[Domain] | str | gymnasium.Env | gymnasium.vector.VectorEnv",
    transitions: int,
    *,
    seed: int = 0,
    start: str | None = None,
    horizon: int | None = None,
    policy: str | Callable[[Any], Any] = "uniform",
    noop: int | str | None = "auto",
    size: int | None = None,
    gray: bool = False,
    stack: int = 1,
    factors: str | Callable[[Any], Any] | None = None,
    render: bool = False,
    out: str | Path | None = None,
    progress: Progress = lambda done, total: None,
) -> Transitions:
    """Act in a domain or in a Gymnasium environment until there are `transitions`.

    A domain is rolled out from `start` states (default `balanced`) for `horizon` steps at a time (default 10): balanced
    starts and short rollouts keep rare states in the data, a long random walk forgets where it started.

    An environment (an object, a vector of them, `gym:ID`, or `module:Name` of what makes one) is played from reset to
    the end of its own episodes, or for `horizon` steps at a time. Of `minari:ID` the first `transitions` are read. The
    arguments from `noop` on are for these alone:

    Args:
        policy: of a domain `uniform` or `skewed`; of an environment `uniform`, a function from its observation to an
            action, `module:name` of one, or `sb3:ALGORITHM:FILE`.
        noop: the action that does nothing, by name or number; None where there is none; `auto`: the one that is called
            so, or None with a warning.
        size: height and width of the frames. Pixels are means over areas.
        gray: one channel instead of three.
        stack: that many consecutive pictures in the channels of a frame.
        factors: where the true state variables are: `info:KEY`, or a function of the environment, or its `module:name`.
        render: frames are what the environment renders; by itself for a name whose observation is no picture.
        out: written there block by block and opened memory-mapped; data that is already there from the same arguments
            is opened as it is. Without it the data stays in memory.
    """
    asked = Asked(transitions, seed, horizon, policy, noop, size, gray, stack, factors, render)
    if _is_of_environment(domain):
        if start is not None:
            raise AcfError(f"start: expected none for an environment, which starts as it resets; found {start!r}")
        if isinstance(domain, str) and domain.startswith("minari:"):
            return collect_minari(domain, asked, out, progress)
        return collect_environment(domain, asked, out, progress)
    if (noop, size, gray, stack, factors, render) != ("auto", None, False, 1, None, False):
        raise AcfError("noop, size, gray, stack, factors and render are for environments: a domain has its own")
    plan = _plan(domain, transitions, seed, start or "balanced", 10 if horizon is None else horizon, policy)
    if found := there(out, plan.source):
        return found
    return keep(plan.header, _blocks(plan, progress), out)


def _is_of_environment(domain: Any) -> bool:
    """A Gymnasium environment, or the name of one; `module:Name` may name a domain too."""
    if not isinstance(domain, str):
        return is_environment(domain)
    if ":" not in domain or domain.startswith(("gym:", "minari:")):
        return ":" in domain
    named = load("environment", domain)
    return not isinstance(named, Domain) and not (isinstance(named, type) and issubclass(named, Domain))


def _plan(domain: Any, transitions: int, seed: int, start: str, horizon: int, policy: Any) -> Plan:
    """Bad arguments are found here, before any work."""
    domain = _made(domain)
    domain.check_start(start)
    if transitions < 1 or horizon < 1:
        raise AcfError(f"expected at least one transition and a horizon of at least 1, got {transitions} and {horizon}")
    if policy not in POLICIES:
        raise AcfError(f"unknown policy {policy!r}: expected one of {', '.join(POLICIES)}")
    return Plan(domain, transitions, seed, start, horizon, policy)


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


def _made(domain: Any) -> Domain:
    if not isinstance(domain, str | type | Domain):
        raise AcfError(
            f"expected a domain, a Gymnasium environment or a name of one, found {type(domain).__name__}; data of "
            "another kind goes through Transitions.from_arrays or acf.data.Writer"
        )
    try:
        return make(domain)
    except AcfError as error:
        raise AcfError(f"{error}; or an environment: gym:ID, minari:ID") from None


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
