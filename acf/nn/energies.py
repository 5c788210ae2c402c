"""The K energies `E_k(z'_k, a, z)`: one small network a factor, all actions at once.

Each network is `(1 + d) → H → |A|` with SiLU. Its first layer is linear in `(z'_k, z)`, so the pre-activation of a pair
is a sum `u_k(z) + w_k z'_k`: over N x N pairs it is an outer sum that never has to be computed pair by pair.
"""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int

from acf.nn.pairwise import pairwise_sum


class Energies(nnx.Module):
    def __init__(self, latents: int, n_actions: int, *, hidden: int = 256, rngs: nnx.Rngs):
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
        hidden = jax.nn.silu(self._pre(z_next, z))
        return jnp.einsum("nkh,kha->nka", hidden, self.w_out[...]) + self.b_out[...]

    def scores(self, z_next: Float[Array, "N K"], z: Float[Array, "N d"]) -> Float[Array, "N K A"]:
        """`∂E_k(z'_k, a, z) / ∂z'_k`, in closed form."""
        pre = self._pre(z_next, z)
        s = jax.nn.sigmoid(pre)
        slope = s * (1 + pre * (1 - s))  # of SiLU
        return jnp.einsum("nkh,kha->nka", slope * self.w_next[...], self.w_out[...])

    def pairwise(
        self, z_next: Float[Array, "M K"], z: Float[Array, "N d"], action: Int[Array, " N"]
    ) -> Float[Array, "N M"]:
        """`Σ_k E_k(z'_k^j, a^i, z^i)` for every i and j; only the output column of the action taken is needed."""
        columns = self.w_out[...][:, :, action].transpose(2, 0, 1)  # [N, K, H]
        bias = self.b_out[...][:, action].sum(0)
        return pairwise_sum(self._from_z(z), z_next, self.w_next[...], columns) + bias[:, None]

    def _from_z(self, z: Float[Array, "N d"]) -> Float[Array, "N K H"]:
        return jnp.einsum("nd,kdh->nkh", z, self.w_z[...]) + self.b_hidden[...]

    def _pre(self, z_next: Float[Array, "N K"], z: Float[Array, "N d"]) -> Float[Array, "N K H"]:
        return self._from_z(z) + z_next[..., None] * self.w_next[...]
