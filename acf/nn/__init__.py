"""The networks: the two encoders, the decoder, MLP, stacks of per-factor networks and energies, gates."""

from acf.nn.decoder import Decoder, as_pixels
from acf.nn.energies import Energies
from acf.nn.gates import sample_gates
from acf.nn.mlp import MLP
from acf.nn.places import PlacesEncoder
from acf.nn.residual import ResidualEncoder
from acf.nn.stack import StackedMLP

__all__ = [
    "MLP",
    "Decoder",
    "Energies",
    "PlacesEncoder",
    "ResidualEncoder",
    "StackedMLP",
    "as_pixels",
    "sample_gates",
]
