"""Records: made from runs, read again, and refused where they disagree with the study."""

import json
from dataclasses import replace

import numpy as np
import pytest
from fake_runs import STUDY, TINY, diag_of, fake_run

from acf.errors import AcfError
from acf.study.plan import Cell, read_study
from acf.study.records import read_records, record_of, write_record
from acf.study.work import adopt, missing_cells, populations
from acf.training import presets


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setattr(presets, "QUICK", TINY)
    (tmp_path / "mine.toml").write_text(STUDY)
    return read_study(str(tmp_path / "mine.toml"))


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


MIXED = [Cell("lamp", "acf", preset, seed) for preset in ("quick", "no-fwd") for seed in (0, 1)]


def test_each_member_is_recognised_and_presets_are_not_mixed(study, tmp_path, out):
    about = {"device": "abacus", "command": "acf x"}
    record = record_of(fake_run(tmp_path / "run", study, MIXED), study, **about, seconds=12.0, device_seconds=4.0)
    assert record["members"] == [{"preset": cell.preset, "seed": cell.seed} for cell in MIXED]
    for preset in ("quick", "no-fwd"):
        values = [diag_of(cell) for cell in MIXED if cell.preset == preset]
        assert record["summary"][preset]["diag"] == {"mean": np.mean(values), "std": np.std(values)}
    assert "diag" not in record["scores"]
    assert record["scores"]["members"][3]["diag"] == diag_of(MIXED[3])
    about |= {"training_seconds": 12.0, "device_seconds": 4.0, "versions": {"jax": "0"}}
    assert {name: record[name] for name in about} == about
    assert "path" not in record["config"]["data"]

    write_record(out / "lamp-acf.json", record)
    assert json.loads((out / "lamp-acf.json").read_text()) == json.loads(json.dumps(record))
    (read,) = read_records(study, out)
    assert read.cells == tuple(MIXED)
    assert missing_cells(study, [read]) == [cell for cell in study.cells() if cell not in MIXED]


def test_what_members_learned_beside_is_kept(study, tmp_path):
    run = fake_run(tmp_path / "run", study, MIXED)
    assert "extras" not in record_of(run, study)
    for n in range(len(MIXED)):
        (run / f"members/{n}").mkdir(parents=True)
        (run / f"members/{n}/extras.json").write_text(f'{{"graphs": {n}}}')
    assert record_of(run, study)["extras"] == [{"graphs": n} for n in range(len(MIXED))]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 3}, "run is not a run of mine.toml as it stands (epochs: 3 there, 2 asked)"),
        ({"method": "gcl"}, "run has gcl on lamp, which mine.toml does not ask for"),
        ({"data": {"hash": "abc", "source": {}}}, "run has acf on data of its own, which mine.toml does not ask for"),
        ({"members": [{"seed": 0, "hparams": {}}]}, "member 0 (seed 0) has the hyperparameters of no preset"),
    ],
)
def test_runs_that_do_not_fit(study, tmp_path, out, changes, message):
    run = fake_run(tmp_path / "run", study, MIXED, **changes)
    with pytest.raises(AcfError) as caught:
        adopt(study, out, (run,))
    assert message in str(caught.value)
    assert list(out.glob("*.json")) == []


def test_the_nearest_preset_is_named(study, tmp_path, out):
    run = fake_run(tmp_path / "run", study, MIXED)
    config = json.loads((run / "config.json").read_text())
    config["members"][3]["hparams"]["noise"] = 0.5
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(AcfError, match=r"member 3 \(seed 1\) .* nearest is no-fwd \(noise: 0.5 there, 0.02 asked\)"):
        adopt(study, out, (run,))


def test_scores_of_other_members(study, tmp_path, out):
    run = fake_run(tmp_path / "run", study, MIXED)
    scores = json.loads((run / "scores.json").read_text())
    scores["members"].pop()
    (run / "scores.json").write_text(json.dumps(scores))
    with pytest.raises(AcfError, match=r"seeds \[0, 1, 0, 1\], but the scores are of seeds \[0, 1, 0\]"):
        adopt(study, out, (run,))


def test_split_runs_are_adopted_as_several_records(study, tmp_path, out):
    first = fake_run(tmp_path / "first", study, MIXED[:2])
    second = fake_run(tmp_path / "second", study, MIXED[2:])
    assert adopt(study, out, (first, second)) == ["lamp-acf", "lamp-acf-2"]
    records = read_records(study, out)
    assert {cell for record in records for cell in record.cells} == set(MIXED)
    # What is still missing there is the next population.
    (left,) = [p for p in populations(study, out, records) if (p.domain, p.method) == ("lamp", "acf")]
    assert left.name == "lamp-acf-3"
    assert left.cells == (Cell("lamp", "acf", "sparse", 0), Cell("lamp", "acf", "sparse", 1))

    before = sorted(out.iterdir())
    with pytest.raises(AcfError, match="lamp acf quick seeds 0-1, or a record has it already"):
        adopt(study, out, (first,))
    assert sorted(out.iterdir()) == before


