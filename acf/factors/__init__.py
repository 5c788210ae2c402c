"""From latents to factors, without labels: steps, levels, a certificate, factors. Pure functions of arrays."""

from acf.factors.certificate import Certificate, certify
from acf.factors.find import Factors, find_factors
from acf.factors.moves import Moves

__all__ = ["Certificate", "Factors", "Moves", "certify", "find_factors"]
