"""Has a run learned its transitions by heart? Each loss term on episodes trained on and on those held out.

Beside them, for a domain without noise, the least inverse loss that its rules allow: actions with the same outcome
cannot be told apart.

python results/held_out_losses.py runs/fourrooms-acf runs/fourrooms-gcl --out results/held_out_losses.json
"""

import json
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tyro

import acf
from acf.data.transitions import Transitions
from acf.domains import make
from acf.methods import get
from acf.methods.base import Batch
from acf.training.config import make_hparams
from acf.training.run_dir import RunDir

BATCHES, ROWS = 4, 128


@dataclass(frozen=True)
class Args:
    runs: tyro.conf.Positional[tuple[Path, ...]]
    members: int = 2
    """Of each run, the first ones."""
    out: Path | None = None


def terms_on(part: Transitions, loss) -> dict[str, float]:
    rows = np.random.default_rng(0).permutation(len(part))[: BATCHES * ROWS].reshape(BATCHES, ROWS)
    found = []
    for n, batch in enumerate(rows):
        x, x_next = (jnp.asarray(part.frames[at[batch]]) for at in (part.i, part.j))
        found.append(loss(Batch(x, jnp.asarray(part.action[batch]), x_next, jnp.float32(1e3)), jax.random.key(n)))
    return {name: round(float(np.mean([terms[name] for terms in found])), 4) for name in found[0]}


def least_inverse_loss(name: str, horizon: int = 10, episodes: int = 4096) -> float | None:
    """Mean of log(how many actions lead where the one taken did), over uniform rollouts from balanced starts."""
    domain = make(name)
    actions = jnp.arange(domain.n_actions)

    def outcomes(state, key):
        return jax.vmap(lambda action: domain.step(key, state, action))(actions)

    state = domain.sample(jax.random.key(0), "balanced")
    first, second = (jax.tree.leaves(outcomes(state, jax.random.key(n))) for n in (0, 1))
    if any(np.any(a != b) for a, b in zip(first, second, strict=True)):
        return None  # noisy

    def step(state, key):
        found = outcomes(state, key)
        flat = jnp.stack([leaf.reshape(len(actions)) for leaf in jax.tree.leaves(found)], axis=1)
        chosen = jax.random.randint(key, (), 0, len(actions))
        same = (flat == flat[chosen]).all(1).sum()
        return jax.tree.map(lambda leaf: leaf[chosen], found), jnp.log(same)

    def rollout(key):
        start_key, *keys = jax.random.split(key, horizon + 1)
        return jax.lax.scan(step, domain.sample(start_key, "balanced"), jnp.stack(keys))[1]

    return round(float(jax.jit(jax.vmap(rollout))(jax.random.split(jax.random.key(0), episodes)).mean()), 3)


def main(args: Args) -> None:
    report = {}
    for path in args.runs:
        run = RunDir(path)
        config = run.read_config()
        method, domain = get(config.method), config.data["source"].get("domain")
        parts = run.split(run.open_data(config))
        found = []
        for n, member in enumerate(config.members[: args.members]):
            trained, hparams = acf.load(path, n), make_hparams(method, member.hparams)
            loss = jax.jit(lambda batch, key, t=trained, h=hparams: t.learner.loss(t.params, batch, key, h)[1])
            on = {name: terms_on(part, loss) for name, part in zip(("trained_on", "held_out"), parts, strict=True)}
            found.append({"seed": member.seed} | on)
            print(path.name, found[-1], flush=True)
        least = least_inverse_loss(domain) if domain else None
        report[path.name] = {"domain": domain, "method": config.method, "least_inverse_loss": least, "members": found}
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Args))