def test_a_directory_of_another_study_is_not_touched(study, tmp_path, out):
    run = fake_run(tmp_path / "run", study, MIXED)
    (out / "README.md").write_text("# The study `smoke`\n")
    with pytest.raises(AcfError, match=r"out is the directory of another study \(The study `smoke`\): choose another"):
        adopt(study, out, (run,))
    (out / "README.md").write_text("# The study `elsewhere/mine.toml`\n")
    assert adopt(study, out, (run,)) == ["lamp-acf"]


def test_a_directory_of_something_else_is_not_touched(study, tmp_path, out):
    run = fake_run(tmp_path / "run", study, MIXED)
    (out / "README.md").write_text("# My project")
    (out / ".gitignore").write_text("*.pyc")
    (tmp_path / "file").touch()
    for where in (out, tmp_path / "file"):
        with pytest.raises(AcfError, match="is not the directory of a study, and would be overwritten"):
            adopt(study, where, (run,))
    assert {file.name: file.read_text() for file in out.iterdir()} == {
        "README.md": "# My project",
        ".gitignore": "*.pyc",
    }


def test_all_or_none_are_adopted(study, tmp_path, out):
    good, bad = fake_run(tmp_path / "a", study, MIXED[:2]), fake_run(tmp_path / "b", study, MIXED[2:], epochs=9)
    with pytest.raises(AcfError, match="epochs: 9 there, 2 asked"):
        adopt(study, out, (good, bad))
    assert list(out.glob("*.json")) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 7}, r"lamp-acf.json is not a run of mine.toml .*epochs: 2 there, 7 asked"),
        ({"transitions": 900}, r"data.transitions: 600 there, 900 asked"),
    ],
)
def test_a_record_that_disagrees_with_the_study(study, tmp_path, out, change, message):
    adopt(study, out, (fake_run(tmp_path / "run", study, MIXED),))
    with pytest.raises(AcfError, match=message):
        read_records(replace(study, **change), out)


def test_a_record_that_disagrees_with_its_preset(study, tmp_path, out, monkeypatch):
    adopt(study, out, (fake_run(tmp_path / "run", study, MIXED),))
    monkeypatch.setitem(presets._ACF_ONLY, "no-fwd", {"fwd": 0.5})
    with pytest.raises(AcfError, match=r"its no-fwd is not that of mine.toml \(fwd: 0.0 there, 0.5 asked\)"):
        read_records(study, out)
    # A study that does not ask for it does not mind, and does not count it.
    read_records(replace(study, ablation=None), out)


def test_records_that_cannot_be_read(study, tmp_path, out):
    adopt(study, out, (fake_run(tmp_path / "run", study, MIXED),))
    good = (out / "lamp-acf.json").read_text()
    for text, message in [
        ("{}", "is not the record of a study, or damaged"),
        ("[1]", "is not the record of a study, or damaged"),
        (good[:-30], "is not the record of a study, or damaged"),
        (good.replace('"format": 1', '"format": 9', 1), "expected a record of format 1, found 9"),
    ]:
        (out / "lamp-acf.json").write_text(text)
        with pytest.raises(AcfError, match=message):
            read_records(study, out)
    for name in ("lamp-acf", "copy"):
        (out / f"{name}.json").write_text(good)
    with pytest.raises(AcfError, match=r"lamp acf quick seed 0 is in two records, .*copy.json and .*lamp-acf.json"):
        read_records(study, out)


def test_a_preset_that_is_known_is_not_guessed(study, tmp_path):
    """Its numbers have changed since: it is not taken for the preset that is nearest now."""
    run = fake_run(tmp_path / "run", study, MIXED[2:3])
    config = json.loads((run / "config.json").read_text())
    (member,) = config["members"]
    member["hparams"] |= {"ratio": 0.0}  # no-fwd but for one number
    for preset, nearest in ((None, "no-fwd"), ("quick", "quick"), ("another", "no-fwd")):
        member["preset"] = preset
        (run / "config.json").write_text(json.dumps(config))
        with pytest.raises(AcfError, match=f"the nearest is {nearest} "):
            record_of(run, study)
