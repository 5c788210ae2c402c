"""The optuna study of a sweep: which samples were begun, and how each ended.

A trial is created whole, with its number and settings, in one step of the storage, and ended in one; so a sweep that is
killed at any moment finds each sample not begun, begun or ended, and neither loses one nor counts one twice.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from acf.errors import AcfError
from acf.files import write_atomic
from acf.study.sweep.plan import Plan
from acf.study.sweep.samples import Outcome, Sample

if TYPE_CHECKING:
    import optuna

CONNECT_S = 5  # to wait for a database server


def check_optuna() -> None:
    try:
        import optuna
    except ImportError:
        raise AcfError("acf sweep needs the package optuna: pip install 'acf-rl[sweep]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def open_storage(url: str) -> Any:
    """A database as optuna's storage, after a look that it answers."""
    import optuna
    import sqlalchemy
    import sqlalchemy.exc

    try:
        address = sqlalchemy.make_url(url)
    except sqlalchemy.exc.ArgumentError:
        raise AcfError(f"--storage: expected a URL such as postgresql://USER@HOST/DATABASE, got {url!r}") from None
    postgres = address.get_backend_name() == "postgresql"
    if address.drivername == "postgresql":
        address = address.set(drivername="postgresql+psycopg")  # the driver in our extra
    options: dict[str, Any] = {"poolclass": sqlalchemy.NullPool}  # calls are few, and none is left open
    if postgres:
        options["connect_args"] = {"connect_timeout": CONNECT_S}
    shown = address.render_as_string(hide_password=True)
    try:
        return optuna.storages.RDBStorage(address.render_as_string(hide_password=False), engine_kwargs=options)
    except ImportError as error:
        hint = "pip install 'acf-rl[postgres]'" if postgres else "install the driver of this database"
        raise AcfError(f"--storage {shown} needs a driver ({error}): {hint}") from None
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.OptunaError) as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise AcfError(f"--storage {shown} cannot be used ({reason}): check the URL and that its server runs") from None


def open_journal(path: Path) -> Any:
    """The default storage: a file, written by one process at a time, which holds the sweep's lock."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    if path.exists():  # what a killed process left: half a line, and optuna's own lock
        text = path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            write_atomic(path, whole)
    for left_over in path.parent.glob(f"{path.name}.lock*"):
        left_over.unlink()
    return JournalStorage(JournalFileBackend(str(path)))


def distributions(plan: Plan) -> dict[str, Any]:
    from optuna.distributions import FloatDistribution

    return {name: FloatDistribution(*range, log=range.log) for name, range in plan.ranges.items()}


class Ledger:
    def __init__(self, plan: Plan, storage: Any, name: str):
        import optuna

        direction = "maximize" if plan.maximise else "minimize"
        try:  # a finished study is only read
            self._study = optuna.load_study(storage=storage, study_name=name)
        except KeyError:
            self._study = optuna.create_study(storage=storage, study_name=name, direction=direction)
        self._plan = plan

    def begin(self, samples: list[Sample]) -> list[Sample]:
        """A running trial for each. One that is there already keeps its settings, whatever was drawn now."""
        import optuna

        trials, space = self._trials(), distributions(self._plan)
        for sample in samples:
            if sample.number not in trials:
                drawn = {name: sample.hparams[name] for name in space if name in sample.hparams}
                trial = optuna.trial.create_trial(
                    state=optuna.trial.TrialState.RUNNING,
                    params=drawn,
                    distributions={name: space[name] for name in drawn},
                    user_attrs={"sample": sample.number, "hparams": sample.hparams},
                )
                self._study.add_trial(trial)
        trials = self._trials()
        return [Sample(sample.number, trials[sample.number].user_attrs["hparams"]) for sample in samples]

    def end(self, outcome: Outcome, population: int, epochs: int) -> None:
        """Of a sample that was trained to its end."""
        from optuna.trial import TrialState

        trial = self._report(outcome, population, epochs)
        if trial is not None and outcome.objective is not None:
            self._study.tell(trial.number, outcome.objective)
        elif trial is not None:
            self._study.tell(trial.number, state=TrialState.FAIL)

    def prune(self, outcome: Outcome, population: int, epochs: int) -> None:
        from optuna.trial import TrialState

        trial = self._report(outcome, population, epochs)
        if trial is not None:
            state = TrialState.FAIL if outcome.objective is None else TrialState.PRUNED
            self._study.tell(trial.number, state=state)

    def _report(self, outcome: Outcome, population: int, epochs: int) -> "optuna.trial.FrozenTrial | None":
        """Note what was found so far; None where the trial has ended already."""
        import optuna

        trial = self._trials()[outcome.sample]
        if trial.state.is_finished():
            return None
        live = optuna.Trial(self._study, trial._trial_id)
        live.set_user_attr("population", population)
        live.set_user_attr("seeds", list(outcome.seeds))
        if outcome.objective is not None and epochs not in trial.intermediate_values:
            live.report(outcome.objective, epochs)
        return trial

    def _trials(self) -> dict[int, "optuna.trial.FrozenTrial"]:
        return {trial.user_attrs["sample"]: trial for trial in self._study.get_trials(deepcopy=False)}
