"""`acf study` as it is typed."""

import json
import shutil

import pytest

STUDY = """
domains = ["lamp"]
seeds = 8
sizes = "quick"
[methods]
acf = ["quick"]
"""


@pytest.fixture
def mine(small, tmp_path):
    (tmp_path / "mine.toml").write_text(STUDY)
    return "mine.toml"


def test_adopt_then_report(command, mine, runs, tmp_path):
    """A run with its weights: scored, recorded, and its traversals drawn, which outlive it."""
    shutil.copytree(runs, "copy")
    code, out, _ = command("study", mine, "--adopt", "copy/lamp")
    assert code == 0
    assert out.splitlines() == [
        "recorded copy/lamp as results/mine/lamp-acf.json",
        "wrote results/mine/README.md, results/mine/report.html and their figures as PNG and CSV in "
        "results/mine/figures",
        "Open results/mine/report.html in a browser",
    ]
    here = tmp_path / "results" / "mine"
    record = json.loads((here / "lamp-acf.json").read_text())
    assert record["members"] == [{"preset": "quick", "seed": 7}, {"preset": "quick", "seed": 3}]
    assert record["training_seconds"] > 0
    assert record["device"] == "cpu"
    assert record["scores"]["members"] == json.loads((tmp_path / "copy/lamp/scores.json").read_text())["members"]
    names = {f"traversal-{kind}-lamp-acf-quick-seed3.{ext}" for kind in ("mean", "samples") for ext in ("png", "csv")}
    assert names <= {file.name for file in (here / "figures").iterdir()}
    assert (here / ".gitignore").read_text().split() == ["/data/", "/runs/", "/report.html", ".lock"]

    shutil.rmtree("copy")
    (here / "README.md").unlink()
    code, out, _ = command("study", mine, "--report")
    assert (code, len(out.splitlines())) == (0, 2)
    text = (here / "README.md").read_text()
    assert "![mean observation along each latent of lamp, ACF](figures/traversal-mean-lamp-acf-quick-seed3.png)" in text
    assert "6 of 8 trials. `acf study mine.toml --out results/mine` trains them all." in text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nature",), "there is no study 'nature': expected paper, smoke or a TOML file"),
        (("mine.toml", "--domains", "taxi"), "the study has no domain taxi: expected some of lamp"),
        (("mine.toml", "--time-limit", "-1"), "expected a time limit of more than 0 minutes, got -1"),
        (("mine.toml", "--adopt", "nowhere"), "nowhere is not a run directory"),
        (("mine.toml", "--report"), "results/mine has no records yet: `acf study mine.toml --out results/mine`"),
        (("mine.toml", "--report", "--adopt", "x"), "expected --report or --adopt, got both"),
        (("mine.toml", "--report", "--methods", "acf"), "--report draws the whole study: leave out --domains"),
        (("bad.toml",), "bad.toml: expected seeds of at least 1, found 0"),
    ],
)
def test_bad_input_before_any_work(command, mine, tmp_path, args, message):
    (tmp_path / "bad.toml").write_text(STUDY.replace("seeds = 8", "seeds = 0"))
    code, out, err = command("study", *args)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {message}")
    assert {path.name for path in tmp_path.rglob("*")} == {"mine.toml", "bad.toml"}


def test_a_time_limit_before_the_first_record(command, mine, monkeypatch):
    """It is no error that there is nothing to report yet."""
    from acf.study import work

    monkeypatch.setattr(work, "_work", lambda *args: pytest.fail("begun after the time was up"))
    code, out, err = command("study", mine, "--time-limit", 1e-9)
    assert (code, err) == (0, "")
    assert out.splitlines() == ["nothing new to record", "0 of 8 trials are done; the same command goes on"]


def test_help_says_enough(command):
    code, out, _ = command("study", "--help")
    assert code == 0
    for word in ("paper", "smoke", "--out", "--domains", "--methods", "--time-limit", "--report", "--adopt"):
        assert word in out


def test_smoke(command, tmp_path):
    """All methods from nothing to the page, as a user types it."""
    code, out, err = command("study", "smoke")
    assert code == 0, err
    assert "12 of 12 trials are done" in out
    here = tmp_path / "results" / "smoke"
    assert len(list(here.glob("*.json"))) == 5
    text = (here / "README.md").read_text()
    assert "missing" not in text
    assert (here / "report.html").stat().st_size > 100_000
    code, out, err = command("study", "smoke")
    assert (code, err) == (0, "")
    assert "nothing new to record" in out
