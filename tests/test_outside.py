"""A method and a domain of somebody else's: in a folder outside the package, or in a package that was installed."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import acf
from acf import domains, methods
from acf.errors import AcfError

ROOT = Path(__file__).parents[1]
DOMAIN, METHOD = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)
# Small and short, and long enough to tell the actions apart.
PRESET = """method = "mymethod:METHOD"
transitions = 3000
depth = 4
hidden = 32
batch_size = 64
epochs = 30
[hparams]
lr = 3e-3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Somebody's own, with the two examples of CONTRIBUTING.md word for word."""
    folder = tmp_path_factory.mktemp("mine")
    for name, text in (("mydomain.py", DOMAIN), ("mymethod.py", METHOD), ("small.toml", PRESET)):
        (folder / name).write_text(text)
    (folder / "bin").mkdir()
    (folder / "bin" / "acf").write_text("from acf.cli import main\nmain()\n")  # as pip makes it: its folder is no help
    return folder


def python(folder, *args, **env):
    env = os.environ | {"PYTHONPATH": str(ROOT)} | env
    return subprocess.run([sys.executable, *map(str, args)], cwd=folder, env=env, capture_output=True, text=True)


def command(folder, *args):
    done = python(folder, "bin/acf", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def run(folder):
    out = command(folder, "run", "mydomain:Dial", "--method", "mymethod:METHOD", "--preset", "small.toml")
    assert "mymethod:METHOD on dial" in out
    return folder / "runs" / "Dial-inverse-small"


@pytest.fixture
def mine(folder, monkeypatch):
    """Its modules, imported here."""
    monkeypatch.syspath_prepend(folder)
    import mydomain  # pyright: ignore[reportMissingImports]
    import mymethod  # pyright: ignore[reportMissingImports]

    yield mydomain, mymethod
    for name in ("mydomain", "mymethod"):
        del sys.modules[name]


def test_what_is_written(run):
    config = json.loads((run / "config.json").read_text())
    assert config["method"] == "mymethod:METHOD"
    assert config["members"][0]["preset"] == "small.toml"
    assert config["data"]["source"] | {"domain": "dial", "options": {"slip": 0.05}} == config["data"]["source"]


def test_it_learns(run):
    """At first any of three actions is as likely; a bar that moved tells which one it was, unless it slipped."""
    losses = [json.loads(line)["inverse"][0] for line in (run / "metrics.jsonl").read_text().splitlines()]
    np.testing.assert_allclose(losses[0], np.log(3), atol=0.3)
    assert 0.2 < losses[-1] < 0.4  # 0.23 is the entropy of the action given the move: at the ends two look alike
    member = json.loads((run / "scores.json").read_text())["members"][0]
    assert member["diag_controllable"] > 0.9


def test_in_another_process(folder, run):
    page = run / "report.html"
    page.unlink()
    assert "wrote runs/Dial-inverse-small/report.html" in command(folder, "report", "runs/Dial-inverse-small")
    assert "mymethod:METHOD on dial" in page.read_text()
    program = (
        "import acf; t = acf.load('runs/Dial-inverse-small'); "
        "print(t.encode(acf.Transitions.open('runs/Dial-inverse-small/data').frames[:5]).shape)"
    )
    assert python(folder, "-c", program).stdout == "(5, 2)\n"
    elsewhere = python(folder.parent, "-c", f"import acf; acf.load({str(run)!r})")
    assert elsewhere.stderr.splitlines()[-1].endswith(
        "method 'mymethod:METHOD': there is no module 'mymethod'. Run where it lies, put its folder on PYTHONPATH or "
        "install its package."
    )


def test_in_a_study(folder, run):
    study = """domains = ["mydomain:Dial"]
seeds = 1
sizes = "small.toml"
[methods]
"mymethod:METHOD" = ["small.toml"]
"""
    (folder / "mine.toml").write_text(study)
    out = command(folder, "study", "mine.toml", "--adopt", run)
    assert f"recorded {run} as results/mine/Dial-inverse.json" in out
    assert (folder / "results" / "mine" / "figures" / "heatmaps-Dial.png").exists()
    assert "nothing new to record\n1 of 1 trials are done" in command(folder, "study", "mine.toml")
    (folder / "mine.toml").write_text(study.replace("mymethod:METHOD", "acf.methods.gcl:METHOD"))
    wrong = python(folder, "bin/acf", "study", "mine.toml")
    assert wrong.stderr == "error: mine.toml: acf.methods.gcl:METHOD is known as gcl: write that\n"


def test_objects(mine, tmp_path):
    mydomain, mymethod = mine
    assert acf.make("mydomain:Dial") == acf.make(mydomain.Dial) == mydomain.Dial()
    assert domains.name_of(mydomain.Dial()) == domains.name_of(mydomain.Dial) == "mydomain:Dial"
    data = acf.collect(mydomain.Dial(slip=0.5), 300)
    assert data.source["options"] == {"slip": 0.5}
    tiny = {"preset": "quick", "epochs": 1, "hparams": {"lr": 1e-4}}
    run = acf.train(data, tmp_path / "run", method=mymethod.METHOD, **tiny)
    assert run.read_config().method == "mymethod:METHOD"
    acf.train(data, tmp_path / "run", method="mymethod:METHOD", **tiny)  # the same run
    assert acf.load(run.path).encode(data.frames[0]).shape == (2,)


def test_what_cannot_be_found_again(mine, tmp_path):
    mydomain, mymethod = mine
    data = acf.collect(mydomain.Dial(), 300)
    own = replace(mymethod.METHOD, name="own")
    with pytest.raises(
        AcfError, match=r"this method cannot be found again by another process: .* Put it into a module"
    ):
        acf.train(data, tmp_path / "run", method=own)
    assert not (tmp_path / "run").exists()
    assert methods.get(own) is own  # where nothing is written it will do
    with pytest.raises(AcfError, match="this domain cannot be found again"):
        domains.name_of(mydomain.Dial(slip=0.5))


def test_in_the_program_itself(folder):
    (folder / "program.py").write_text(
        METHOD + DOMAIN + "import acf\nacf.train(acf.collect(Dial(), 300), 'no', method=METHOD)"
    )
    done = python(folder, "program.py")
    assert done.stderr.splitlines()[-1].startswith("acf.errors.AcfError: this method cannot be found again")
    assert not (folder / "no").exists()


def test_shipped_ones_keep_their_names():
    assert methods.name_of(methods.get("acf")) == methods.name_of("acf.methods.acf:METHOD") == "acf"
    assert domains.name_of(acf.make("lamp")) == domains.name_of("acf.domains.lamp:Lamp") == "lamp"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("magic", "unknown method 'magic': expected one of lattice, .*, or MODULE:NAME"),
        ("a b:METHOD", "unknown method 'a b:METHOD'"),
        ("mymethod:", "unknown method 'mymethod:'"),
        ("nowhere.at.all:METHOD", "there is no module 'nowhere.at.all'"),
        ("mymethod:NOTHING", "the module mymethod has no 'NOTHING'"),
        ("mymethod:HParams", r"method 'mymethod:HParams': expected an acf.methods.base.Method, found type"),
    ],
)
def test_wrong_names(mine, name, message):
    with pytest.raises(AcfError, match=message):
        methods.get(name)


