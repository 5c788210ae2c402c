"""Algorithm 1 as one would write it down first, against the trainer, on the same device in the same run.

Every pair with every action, XLA's convolutions, one member, one jitted step a Python iteration, batches fed from the
host. The network, the data and the losses are the same.

python benchmarks/naive.py --domain taxi --members 5
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

from acf.study import bench
from acf.terminal import console, table


def init_params(key, channels, K, A, depth, hidden):
    keys = iter(jax.random.split(key, 100))

    def dense(i, o, *lead):
        return {"w": jax.random.normal(next(keys), (*lead, i, o)) / np.sqrt(i), "b": jnp.zeros((*lead, o))}

    blocks, i = [], channels + 2
    for o in (depth, 2 * depth, 4 * depth):
        conv = jax.random.normal(next(keys), (3, 3, i, o)) / np.sqrt(9 * i)
        blocks.append(
            {"conv": conv, "b": jnp.zeros(o), "scale": jnp.ones(o), "first": dense(o, o), "second": dense(o, o)}
        )
        i = o
    return {
        "blocks": blocks,
        "head": [dense(16 * i, hidden), dense(hidden, hidden), dense(hidden, K)],
        "energies": [dense(1 + K, hidden, K), dense(hidden, A, K)],
        "policy": [dense(K, hidden), dense(hidden, hidden), dense(hidden, A)],
    }


def mlp(layers, x):
    for layer in layers[:-1]:
        x = jax.nn.silu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def encode(params, frames):
    x = frames.astype(jnp.float32) / 127.5 - 1
    n, h, w, _ = x.shape
    y, x_position = jnp.meshgrid(jnp.linspace(-1, 1, h), jnp.linspace(-1, 1, w), indexing="ij")
    x = jnp.concatenate([x, jnp.broadcast_to(jnp.stack([y, x_position], -1), (n, h, w, 2))], -1)
    for block in params["blocks"]:
        x = jax.lax.conv_general_dilated(
            x, block["conv"], (2, 2), [(1, 1), (1, 1)], dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = x + block["b"]
        x = jax.nn.silu(x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * block["scale"])
        for layer in (block["first"], block["second"]):
            x = x + jax.nn.silu(x @ layer["w"] + layer["b"])
    return jnp.tanh(mlp(params["head"], x.reshape(n, -1)))


def all_energies(params, z_next, z):
    """`E_k(z'_k^j, a, z^i)` for every i, j, k and a: [N, N, K, A]."""

    def one(z_next_j, z_i):
        def factor(layers, z_next_k):
            return mlp(layers, jnp.concatenate([z_next_k[None], z_i]))

        return jax.vmap(factor)(params["energies"], z_next_j)

    return jax.vmap(lambda z_i: jax.vmap(lambda z_next_j: one(z_next_j, z_i))(z_next))(z)


def loss(params, x, action, x_next, key, noop, weights, noise):
    z, z_next = encode(params, x), encode(params, x_next)
    eps = noise * jax.random.normal(key, (2, *z.shape))
    z, z_next = z + eps[0], z_next + eps[1]
    energies = all_energies(params, z_next, z).sum(2)  # [N, N, A]
    rows = jnp.arange(len(z))
    own = energies[rows, rows]  # [N, A]
    log_pi = jax.nn.log_softmax(mlp(params["policy"], z))
    fixed = jax.lax.stop_gradient(log_pi)
    logits = own - own[:, [noop]] + fixed - fixed[:, [noop]]
    cross_entropy = jax.nn.softplus(logits) - jax.nn.one_hot(action, logits.shape[1]) * logits
    ratio = jnp.delete(cross_entropy, noop, axis=1).sum(1).mean()
    pairs = energies[rows, :, action]  # [N, N]
    forward = (jax.nn.logsumexp(pairs, 1) - pairs[rows, rows]).mean()
    inverse = -jax.nn.log_softmax(own + fixed)[rows, action].mean()
    policy = -log_pi[rows, action].mean()
    return weights["fwd"] * forward + weights["ratio"] * ratio + weights["inv"] * inverse + weights["policy"] * policy


def time_naive(case: bench.Case, steps: int) -> tuple[float, float]:
    """Seconds to compile, and milliseconds a step."""
    data, spec = case.data, case.spec
    params = init_params(jax.random.key(0), spec.frame_shape[2], spec.latents, spec.n_actions, spec.depth, spec.hidden)
    weights = {name: case.hparams[name] for name in ("fwd", "ratio", "inv", "policy")}
    optimiser = optax.adamw(case.hparams["lr"], weight_decay=1e-4)

    @jax.jit
    def step(params, state, x, action, x_next, key):
        value, gradient = jax.value_and_grad(loss)(params, x, action, x_next, key, spec.noop, weights, 0.02)
        updates, state = optimiser.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    def batch(n):
        rows = np.random.default_rng(n).integers(len(data), size=case.batch_size)
        return data.frames[data.i[rows]], data.action[rows], data.frames[data.j[rows]], jax.random.key(n)

    began = time.perf_counter()
    params, state, value = jax.block_until_ready(step(params, optimiser.init(params), *batch(0)))
    compiled = time.perf_counter()
    for n in range(steps):
        params, state, value = step(params, state, *batch(n))
    assert np.isfinite(float(value))
    return compiled - began, 1e3 * (time.perf_counter() - compiled) / steps


@dataclass(frozen=True)
class Args:
    domain: str = "taxi"
    preset: str = "paper"
    members: int = 5
    steps: int = 300
    """Of the straightforward implementation."""
    out: Path | None = None


def main(args: Args) -> None:
    case = bench.make_case(args.domain, args.preset, args.members, data=bench.collect_for_bench(args.domain))
    compile_s, naive_ms = time_naive(case, args.steps)
    (ours,) = bench.time_cases([case])
    rows = table("", "members", "compile s", "ms a step and member", title=f"{args.domain}, {args.preset}")
    rows.add_row("straightforward", "1", f"{compile_s:.1f}", f"{naive_ms:.3f}")
    rows.add_row("acf-rl", str(args.members), f"{ours.compile_s:.1f}", f"{ours.member_ms:.3f}")
    console.print(rows)
    console.print(f"{naive_ms / ours.member_ms:.1f}x faster a member")
    if args.out:
        found = {"domain": args.domain, "naive_ms": naive_ms, "ours": ours.to_json(), "x": naive_ms / ours.member_ms}
        args.out.write_text(json.dumps(found | bench.describe_device(), indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Args))
