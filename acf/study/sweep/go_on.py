"""The second half of a pruned search: members go on, in other company, from the state they were left in.

Nothing in training depends on its length or on who trains beside, so a sample that is kept ends as if nothing had
been pruned.
"""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from acf.methods import get
from acf.training import checkpoint, population
from acf.training.run_dir import RunDir


def carry_over(sources: list[tuple[Path, int]], run: Path, seeds: int) -> None:
    """Put the states of these samples (a finished run, and the place in it) together as that of a new run.

    Where it has one already it is left alone: it has gone on from there.
    """
    target = RunDir(run)
    if target.state.exists():
        return
    parts, about = [], {}
    for path, place in sources:
        source = RunDir(path)
        config = source.read_config()
        learner = get(config.method).bind(config.spec)
        members = jnp.array([member.seed for member in config.members])
        state, about = checkpoint.load(source.state, jax.eval_shape(partial(population.init, learner), members))
        parts.append(jax.tree.map(lambda leaf, first=place * seeds: leaf[first : first + seeds], state))
    checkpoint.save(target.state, jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts), about)
