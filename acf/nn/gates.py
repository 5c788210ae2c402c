"""Binary gates with a gradient: Gumbel-sigmoid samples of a learned graph's edges."""

import jax
from jax.lax import stop_gradient
from jaxtyping import Array, Float, PRNGKeyArray


def sample_gates(
    logits: Float[Array, "*edges"], key: PRNGKeyArray, rows: int, temperature: float | Array, hard: float | Array = 1.0
) -> Float[Array, "rows *edges"]:
    """A sample a row of `1[A + L > 0]` with logistic L: open with probability `sigmoid(A)`, whatever the temperature.

    The gradient is that of the soft sample `sigmoid((A + L) / temperature)` (straight-through). With `hard=0` the soft
    sample itself is returned: at a high temperature a closed gate then still lets a third of the signal through, which
    a network makes up for by larger weights.
    """
    noisy = logits + jax.random.logistic(key, (rows, *logits.shape))
    soft = jax.nn.sigmoid(noisy / temperature)
    return soft + hard * stop_gradient((noisy > 0) - soft)
