"""The energies and their fast forms against one pair, one factor and one action at a time."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.nn import Energies

N, M, K, A, H = 4, 5, 3, 4, 8


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


@pytest.fixture
def make(with_weights):
    return lambda seed=0: with_weights(lambda: Energies(K, A, hidden=H, rngs=nnx.Rngs(0)), seed)


def energy(energies, k, z_next_k, a, z):
    """`E_k(z'_k, a, z)`: a network of its own for each factor, with one output an action."""
    inputs = jnp.concatenate([z_next_k[None], z])
    first = jnp.concatenate([energies.w_next[...][k][None], energies.w_z[...][k]])
    pre = inputs @ first + energies.b_hidden[...][k]
    hidden = pre / (1 + jnp.exp(-pre))
    return hidden @ energies.w_out[...][k, :, a] + energies.b_out[...][k, a]


def every_energy(energies, z_next, z):
    """`E_k(z'_k^j, a, z^i)` for every [i, j, k, a]: one function of scalars, mapped over each index."""
    f = lambda i, j, k, a: energy(energies, k, z_next[j, k], a, z[i])  # noqa: E731
    for axis in (3, 2, 1, 0):
        f = jax.vmap(f, [0 if n == axis else None for n in range(4)])
    return f(*map(jnp.arange, (len(z), len(z_next), K, A)))


def plain_pairwise(energies, z_next, z, action):
    return jnp.stack([row[..., a].sum(1) for row, a in zip(every_energy(energies, z_next, z), action, strict=True)])


def pairwise(energies, z_next, z, action):
    return energies.pairwise(z_next, z, action)


@partial(jax.jit, static_argnums=(0, 1))
def value_and_gradients(function, graph, state, z_next, z, action, weights):
    """Of a weighted sum of all pairs, so that no pair's error can hide behind another's."""

    def objective(state, z_next, z):
        pairs = function(nnx.merge(graph, state), z_next, z, action)
        return (weights * pairs).sum(), pairs

    gradients, pairs = jax.grad(objective, argnums=(0, 1, 2), has_aux=True)(state, z_next, z)
    return pairs, gradients


def assert_close(actual, expected):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), actual, expected)


def transitions(function, energies, z_next, z):
    """A function of (k, z'_k, a, z) of every transition, factor and action, in a loop."""
    rows = [[[function(energies, k, z_next[n, k], a, z[n]) for a in range(A)] for k in range(K)] for n in range(N)]
    return jnp.array(rows)


def test_diagonal_against_a_loop(make):
    energies, z_next, z = make(), normal(1, N, K), normal(2, N, K)
    expected = nnx.jit(partial(transitions, energy))(energies, z_next, z)
    np.testing.assert_allclose(nnx.jit(Energies.diagonal)(energies, z_next, z), expected, rtol=1e-5, atol=1e-5)


def test_an_energy_sees_its_own_next_latent_only(make):
    energies, z_next, z = make(), normal(1, N, K), normal(2, N, K)
    jacobians = jax.jit(jax.jacfwd(energies.diagonal, argnums=(0, 1)))(z_next, z)
    by_z_next, by_z = (np.asarray(jacobian) for jacobian in jacobians)  # [n, k, a, n', k']
    own = np.zeros(by_z_next.shape, bool)
    for n in range(N):
        for k in range(K):
            own[n, k, :, n, k] = True
    assert (by_z_next[~own] == 0).all()
    assert (by_z_next[own] != 0).all()
    assert all((by_z[n, :, :, n] != 0).all() for n in range(N)), "but all of z"


def test_scores_against_autodiff(make):
    energies, z_next, z = make(), 2 * normal(1, N, K), normal(2, N, K)
    expected = nnx.jit(partial(transitions, jax.grad(energy, argnums=2)))(energies, z_next, z)
    np.testing.assert_allclose(nnx.jit(Energies.scores)(energies, z_next, z), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("m", [N, M], ids=["square", "more next latents"])
def test_pairwise_against_every_pair_and_action(make, m):
    graph, state = nnx.split(make())
    inputs = normal(1, m, K), normal(2, N, K), jnp.array([3, 0, 1, 3]), normal(3, N, m)
    assert_close(
        value_and_gradients(pairwise, graph, state, *inputs), value_and_gradients(plain_pairwise, graph, state, *inputs)
    )


def test_pairwise_of_a_population(make):
    """Under `vmap` over members, each with its own weights, latents and actions, as the trainer runs it."""
    graph, states = nnx.graphdef(make()), [nnx.state(make(seed)) for seed in range(3)]
    z_next, z, weights = normal(1, 3, M, K), normal(2, 3, N, K), normal(3, 3, N, M)
    action = jnp.array([[3, 0, 1, 3], [2, 2, 2, 2], [0, 1, 2, 3]])
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    together = jax.vmap(lambda *inputs: value_and_gradients(pairwise, graph, *inputs))(
        stacked, z_next, z, action, weights
    )
    for n, state in enumerate(states):
        alone = value_and_gradients(plain_pairwise, graph, state, z_next[n], z[n], action[n], weights[n])
        assert_close(jax.tree.map(lambda leaf, n=n: leaf[n], together), alone)


def test_the_diagonal_of_pairwise_is_the_sum_of_diagonal(make):
    energies, z_next, z, action = make(), normal(1, N, K), normal(2, N, K), jnp.array([3, 0, 1, 3])
    expected = np.asarray(nnx.jit(Energies.diagonal)(energies, z_next, z)).sum(1)[np.arange(N), action]
    pairs = nnx.jit(Energies.pairwise)(energies, z_next, z, action)
    np.testing.assert_allclose(np.diagonal(pairs), expected, rtol=1e-5, atol=1e-5)


def test_fresh_energies_are_of_order_one_and_differ_by_factor():
    energies = Energies(6, 5, hidden=256, rngs=nnx.Rngs(0))
    assert [leaf.shape for leaf in (energies.w_next, energies.w_z, energies.w_out)] == [
        (6, 256),
        (6, 6, 256),
        (6, 256, 5),
    ]
    # LeCun: 1 / fan-in, of 1 + d inputs and of H hidden units, not of K times as many
    assert float(energies.w_z[...].var() * 7) == pytest.approx(1, rel=0.1)
    assert float(energies.w_next[...].var() * 7) == pytest.approx(1, rel=0.2)
    assert float(energies.w_out[...].var() * 256) == pytest.approx(1, rel=0.1)
    assert jnp.abs(energies.w_next[...][0] - energies.w_next[...][1]).max() > 0.1
