"""Made-up runs, complete enough to draw: latent k is factor K-1-k with noise, so that order matters."""

from typing import Any

import numpy as np

from acf.report.look import Look
from acf.report.traversal import traverse

NAMES = ["size", "hue", "is_open"]
ACTIONS = ["stay", "grow", "paint"]
SCORES = ("diag", "off_diag", "diag_controllable", "off_diag_controllable")
MORE = ("mcc_pearson", "mcc_spearman", "disentanglement", "completeness", "informativeness")


def code(r2: np.ndarray, matching: list[int]) -> dict[str, Any]:
    numbers = {name: float(n) / 10 for n, name in enumerate((*SCORES, *MORE))}
    return {
        "r2": r2.tolist(),
        "r2_interval": [(r2 - 0.01).tolist(), (r2 + 0.01).tolist()],
        "matching": matching,
        **numbers,
        "intervals": {name: [numbers[name] - 0.05, numbers[name] + 0.05] for name in SCORES},
    }


def make_look(
    name: str = "toy",
    *,
    method: str = "acf",
    domain: str | None = "toy",
    seeds: tuple[int, ...] = (7, 3),
    factors: bool = True,
    energies: bool = True,
    graphs: bool = False,
    channels: int = 3,
    latents: int = 3,
) -> Look:
    rng = np.random.default_rng(0)
    n, K, A = 400, 3, 3
    s = np.stack([rng.uniform(size=n), rng.uniform(size=n), rng.integers(0, 2, n)], 1).astype(np.float32)
    frames = rng.integers(0, 30, (n, 16, 16, channels), dtype=np.uint8)
    frames[:, :8] += (s[:, 0, None, None, None] * 200).astype(np.uint8)
    order = [K - 1 - k if k < K else -1 for k in range(latents)]
    z = np.stack(
        [
            np.stack([s[:, j] if j >= 0 else rng.normal(size=n) for j in order], 1)
            + 0.01 * m * rng.normal(size=(n, latents))
            for m in range(len(seeds))
        ]
    ).astype(np.float32)
    members = []
    for m, seed in enumerate(seeds):
        own = np.array([[0.9 - 0.2 * m if j == o else 0.01 * (j + 1) for j in range(K)] for o in order])
        actions: dict[str, Any] = {"movement": rng.uniform(size=(latents, A)).tolist()}
        if energies:
            actions |= {
                "score_difference": (10 * rng.uniform(size=(latents, A))).tolist(),
                "moved": [[0, 0.8, 0.1], [0, 0, 0.7], [0, 0.2, 0]][:latents] + [[0, 0, 0]] * (latents - 3),
                "sparsity": 0.9,
                "sparsity_chance": 0.4,
                "sparsity_of_action": [0, 0.9, 0.8],
            }
        member = {"seed": seed, "diverged_at": -1, **(code(own, order) if factors else {}), "actions": actions}
        members.append(member)
    scores: dict[str, Any] = {
        "format": 2,
        "domain": domain,
        "method": method,
        "evaluation_seed": 0,
        "factor_names": NAMES if factors else [],
        "controllable": [True, True, False] if factors else [],
        "action_names": ACTIONS,
        "noop": 0,
        "members": members,
    }
    if factors:
        scores |= {name: {"mean": members[0][name], "std": 0.02} for name in (*SCORES, *MORE)}
        scores["oracle"] = code(np.eye(K), [0, 1, 2]) | {"actions": {"movement": rng.uniform(size=(K, A)).tolist()}}
        scores["chance"] = code(np.full((latents, K), 0.004), order)
    picture = rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)
    known = s if factors else None
    return Look(
        name=name,
        scores=scores,
        settings={"seeds": list(seeds), "epochs": 3, "data": {"hash": "abc"}},
        steps=np.array([10, 20, 30]),
        curves={"loss": rng.uniform(size=(3, len(seeds))), "fwd": rng.uniform(size=(3, len(seeds)))},
        gallery=np.repeat(frames[:4], 3, axis=3)[..., :3],
        traversals=tuple(
            tuple(traverse(column, frames, known, np.random.default_rng(0)) for column in of_member.T)
            for of_member in z
        ),
        z=z,
        factors=known,
        effects=tuple({(1, 0): picture, (2, 1): picture} for _ in seeds) if energies else None,
        graphs=tuple(
            {"state": rng.uniform(size=(latents, latents)), "action": rng.uniform(size=(latents, A))} for _ in seeds
        )
        if graphs
        else None,
        for_factors=method == "lattice",
    )


def certificate(certified: bool, **others: Any) -> dict[str, Any]:
    shares = {"one_step": 0.998, "no_step": 0.001, "injective": 0.99999, "still": 1.0, "along": 0.97}
    return {
        "certified": certified,
        "kind": "levels",
        **shares,
        "intervals": {name: [value - 0.001, min(value + 0.001, 1.0)] for name, value in shares.items()},
        "because": [] if certified else ["only 80.5% of what action 1 changes is one step (needs 97%)"],
        "factors": ["moved by grow; 5 levels", "moved by paint; cycle of 4"],
        **others,
    }


def add_found(look: Look, *certificates: dict[str, Any]) -> Look:
    """As found in latents: the first factor is the true `hue`, the second `size`; `is_open` no action controls."""
    for member, found in zip(look.members, certificates, strict=True):
        member["certificate"] = found
        if look.has_factors:
            member["factors"] = code(np.array([[0.0, 1.0, 0.0], [0.9, 0.0, 0.0]]), [1, 0]) | {"diag": 0.987}
            member["exact"] = {"state": 0.875, "factors": [0.885, 1.0]}
    return look
