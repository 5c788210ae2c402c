"""Which latent stands for which factor."""

import numpy as np
from jaxtyping import Array, Float, Int
from scipy.optimize import linear_sum_assignment


def match(r2: Float[Array | np.ndarray, "d K"]) -> Int[np.ndarray, " d"]:
    """The factor each latent stands for, -1 for none: the one-to-one matching with the largest total R², clipped at 0.

    min(d, K) pairs are matched, so with more factors than latents some factors stay unmatched.

    >>> match(np.array([[0.1, 0.9], [0.8, 0.2], [0.0, 0.3]]))
    array([ 1,  0, -1])
    """
    r2 = np.asarray(r2)
    latents, factors = linear_sum_assignment(r2.clip(min=0), maximize=True)
    matching = np.full(len(r2), -1)
    matching[latents] = factors
    return matching
