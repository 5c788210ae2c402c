"""The `acf` command made small: tiny `quick` preset, method `toy`, and squared correlations in place of regressors.

For tests of whole studies, in this process and in one of their own. Scores are still a function of the weights.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

import small_acf  # pyright: ignore[reportMissingImports]

from acf.methods import METHODS
from acf.metrics import CodeScores, Evaluation, score
from acf.study import evaluate as of_study
from acf.training import presets


def evaluate(z, s, episode, *, controllable, more=(), seed):
    def code(latents):
        K = s.shape[1]
        both = np.column_stack([latents, s]) + 1e-3 * np.random.default_rng(seed).normal(size=(len(s), 2 * K))
        r2 = np.asarray(np.corrcoef(both.T))[:K, K:] ** 2
        more = dict.fromkeys(("mcc_pearson", "mcc_spearman", "disentanglement", "completeness", "informativeness"), 0.5)
        return CodeScores(**vars(score(r2, controllable)), intervals={}, r2_interval=np.stack([r2, r2]), **more)

    same = [code(s) for _ in more]  # codes of other widths: what they are is of no interest here
    return Evaluation(tuple(map(code, z)), code(s), code(z[0][::-1]), tuple(same))


def install(monkeypatch) -> None:
    small_acf.install(monkeypatch)
    monkeypatch.setattr(of_study, "evaluate", evaluate)


if __name__ == "__main__":
    from acf.cli import main

    presets.QUICK, METHODS["toy"], of_study.evaluate = small_acf.TINY, "small_acf", evaluate
    main()
