"""From latents to factors, without labels: steps, levels, a certificate, factors. Pure functions of arrays."""

from acf.factors.certificate import Certificate
from acf.factors.find import Factors, find_factors
from acf.factors.moves import Moves
from acf.factors.regroup import Factor
from acf.factors.share import Share

__all__ = ["Certificate", "Factor", "Factors", "Moves", "Share", "find_factors"]
