"""The K energies `E_k(z'_k, a, z)`: one small network a factor, all actions at once.

Each network is `(1 + d) → H → |A|` with SiLU. Its first layer is linear in `(z'_k, z)`, so the pre-activation of a pair
is a sum `u_k(z) + w_k z'_k`: over N x N pairs it is an outer sum that never has to be computed pair by pair.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int

from acf.nn.kernel import Kernel
from acf.nn.pairwise import pairwise_sum


class Values(NamedTuple):
    """Of one batch."""

    diagonal: Float[Array, "N K A"]
    scores: Float[Array, "N K A"]
    pairs: Float[Array, "N N"]


class Energies(nnx.Module):
    def __init__(self, latents: int, n_actions: int, *, hidden: int = 256, kernel: Kernel = "auto", rngs: nnx.Rngs):
        self.kernel: Kernel = kernel
        K, d = latents, latents
        init = nnx.initializers.lecun_normal(in_axis=-2, out_axis=-1, batch_axis=(0,))
        first = init(rngs.params(), (K, 1 + d, hidden))
        self.w_next = nnx.Param(first[:, 0])  # [K, H], for z'_k
        self.w_z = nnx.Param(first[:, 1:])  # [K, d, H], for z
        self.b_hidden = nnx.Param(jnp.zeros((K, hidden)))
        self.w_out = nnx.Param(init(rngs.params(), (K, hidden, n_actions)))
        self.b_out = nnx.Param(jnp.zeros((K, n_actions)))

    def diagonal(self, z_next: Float[Array, "N K"], z: Float[Array, "N d"]) -> Float[Array, "N K A"]:
        """`E_k(z'_k, a, z)` of each transition, every factor and action."""
        return self._diagonal(self._pre(z_next, self._from_z(z)))

    def scores(self, z_next: Float[Array, "N K"], z: Float[Array, "N d"]) -> Float[Array, "N K A"]:
        """`∂E_k(z'_k, a, z) / ∂z'_k`, in closed form."""
        return self._scores(self._pre(z_next, self._from_z(z)))

    def pairwise(
        self, z_next: Float[Array, "M K"], z: Float[Array, "N d"], action: Int[Array, " N"]
    ) -> Float[Array, "N M"]:
        """`Σ_k E_k(z'_k^j, a^i, z^i)` for every i and j; only the output column of the action taken is needed."""
        return self._pairwise(z_next, self._from_z(z), action)

    def __call__(self, z_next: Float[Array, "N K"], z: Float[Array, "N d"], action: Int[Array, " N"]) -> Values:
        """All three. They share their first layer, and its gradient is then one product instead of three."""
        u = self._from_z(z)
        pre = self._pre(z_next, u)
        return Values(self._diagonal(pre), self._scores(pre), self._pairwise(z_next, u, action))

    def _from_z(self, z: Float[Array, "N d"]) -> Float[Array, "K H N"]:
        return jnp.einsum("kdh,nd->khn", self.w_z[...], z) + self.b_hidden[..., None]

    def _pre(self, z_next: Float[Array, "N K"], u: Float[Array, "K H N"]) -> Float[Array, "K H N"]:
        return u + self.w_next[..., None] * z_next.T[:, None, :]

    def _diagonal(self, pre: Float[Array, "K H N"]) -> Float[Array, "N K A"]:
        return jnp.einsum("khn,kha->nka", jax.nn.silu(pre), self.w_out[...]) + self.b_out[...]

    def _scores(self, pre: Float[Array, "K H N"]) -> Float[Array, "N K A"]:
        s = jax.nn.sigmoid(pre)
        slope = s * (1 + pre * (1 - s))  # of SiLU
        return jnp.einsum("khn,kha->nka", slope * self.w_next[..., None], self.w_out[...])

    def _pairwise(
        self, z_next: Float[Array, "M K"], u: Float[Array, "K H N"], action: Int[Array, " N"]
    ) -> Float[Array, "N M"]:
        columns, bias = take_columns(self.w_out[...], action), take_columns(self.b_out[...], action).sum(0)
        return pairwise_sum(u, z_next.T, self.w_next[...], columns, self.kernel) + bias[:, None]


@jax.custom_vjp
def take_columns(x: Float[Array, "... A"], action: Int[Array, " N"]) -> Float[Array, "... N"]:
    """`x[..., action]`, with a product for its gradient: a gather's own is a slow scatter."""
    return x[..., action]


def _take_forward(x: Float[Array, "... A"], action: Int[Array, " N"]):
    return x[..., action], (x, action)


def _take_backward(saved: tuple[Float[Array, "... A"], Int[Array, " N"]], g: Float[Array, "... N"]):
    x, action = saved
    # Exact: HIGHEST is float32.
    return jnp.matmul(g, jax.nn.one_hot(action, x.shape[-1]), precision="highest"), None


take_columns.defvjp(_take_forward, _take_backward)
