"""A world whose densities are known: `s' = s + δ_a + σ ε` in two dimensions, seen without an encoder."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from acf.methods.acf import ACF, Latents, losses
from acf.methods.base import Spec


@dataclass(frozen=True)
class Toy:
    """Four directions and, among them, the no-op."""

    delta: tuple[tuple[float, float], ...] = ((0.4, 0.0), (-0.4, 0.0), (0.0, 0.0), (0.0, 0.4), (0.0, -0.4))
    noop: int = 2
    sigma: float = 0.4

    @property
    def n_actions(self) -> int:
        return len(self.delta)

    def model(self) -> ACF:
        spec = Spec((16, 16, 1), self.n_actions, self.noop, latents=2, depth=1, hidden=32)
        return ACF(spec, rngs=nnx.Rngs(0))

    def log_policy(self, s: Float[Array, "*N 2"], skew: Float[Array, ""]) -> Float[Array, "*N A"]:
        """`π(a|s) ∝ exp(skew · (s₀ cos φ_a + s₁ sin φ_a))`, an angle for each action: uniform if not skewed."""
        angles = 1 + 2 * jnp.pi * jnp.arange(self.n_actions) / self.n_actions
        return jax.nn.log_softmax(skew * s @ jnp.stack([jnp.cos(angles), jnp.sin(angles)]))

    def sample(self, key: PRNGKeyArray, n: int, skew: Float[Array, ""]) -> Latents:
        s_key, a_key, eps_key = jax.random.split(key, 3)
        s = jax.random.uniform(s_key, (n, 2), minval=-1, maxval=1)
        action = jax.random.categorical(a_key, self.log_policy(s, skew))
        return Latents(s, action, s + jnp.array(self.delta)[action] + self.sigma * jax.random.normal(eps_key, (n, 2)))

    def log_ratios(self, s: Float[Array, "*N 2"], s_next: Float[Array, "*N 2"]) -> Float[Array, "*N A"]:
        """`log T(s'|s,a) / T(s'|s,a₀)`, exactly."""
        delta = jnp.array(self.delta)
        return ((s_next - s) @ delta.T - (delta**2).sum(1) / 2) / self.sigma**2

    def points(self, states: int = 50, nexts: int = 40) -> tuple[Float[Array, "S T 2"], Float[Array, "S T 2"]]:
        """For each of some states, next states as all actions, equally often, make them."""
        s_key, eps_key = jax.random.split(jax.random.key(100))
        s = jax.random.uniform(s_key, (states, 1, 2), minval=-1, maxval=1)
        noise = jax.random.normal(eps_key, (states, nexts, 2))
        delta = jnp.array(self.delta)[jnp.arange(nexts) % self.n_actions]
        return jnp.broadcast_to(s, noise.shape), s + delta + self.sigma * noise


def learn_ratios(
    toy: Toy,
    model: ACF,
    weights: dict[str, float],
    *,
    skew: Float[Array, ""],
    corrected: Float[Array, ""],
    steps: int,
    batch_size: int,
) -> Float[Array, "S T A"]:
    """Train on fresh transitions with these weights of the terms; then `E(s', a, s) - E(s', a₀, s)` at the points.

    `corrected` is 1, or 0 for a policy network that says "uniform", whatever the data, and is not trained.
    """
    graph, params = nnx.split(model)
    params["policy"] = jax.tree.map(lambda leaf: corrected * leaf, params["policy"])
    optimiser = optax.adam(optax.cosine_decay_schedule(5e-3, steps))

    def objective(params, latents):
        terms = losses(nnx.merge(graph, params), latents)
        return corrected * terms["policy"] + sum(weight * terms[name] for name, weight in weights.items())

    def step(carry, key):
        params, state = carry
        gradients = jax.grad(objective)(params, toy.sample(key, batch_size, skew))
        updates, state = optimiser.update(gradients, state)
        return (optax.apply_updates(params, updates), state), None

    keys = jax.random.split(jax.random.key(0), steps)
    (params, _), _ = jax.lax.scan(step, (params, optimiser.init(params)), keys)
    s, s_next = toy.points()
    energies = nnx.merge(graph, params).energies.diagonal(s_next.reshape(-1, 2), s.reshape(-1, 2)).sum(1)
    return (energies - energies[:, [toy.noop]]).reshape(*s.shape[:2], -1)
