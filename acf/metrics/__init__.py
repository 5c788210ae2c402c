"""How well latents stand for the true factors: arrays in, plain results out.

- `evaluate`: latents, factors and episodes to an `Evaluation`: scores of each member, of the oracle and of chance.
- `r2_matrices`: the R² matrices of `evaluate`, without the rest.
- `r2_matrix`: held-out R² of each factor from each latent alone, by one small MLP per pair.
- `match`: which factor each latent stands for.
- `score`: the `Scores` of one R² matrix: `diag`, `off_diag`, over all and over the controllable factors.
- `summary`: mean and standard deviation of the scores over members.
- `mcc`: mean correlation coefficient, Pearson's or Spearman's.
- `dci`: disentanglement, completeness and informativeness; `dci_of` from an importance matrix of your own.
- `action_effects`: sparsity of the energies' score differences, and which latent each action moves.
- `movement`: how far each latent moved under each action.
- `udr`: how well members agree on their latents, where no factors are known.
"""

from acf.metrics.actions import ActionEffects, action_effects, movement, score_differences, strongest
from acf.metrics.dci import DCI, dci, dci_of
from acf.metrics.evaluate import CodeScores, Evaluation, evaluate, r2_matrices
from acf.metrics.matching import match
from acf.metrics.mcc import MCC, mcc
from acf.metrics.regression import r2_matrix
from acf.metrics.scores import SCORES, Scores, score, summary
from acf.metrics.udr import UDR, udr

__all__ = [
    "DCI",
    "MCC",
    "SCORES",
    "UDR",
    "ActionEffects",
    "CodeScores",
    "Evaluation",
    "Scores",
    "action_effects",
    "dci",
    "dci_of",
    "evaluate",
    "match",
    "mcc",
    "movement",
    "r2_matrices",
    "r2_matrix",
    "score",
    "score_differences",
    "strongest",
    "summary",
    "udr",
]
