"""Gymnasium: a run's encoder under an agent, and the domains as environments.

- `LatentObservation`, `VectorLatentObservation`: observations become the latents of a trained run.
- `DomainEnv`: a domain as an environment. Importing this package registers `acf/Lamp-v0`, `acf/Grid2D-v0`,
  `acf/Taxi-v0`, `acf/FourRooms-v0` and `acf/DoorKey-v0`.
"""

from acf.data.environments.opening import gymnasium

gymnasium()  # or an error that says how to get it

from acf.gym.domains import DomainEnv, register  # noqa: E402
from acf.gym.latents import LatentObservation, VectorLatentObservation  # noqa: E402

__all__ = ["DomainEnv", "LatentObservation", "VectorLatentObservation"]

register()
