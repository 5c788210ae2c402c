"""The networks: residual encoder and decoder, MLP, and the stack of per-factor energies."""

from acf.nn.decoder import Decoder
from acf.nn.encoder import Encoder
from acf.nn.energies import Energies
from acf.nn.mlp import MLP

__all__ = ["MLP", "Decoder", "Encoder", "Energies"]
