"""How well latents stand for the true factors: arrays in, plain results out.

- `evaluate`: latents, factors and episodes to an `Evaluation`: scores of each member, of the oracle and of chance.
- `r2_matrix`: held-out R² of each factor from each latent alone, by one small MLP per pair.
- `match`: which factor each latent stands for.
- `score`: the `Scores` of one R² matrix: `diag`, `off_diag`, over all and over the controllable factors.
- `summary`: mean and standard deviation of the scores over members.
"""

from acf.metrics.evaluate import Evaluation, evaluate
from acf.metrics.matching import match
from acf.metrics.regression import r2_matrix
from acf.metrics.scores import Scores, score, summary

__all__ = ["Evaluation", "Scores", "evaluate", "match", "r2_matrix", "score", "summary"]
