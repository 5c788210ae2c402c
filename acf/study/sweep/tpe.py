"""Samples that learn from earlier ones: optuna's tree-structured Parzen estimator."""

from collections.abc import Sequence

import numpy as np

from acf.study.sweep.plan import Plan
from acf.study.sweep.samples import Outcome, Sample


def propose(plan: Plan, numbers: Sequence[int], done: dict[int, tuple[Sample, Outcome]]) -> list[dict[str, float]]:
    """Settings for these samples from what is known of earlier ones.

    Asked of a study in memory that holds just that, by a sampler with a seed of its own: what is proposed depends on
    the results alone, not on how often the sweep was stopped.
    """
    import optuna

    from acf.study.sweep.ledger import distributions

    space = distributions(plan)
    seed = int(np.random.default_rng([plan.seed, numbers[0]]).integers(2**31))
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(sampler=sampler, direction="maximize" if plan.maximise else "minimize")
    for _, (sample, outcome) in sorted(done.items()):
        if sample.hparams and outcome.objective is not None:
            known = optuna.trial.create_trial(params=sample.hparams, distributions=space, value=outcome.objective)
            study.add_trial(known)
    return [dict(study.ask(space).params) for _ in numbers]
