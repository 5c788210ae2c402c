"""Two worlds whose graphs are known, to learn with DMS: the masks alone, and the whole model on vectors for frames."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import moving_point
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray
from learning import distances, fit, matching

from acf.methods import dms
from acf.methods.dms import DMS, Dynamics, Gaussian, HParams, Masks, open_probability
from acf.nn import MLP

# A linear-Gaussian world of three latents and seven actions.
A = np.array([[0.9, 0, 0], [0.5, 0.8, 0], [0, 0, 0.9]])
DELTA = np.concatenate([np.zeros((1, 3)), *[np.stack([axis, -axis]) for axis in np.eye(3)]])
NOISE = 0.1
ENTROPY = 3 * np.log(NOISE * np.sqrt(2 * np.pi * np.e))


class MaskResult(NamedTuple):
    state: np.ndarray
    action: np.ndarray
    nll: float
    """Of fresh transitions, with the thresholded graphs."""

    @property
    def distances(self) -> tuple[int, int]:
        return distances(self.state, self.action, A != 0, (DELTA != 0).T, np.arange(3))


def linear_world(key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n 3"], Int[Array, " n"], Float[Array, "n 3"]]:
    z_key, a_key, eps_key = jax.random.split(key, 3)
    z, action = jax.random.normal(z_key, (n, 3)), jax.random.randint(a_key, (n,), 0, len(DELTA))
    return z, action, z @ jnp.asarray(A).T + jnp.asarray(DELTA)[action] + NOISE * jax.random.normal(eps_key, (n, 3))


def nll(p: Gaussian, z_next: Float[Array, "n K"]) -> Float[Array, ""]:
    return (((z_next - p.mean) ** 2 / p.variance + jnp.log(2 * jnp.pi * p.variance)) / 2).sum(1).mean()


def learn_masks(seed: int, *, price: float, steps: int, lr: float = 1e-3, speed: float = 1.0) -> MaskResult:
    """The true latents given; `price` is what an edge costs in nats."""
    hparams, n = HParams(gumbel_temp=1.0, speed=speed), 256
    graph, params = nnx.split(Dynamics(3, len(DELTA), hidden=256, rngs=nnx.Rngs(seed)))

    def objective(params, key, _):
        dynamics = nnx.merge(graph, params)
        data_key, mask_key = jax.random.split(key)
        z, action, z_next = linear_world(data_key, n)
        masks = dynamics.sample_masks(mask_key, n, hparams, jnp.bool_(False))
        edges = open_probability(dynamics.logits(hparams))
        return nll(dynamics(z, action, masks, hparams), z_next) + price * (edges.state.sum() + edges.action.sum())

    params = jax.jit(partial(fit, objective, steps=steps, lr=lr))(params, jax.random.key(seed))
    dynamics = nnx.merge(graph, params)
    graphs = [np.asarray(edges) > 0.5 for edges in open_probability(dynamics.logits(hparams))]
    z, action, z_next = linear_world(jax.random.key(99), 20_000)
    masks = Masks(*(jnp.broadcast_to(jnp.asarray(g, jnp.float32), (len(z), *g.shape)) for g in graphs))
    state, action_graph = graphs
    return MaskResult(state, action_graph, float(nll(dynamics(z, action, masks, hparams), z_next)))


class VectorDMS(DMS):
    """DMS with networks for vectors: linear ones, or with two hidden layers of 256."""

    def __init__(self, hidden: tuple[int, ...], rngs: nnx.Rngs):
        K, width = moving_point.FACTORS, moving_point.WIDTH
        self.encoder = MLP(width, hidden, 2 * K, rngs=rngs)
        self.decode = MLP(K, hidden, width, rngs=rngs)
        self.scale_x = nnx.Param(jnp.zeros(1))
        self.dynamics = Dynamics(K, moving_point.ACTIONS, hidden=256, rngs=rngs)
        self.start_bias, self.start_scale = nnx.Param(jnp.zeros(K)), nnx.Param(jnp.zeros(K))


class VAEResult(NamedTuple):
    mcc: float
    distances: tuple[int, int]


def learn_vae(
    seeds: list[int],
    hparams: HParams,
    *,
    steps: int,
    curved: bool = False,
    frozen_steps: int = 0,
    lr: float = 1e-3,
) -> list[VAEResult]:
    """The moving point through its mixing, one member a seed in one program. Edges are open until `frozen_steps`."""
    n, hidden = 128, (256, 256) if curved else ()
    graph = nnx.graphdef(nnx.eval_shape(lambda: VectorDMS(hidden, nnx.Rngs(0))))

    def observe(s, key):
        if not curved:
            return moving_point.straight(s, key)
        return moving_point.curved(s) + 0.01 * jax.random.normal(key, (len(s), moving_point.WIDTH))

    def objective(params, key, step):
        model = nnx.merge(graph, params)
        data_key, x_key, loss_key = jax.random.split(key, 3)
        s, action, s_next = moving_point.sample(data_key, n)
        x = observe(jnp.concatenate([s, s_next]), x_key)
        frozen = step < frozen_steps
        terms = dms.losses(model, model.posterior(x), action, x, loss_key, hparams, frozen)
        return dms.total(terms, moving_point.WIDTH, hparams, frozen)

    def one(seed):
        params = nnx.state(VectorDMS(hidden, nnx.Rngs(jax.random.key(seed))))
        params = fit(objective, params, jax.random.key(seed), steps=steps, lr=lr)
        s, _, _ = moving_point.sample(jax.random.key(99), 10_000)
        model = nnx.merge(graph, params)
        return s, model.encode(observe(s, jax.random.key(98))), open_probability(model.dynamics.logits(hparams))

    def result(s, z, state, action):
        latents, score = matching(z, s)
        truth = moving_point.STATE_GRAPH, moving_point.ACTION_GRAPH
        return VAEResult(score, distances(state > 0.5, action > 0.5, *truth, latents))

    s, z, edges = jax.device_get(jax.jit(jax.vmap(one))(jnp.asarray(seeds)))
    return [result(s[n], z[n], edges.state[n], edges.action[n]) for n in range(len(seeds))]
