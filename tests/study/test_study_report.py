"""The page of a study from its records alone: what stands in its tables is what stands in the records."""

import csv
import json
import re

import numpy as np
import pytest
from fake_runs import STUDY, TINY, diag_of, fake_run, off_diag_of

from acf.errors import AcfError
from acf.study.plan import Cell, read_study
from acf.study.study_report import report_study
from acf.study.work import adopt
from acf.training import presets


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setattr(presets, "QUICK", TINY)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(STUDY)
    return read_study("mine.toml")


def cells(domain, method, *presets, seeds=(0, 1)):
    return [Cell(domain, method, preset, seed) for preset in presets for seed in seeds]


def tables(markdown):
    """The rows below each heading, cell by cell."""
    found = {}
    for part in markdown.split("\n## ")[1:]:
        lines = [line for line in part.splitlines() if line.startswith("|")]
        found[part.splitlines()[0]] = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return found


def shown(of_setting, value):
    values = [value(cell) for cell in of_setting]
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def test_numbers_are_those_of_the_records(study, tmp_path):
    out = tmp_path / "out"
    # The settings of one method lie in two records, the seeds of one setting too.
    runs = [
        [*cells("lamp", "acf", "sparse"), *cells("lamp", "acf", "quick", seeds=[1])],
        [*cells("lamp", "acf", "quick", seeds=[0]), *cells("lamp", "acf", "no-fwd", seeds=[0])],
        cells("grid2d", "msa", "quick"),
    ]
    adopt(study, out, tuple(fake_run(tmp_path / str(n), study, of_run) for n, of_run in enumerate(runs)))
    (out / ".gitignore").unlink()  # as where records were only copied together
    report_study(study, out)
    assert "/report.html" in (out / ".gitignore").read_text()
    text = (out / "README.md").read_text()
    found = tables(text)

    main = {(row[0], row[1]): row[2:] for row in found["Every method on every domain"]}
    assert list(main) == [
        (domain, label) for domain in ("lamp", "grid2d") for label in ("ACF", "ACF sparse (ours)", "MSA")
    ]
    for key, setting in {
        ("lamp", "ACF"): cells("lamp", "acf", "quick"),
        ("lamp", "ACF sparse (ours)"): cells("lamp", "acf", "sparse"),
        ("grid2d", "MSA"): cells("grid2d", "msa", "quick"),
    }.items():
        scores = [shown(setting, diag_of), shown(setting, off_diag_of)]
        assert main[key][:8] == ["2", *scores, "0.999", "0.111", "0.002", "0.001", "0"]
    for key in [("lamp", "MSA"), ("grid2d", "ACF"), ("grid2d", "ACF sparse (ours)")]:
        assert main[key][:3] == ["0 of 2", "missing", "missing"]
    assert {cell for row in main.values() for cell in row[8:]} == {"not in the paper"}  # it is not the paper's size

    ablation = found["Ablation on lamp"]
    (one,) = cells("lamp", "acf", "no-fwd", seeds=[0])
    assert ablation[0][:3] == ["ACF", "2", shown(cells("lamp", "acf", "quick"), diag_of)]
    assert ablation[1][:3] == ["ACF no-fwd", "1 of 2", f"{diag_of(one):.3f}"]
    assert [row[0] for row in ablation[2:]] == ["oracle", "chance"]

    missing = {(row[0], row[1]): row[2:] for row in found["Still missing"]}
    command = "`acf study mine.toml --out {} --domains lamp --methods acf`"
    assert missing["lamp", "ACF no-fwd"] == ["seed 1", command.format(out)]
    assert ("grid2d", "MSA") not in missing
    assert "7 of 14 trials" in text
    assert len(found["Time and cost of a trial"]) == 3
    assert "lamp, ACF: no traversals, it was recorded without them." in text
    assert "grid2d, ACF: no traversals, it is not trained yet." in text

    bars = list(csv.DictReader((out / "figures/bars.csv").read_text().splitlines()))
    assert len(bars) == 3 * 2
    row = next(r for r in bars if (r["domain"], r["method"], r["score"]) == ("grid2d", "MSA", "diag"))
    assert float(row["mean"]) == pytest.approx(np.mean([diag_of(c) for c in cells("grid2d", "msa", "quick")]))
    heat = list(csv.DictReader((out / "figures/heatmaps-lamp.csv").read_text().splitlines()))
    assert {r["method"] for r in heat} == {"ACF", "ACF sparse (ours)", "oracle"}
    own = next(r for r in heat if (r["method"], r["panel"]) == ("ACF", "std"))
    assert float(own["r2"]) == pytest.approx(np.std([diag_of(c) for c in cells("lamp", "acf", "quick")]))