def test_a_module_with_a_fault_of_its_own(folder, monkeypatch):
    """Its own traceback says more than we could."""
    (folder / "faulty.py").write_text("import not_installed")
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(ModuleNotFoundError, match="not_installed"):
        methods.get("faulty:METHOD")


def test_domains_that_cannot_be_made(mine):
    mydomain, _ = mine

    class NoDataclass(acf.make(mydomain.Dial).__class__.__mro__[1]):  # of Domain itself
        name = "plain"
        sample = step = render = factors = lambda *_: None

    with pytest.raises(AcfError, match="domain plain: expected a dataclass, put @dataclass"):
        acf.make(NoDataclass)  # pyright: ignore[reportArgumentType]
    with pytest.raises(AcfError, match=r"domain Domain cannot be made .*; name an instance: DIAL = Dial"):
        acf.make("acf.domains.base:Domain")
    with pytest.raises(AcfError, match=r"expected an acf.domains.base.Domain, found DialState"):
        acf.make("mydomain:DialState")


@pytest.fixture
def package(folder, tmp_path):
    """The same as an installed package that says when it is imported."""
    info = tmp_path / "plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    points = "[acf.methods]\ninverse = plugin:METHOD\nacf = plugin:METHOD\n[acf.domains]\ndial = plugin:Dial\n"
    (info / "entry_points.txt").write_text(points)
    (tmp_path / "plugin.py").write_text("print('imported')\n" + DOMAIN + METHOD)
    return tmp_path


def test_entry_points(folder, package):
    path = {"PYTHONPATH": f"{ROOT}:{package}", "COLUMNS": "200"}
    for args, names in ((["run"], ["dial", "inverse"]), (["collect"], ["dial"]), (["train"], ["inverse"])):
        out = python(folder, "bin/acf", *args, "--help", **path).stdout
        assert "imported" not in out
        for name in names:
            assert f", {name} or MODULE:NAME" in out
    listed = python(folder, "bin/acf", "domains", **path)
    assert re.search(r"^│ dial +│ two buttons", listed.stdout, re.M), listed.stderr
    program = (
        "from acf import make, methods; print(make('dial').name, methods.get('inverse').name, methods.get('acf').name,"
        " methods.name_of(methods.get('inverse')), methods.name_of('plugin:METHOD'))"
    )
    assert python(folder, "-c", program, **path).stdout == "imported\ndial inverse acf inverse inverse\n"
