"""Algorithm 1 of the paper, and our two terms, as plainly as they can be written: what `acf.methods.acf` must equal.

Every energy of every (i, j, k, a), one sum for each Σ, no trick. The choices where the paper contradicts itself are
those of the findings: ζ_a for each a, and π fixed in L_r and in L_inv.
"""

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jax.nn import log_sigmoid, sigmoid


def loss(model, batch, key, hparams):
    N, K = len(batch.action), model.energies.w_next.shape[0]
    z, z_next = model.encode(batch.x), model.encode(batch.x_next)
    eps, eps_next = hparams.noise * jax.random.normal(key, (2, N, K))
    terms = {
        **algorithm1(model, z + eps, batch.action, z_next + eps_next),
        "sparsity": sparsity(model, z + eps, z_next + eps_next),
        "guard": guard(jnp.concatenate([z, z_next])),
    }
    ramped_in = (batch.epoch - hparams.sparsity_from) / (hparams.sparsity_to - hparams.sparsity_from)
    total = (
        hparams.ratio * terms["ratio"]
        + hparams.fwd * terms["fwd"]
        + hparams.inv * terms["inv"]
        + hparams.policy * terms["policy"]
        + hparams.sparsity * jnp.clip(ramped_in, 0, 1) * terms["sparsity"]
        + hparams.guard * terms["guard"]
    )
    return total, terms


def algorithm1(model, z, action, z_next):
    a0 = model.noop
    E = every_energy(model.energies, z_next, z).sum(2)  # [i, j, a]: E_ij(a)
    logits = model.policy(z)

    def of_transition(n):
        a_n, E_nn = action[n], E[n, n]
        pi = jnp.exp(logits[n]) / jnp.exp(logits[n]).sum()
        fixed_pi = stop_gradient(pi)
        ratio = E_nn - E_nn[a0] + jnp.log(fixed_pi / fixed_pi[a0])  # [a]: log r_a + ζ_a
        is_a = jnp.arange(len(pi)) == a_n
        return {
            "ratio": -jnp.where(is_a, log_sigmoid(ratio), log_sigmoid(-ratio)).sum(),  # 1 - σ(x) = σ(-x)
            "fwd": -jnp.log(jnp.exp(E_nn[a_n]) / jnp.exp(E[n, :, a_n]).sum()),
            "inv": -jnp.log(fixed_pi[a_n] * jnp.exp(E_nn[a_n]) / (fixed_pi * jnp.exp(E_nn)).sum()),
            "policy": -jnp.log(pi[a_n]),
        }

    terms = {name: values.mean() for name, values in jax.vmap(of_transition)(jnp.arange(len(z))).items()}
    # The paper's sum has the no-op too, whose logit is 0 whatever the parameters: a constant the library leaves out.
    return {**terms, "ratio": terms["ratio"] - jnp.log(2.0)}


def energy(energies, k, z_next_k, a, z):
    """`E_k(z'_k, a, z)`: a network of its own for each factor, with one output an action."""
    inputs = jnp.concatenate([z_next_k[None], z])
    first = jnp.concatenate([energies.w_next[...][k][None], energies.w_z[...][k]])
    pre = inputs @ first + energies.b_hidden[...][k]
    return (pre * sigmoid(pre)) @ energies.w_out[...][k, :, a] + energies.b_out[...][k, a]


def every_energy(energies, z_next, z, function=energy):
    """`E_k(z'_k^j, a, z^i)` for every [i, j, k, a]: a function of one pair, factor and action, mapped over each."""
    K, _, A = energies.w_out.shape
    for_each = jax.vmap(lambda i, j, k, a: function(energies, k, z_next[j, k], a, z[i]))
    i, j, k, a = jnp.meshgrid(*map(jnp.arange, (len(z), len(z_next), K, A)), indexing="ij")
    return for_each(*(index.ravel() for index in (i, j, k, a))).reshape(i.shape)


def sparsity(model, z, z_next):
    """Mean of `‖g_a‖₁/‖g_a‖₂ - 1` weighted by the stopped `‖g_a‖₂`, with g by automatic differentiation."""
    scores = every_energy(model.energies, z_next, z, jax.grad(energy, argnums=2))
    above = below = 0.0
    for a in range(scores.shape[-1]):
        if a != model.noop:
            g = jnp.stack([scores[n, n, :, a] - scores[n, n, :, model.noop] for n in range(len(z))])  # [n, k]
            norm = jnp.sqrt((g * g).sum(1))
            above += (stop_gradient(norm) * (jnp.abs(g).sum(1) / norm - 1)).sum()
            below += stop_gradient(norm).sum()
    return above / below


def guard(z):
    mean = z.sum(0) / len(z)
    spread = jnp.sqrt(((z - mean) ** 2).sum(0) / len(z))
    return (jnp.maximum(jnp.abs(mean) - 0.5, 0) ** 2 + jnp.maximum(0.25 - spread, 0) ** 2).mean()