def test_the_page_needs_nothing_else_and_says_the_same(study, tmp_path):
    out = tmp_path / "out"
    adopt(study, out, (fake_run(tmp_path / "run", study, cells("lamp", "acf", "quick")),))
    _, page = report_study(study, out)
    text = page.read_text()
    assert re.findall(r"(?:src|href)='(?!data:)[^']*'", text) == []
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    assert {*re.findall(r"data-figure='([^']*)'", text)} == {"bars", "heatmaps-lamp"}
    assert {file.name for file in (out / "figures").iterdir()} == {
        f"{name}.{kind}" for name in ("bars", "heatmaps-lamp") for kind in ("png", "csv")
    }
    for row in tables((out / "README.md").read_text())["Every method on every domain"]:
        assert f"<th scope='row'>{row[0]}</th>{''.join(f'<td>{cell}</td>' for cell in row[1:])}" in text


def test_diverged_members_are_counted(study, tmp_path):
    run = fake_run(tmp_path / "run", study, cells("lamp", "acf", "quick"))
    scores = json.loads((run / "scores.json").read_text())
    scores["members"][1]["diverged_at"] = 16
    (run / "scores.json").write_text(json.dumps(scores))
    adopt(study, tmp_path / "out", (run,))
    report_study(study, tmp_path / "out")
    main = tables((tmp_path / "out/README.md").read_text())["Every method on every domain"]
    assert main[0][9] == "1"


def test_beside_the_papers_numbers(tmp_path):
    """Those of its table, and nothing where it has only a figure."""
    study, out = read_study("paper"), tmp_path / "out"
    run = fake_run(tmp_path / "run", study, cells("doorkey", "acf", "paper", "no-fwd", seeds=range(5)))
    content = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(content | {"device": "abacus"}))
    adopt(study, out, (run,))
    record = out / "doorkey-acf.json"
    text = record.read_text().replace('"training_seconds": null', '"training_seconds": 1800')
    record.write_text(text.replace('"device_seconds": null', '"device_seconds": 900'))  # beside another population
    report_study(study, out)
    found = tables((out / "README.md").read_text())
    theirs = {row[0]: (row[3], row[5]) for row in found["Ablation on doorkey"]}
    assert theirs == {
        "ACF": ("0.565 ± 0.042", "0.250 ± 0.021"),
        "ACF no-fwd": ("0.199 ± 0.059", "0.103 ± 0.034"),
        "ACF no-inv": ("0.529 ± 0.027", "0.192 ± 0.028"),
        "ACF no-policy": ("0.463 ± 0.069", "0.230 ± 0.054"),
        "ACF no-ratio": ("0.508 ± 0.077", "0.235 ± 0.035"),
        "Factored Markov": ("0.486 ± 0.049", "0.264 ± 0.034"),
        "oracle": ("not in the paper",) * 2,
        "chance": ("not in the paper",) * 2,
    }
    main = {(row[0], row[1]): row[-2:] for row in found["Every method on every domain"]}
    assert main.pop(("doorkey", "ACF")) == ["0.565 ± 0.042", "0.250 ± 0.021"]
    ours = [main.pop((domain, "ACF sparse (ours)")) for domain in study.domains]
    assert ours == [["not in the paper"] * 2] * 4
    assert set(map(tuple, main.values())) == {("figure only", "figure only")}
    # Ten members with 900 s of the device: a tenth of the paper's 15 minutes each.
    ((name, members, device, whole, one, share, *_),) = found["Time and cost of a trial"]
    assert (name, members, device, whole, one, share) == ("doorkey-acf", "10", "abacus", "1800 s", "90.0 s", "10.0 %")


def test_nothing_to_report(study, tmp_path):
    with pytest.raises(AcfError, match=r"out has no records yet: `acf study mine.toml --out .*out` makes them"):
        report_study(study, tmp_path / "out")
    assert not (tmp_path / "out").exists()
