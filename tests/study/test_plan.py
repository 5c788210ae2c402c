"""Study files: the ones that are shipped, and what is wrong with others, found before any work."""

import pytest

from acf.errors import AcfError
from acf.study.plan import SHIPPED, Cell, choose, hparams_of, read_study
from acf.training import presets

GOOD = """
domains = ["lamp"]
seeds = 2
sizes = "quick"
[methods]
acf = ["quick"]
"""


@pytest.fixture
def study(tmp_path):
    """`study(text)` reads a file with this text."""

    def read(text):
        file = tmp_path / "mine.toml"
        file.write_text(text)
        return read_study(str(file))

    return read


def test_the_papers_study():
    study = read_study("paper")
    assert study.is_the_papers_size
    cells = study.cells()
    assert len(set(cells)) == len(cells) == 4 * 5 * 5 + 4 * 5 + 5  # five settings on each domain; the ablation's own
    assert len(study.pairs()) == 4 * 4 + 1
    # All six settings of ACF on DoorKey are one population; the full one is in both parts, and is trained once.
    presets = ("paper", "sparse", "no-fwd", "no-inv", "no-policy", "no-ratio")
    assert study.presets("doorkey", "acf") == presets
    assert study.presets("taxi", "acf") == ("paper", "sparse")
    assert study.presets("taxi", "factored_markov") == ()
    assert [cell for cell in cells if cell.method == "factored_markov"] == [
        Cell("doorkey", "factored_markov", "paper", seed) for seed in range(5)
    ]
    size = study.size("doorkey", "acf")
    assert (size.transitions, size.epochs, size.depth, size.hidden) == (150_000, 100, 24, 256)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_studies_have_every_method(name):
    study = read_study(name)
    assert {method for _, method in study.pairs()} == {"acf", "gcl", "dms", "msa", "factored_markov"}


def test_smoke_is_small_and_not_the_papers():
    study = read_study("smoke")
    assert not study.is_the_papers_size
    size = study.size("grid2d", "dms")
    assert (size.transitions, size.epochs, size.depth) == (1500, 2, 8)


def test_hyperparameters_are_whole():
    """What a preset does not say is the method's default, whatever the preset of the sizes says."""
    assert hparams_of("dms", "paper", "taxi")["speed"] == 1
    assert hparams_of("dms", "quick", "taxi")["speed"] == 5
    assert hparams_of("acf", "no-inv", "taxi")["inv"] == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"lamp"', '"moon"', "unknown domain 'moon': expected one of lamp"),
        ('"lamp"', '"lamp", "lamp"', "domains: a name stands there twice"),
        ('["lamp"]', "[]", "domains: expected a list of names, found []"),
        ('["lamp"]', '"lamp"', "expected a list for domains, found 'lamp'"),
        ("acf =", "magic =", "unknown method 'magic': expected one of lattice, acf"),
        ('acf = ["quick"]', 'gcl = ["sparse"]', "preset 'sparse' changes a term that only acf has"),
        ('acf = ["quick"]', 'acf = ["fast"]', "unknown preset 'fast': expected one of quick"),
        ('acf = ["quick"]', "acf = 3", "presets of acf: expected a list of names, found 3"),
        ('acf = ["quick"]', "", "expected at least one method"),
        ('sizes = "quick"', 'sizes = "huge"', "unknown preset 'huge'"),
        ('sizes = "quick"', "", "sizes is missing"),
        ("seeds = 2", "seeds = 0", "expected seeds of at least 1, found 0"),
        ("seeds = 2", "seeds = true", "expected a whole number for seeds, found True"),
        ("seeds = 2", "seeds = 2\nepochs = 0", "expected epochs of at least 1, found 0"),
        ("seeds = 2", "seeds = 2\nspeed = 3", "unknown key speed, expected some of domains, seeds"),
        ("seeds = 2", "seeds = 2\ntransitions = 100", "100 transitions of lamp are 10 episodes, 1 of them for tests"),
        ("seeds = 2", "seeds = ", "is not TOML"),
        ("[methods]", '[ablation]\ndomain = "lamp"\n[methods]', "ablation: methods is missing"),
    ],
)
def test_bad_files(study, old, new, message):
    assert old in GOOD
    study(GOOD)
    with pytest.raises(AcfError) as caught:
        study(GOOD.replace(old, new))
    assert message in str(caught.value)
    assert "mine.toml" in str(caught.value)


def test_presets_that_cannot_be_told_apart(study, monkeypatch):
    monkeypatch.setitem(presets._ACF_ONLY, "no-inv", presets._ACF_ONLY["no-fwd"])
    with pytest.raises(AcfError, match="no-fwd and no-inv are the same hyperparameters for acf on lamp"):
        study(GOOD.replace('["quick"]', '["no-fwd", "no-inv"]'))


def test_no_such_study():
    with pytest.raises(AcfError, match="there is no study 'nature': expected paper, smoke or a TOML file"):
        read_study("nature")


def test_choose():
    assert choose(("a", "b", "c"), (), "domain") == ("a", "b", "c")
    assert choose(("a", "b", "c"), ("c", "a"), "domain") == ("a", "c")
    with pytest.raises(AcfError, match="the study has no domain z: expected some of a, b"):
        choose(("a", "b"), ("a", "z"), "domain")
