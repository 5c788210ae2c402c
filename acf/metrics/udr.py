"""Do seeds agree? A score of settings that needs no true factors."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float, Real

from acf.metrics.checks import check_columns
from acf.metrics.mcc import ranks, unit


@dataclass(frozen=True, eq=False)
class UDR:
    """`value` is the mean agreement over all pairs of members, `of_member` each one's mean with the others.

    `agreement[m, n]` is that of two of them; its diagonal is 0.
    """

    value: float
    agreement: Float[np.ndarray, "members members"]
    of_member: Float[np.ndarray, " members"]


def udr(z: Real[Array | np.ndarray, "members n d"]) -> UDR:
    """Unsupervised disentanglement ranking (Duan et al. 2020) of members' latents `z` on the same frames.

    With R the absolute rank correlations of two members' latents, a latent's part is `max R² / sum R` along its row: 1
    if one latent of the other member follows it, in either direction, and the rest knows nothing of it. Agreement is
    the mean over the latents of both. Unlike the published score, which leaves out latents without information, a
    constant latent counts as 0: a code that drops factors should not win by it. Latents that depend on each other, as
    some true factors do, cannot reach 1.

    >>> s = np.array([[0.0, 3.0], [1.0, 1.0], [2.0, 2.0], [3.0, 0.0], [0.0, 0.0], [3.0, 3.0]])
    >>> round(udr(np.stack([s, -(s[:, ::-1] ** 3)])).value, 2) == round(udr(np.stack([s, s])).value, 2)
    True
    """
    z = np.asarray(z)
    if z.ndim != 3 or len(z) < 2:
        raise ValueError(f"z must be [members, n, d] with at least 2 members, got shape {z.shape}")
    ranked = [unit(ranks(check_columns(f"z of member {m}", member, "latent"))) for m, member in enumerate(z)]
    agreement = np.zeros((len(z), len(z)))
    for m, n in zip(*np.triu_indices(len(z), 1), strict=True):
        R = np.abs(ranked[m].T @ ranked[n])
        agreement[m, n] = agreement[n, m] = (_clarity(R).mean() + _clarity(R.T).mean()) / 2
    of_member = agreement.sum(axis=1) / (len(z) - 1)
    return UDR(float(of_member.mean()), agreement, of_member)


def _clarity(R: Float[np.ndarray, "d d2"]) -> Float[np.ndarray, " d"]:
    """Of each row, 0 where it is 0."""
    total = R.sum(axis=1)
    return np.where(total > 0, R.max(axis=1) ** 2 / np.where(total > 0, total, 1), 0)
