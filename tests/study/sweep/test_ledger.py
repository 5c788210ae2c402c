"""The optuna study: every sample once, however often it is begun and ended."""

import optuna
import pytest
from sweeps import plan

from acf.errors import AcfError
from acf.study.sweep.ledger import Ledger, open_journal, open_storage
from acf.study.sweep.samples import Outcome, Sample

SAMPLES = [Sample(0, {}), Sample(1, {"lr": 1e-3, "noise": 0.1}), Sample(2, {"lr": 2e-3, "noise": 0.0})]


def ledger(path, **changes):
    return Ledger(plan(**changes), open_journal(path), "study")


def found(path):
    return optuna.load_study(study_name="study", storage=open_journal(path)).trials


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "study.journal"
    ledger(path).begin(SAMPLES)
    return path


def test_begun(journal):
    trials = found(journal)
    assert [t.state.name for t in trials] == ["RUNNING"] * 3
    assert [t.params for t in trials] == [sample.hparams for sample in SAMPLES]
    assert [t.user_attrs for t in trials] == [{"sample": s.number, "hparams": s.hparams} for s in SAMPLES]
    assert trials[1].distributions["lr"] == optuna.distributions.FloatDistribution(1e-4, 1e-2, log=True)


def test_what_was_begun_keeps_its_settings(journal):
    again = [Sample(3, {"lr": 3e-3, "noise": 0.2}), Sample(1, {"lr": 9e-3, "noise": 0.5})]
    assert ledger(journal).begin(again) == [again[0], SAMPLES[1]]
    assert [t.user_attrs["sample"] for t in found(journal)] == [0, 1, 2, 3]


def test_ended_once(journal):
    for _ in range(2):
        own = ledger(journal)
        own.end(Outcome(1, 0.25, (0.2, 0.3)), 7, epochs=8)
        own.end(Outcome(2, None, (0.2, None)), 7, epochs=8)
        own.prune(Outcome(0, 0.1, (0.1, 0.1)), 6, epochs=2)
        own.end(Outcome(1, 0.5, (0.5, 0.5)), 8, epochs=8)  # comes too late
    pruned, ended, failed = found(journal)
    assert [t.state.name for t in (pruned, ended, failed)] == ["PRUNED", "COMPLETE", "FAIL"]
    assert (ended.value, ended.user_attrs["seeds"], ended.user_attrs["population"]) == (0.25, [0.2, 0.3], 7)
    assert (pruned.value, pruned.intermediate_values) == (0.1, {2: 0.1})
    assert (failed.values, failed.user_attrs["seeds"]) == (None, [0.2, None])


@pytest.mark.parametrize(("objective", "direction"), [("udr", "MAXIMIZE"), ("loss", "MINIMIZE")])
def test_direction(tmp_path, objective, direction):
    ledger(tmp_path / "study", objective=objective)
    assert optuna.load_study(study_name="study", storage=open_journal(tmp_path / "study")).direction.name == direction


def test_what_a_killed_process_leaves(journal):
    """Half a line at the end, and optuna's lock."""
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code": 4, "wor')
    (journal.parent / f"{journal.name}.lock").symlink_to(journal)
    ledger(journal).end(Outcome(1, 0.25, (0.2, 0.3)), 0, epochs=8)
    assert journal.read_bytes().startswith(whole)
    assert [t.state.name for t in found(journal)] == ["RUNNING", "COMPLETE", "RUNNING"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("study.db", "--storage: expected a URL such as postgresql://USER@HOST/DATABASE, got 'study.db'"),
        ("moon://here/db", "--storage moon://here/db cannot be used"),
        ("mysql+mysqldb://me:secret@localhost/db", r"--storage mysql\+mysqldb://me:\*\*\*@localhost/db needs a driver"),
        ("postgresql://me:secret@127.0.0.1:9/db", r"me:\*\*\*@127.0.0.1:9/db cannot be used \(.*refused.*\): check"),
        ("sqlite:////nowhere/at/all.db", "cannot be used .*unable to open database file"),
    ],
)
def test_bad_storage(url, message):
    with pytest.raises(AcfError, match=message) as error:
        open_storage(url)
    assert "secret" not in str(error.value)


def test_sqlite(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    Ledger(plan(), open_storage(url), "study").begin(SAMPLES)
    Ledger(plan(), open_storage(url), "study").end(Outcome(1, 0.25, (0.2, 0.3)), 0, epochs=8)
    states = [t.state.name for t in optuna.load_study(study_name="study", storage=url).trials]
    assert states == ["RUNNING", "COMPLETE", "RUNNING"]
