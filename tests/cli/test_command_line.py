"""The commands that take no training: help, errors, `domains`, `collect`, `data`."""

import re
import subprocess
import sys
import warnings
from dataclasses import replace

import matplotlib.image
import pytest

from acf import __version__
from acf.data import Transitions, collect
from acf.domains import DOMAINS, make

COMMANDS = {
    "run": ["--method", "--preset", "--seed", "--seeds", "--out", "--epochs", "--hparams"],
    "domains": ["--out", "--start", "--seed"],
    "collect": [
        *("--out", "--transitions", "--seed", "--start", "--horizon", "--policy"),
        *("--noop", "--size", "--gray,", "--stack", "--factors", "--render,"),
    ],
    "data": ["--noop"],
    "train": ["--out", "--method", "--preset", "--seed", "--seeds", "--latents", "--epochs", "--bf16", "--noop"],
    "sweep": ["--samples", "--seeds", "--population", "--objective", "--ranges", "--sampler", "--storage", "--ray"],
    "evaluate": ["--seed"],
    "report": ["--out"],
    "agent": ["--task", "--encoder", "--agent", "--goal", "--steps", "--seeds", "--out"],
}


def acf(*args):
    return subprocess.run([sys.executable, "-m", "acf", *args], capture_output=True, text=True)


def test_help_lists_the_commands():
    done = acf("--help")
    assert done.returncode == 0
    for name in COMMANDS:
        assert re.search(rf"^\W+{name} +\w", done.stdout, re.M)


def test_help_loads_nothing_heavy():
    program = """
import sys
from acf.cli import main
for name in ("", "run", "domains", "collect", "data", "train", "sweep", "evaluate", "report", "agent"):
    try:
        main([*name.split(), "--help"])
    except SystemExit as end:
        assert end.code == 0
heavy = {"jax", "numpy", "flax", "optax", "scipy", "matplotlib", "optuna", "ray"}
print("loaded:", sorted(heavy & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.endswith("loaded: []\n"), done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(command, name):
    code, out, err = command(name, "--help")
    assert (code, err) == (0, "")
    for flag in COMMANDS[name]:
        # Every flag is there, with its kind and a line that explains it.
        assert re.search(rf"^\W*{flag} [^ ]+\s+\W*[\w`].* ", out, re.M), flag


def test_error_is_one_line():
    done = acf("collect", "moon")
    assert done.returncode == 1
    assert done.stdout == ""
    known = "lamp, grid2d, taxi, fourrooms, doorkey, or MODULE:NAME; or an environment: gym:ID, minari:ID"
    assert done.stderr == f"error: unknown domain 'moon': expected one of {known}\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "moon"], "unknown domain 'moon'"),
        (["domains", "moon"], "unknown domain 'moon'"),
        (["domains", "lamp", "--start", "end"], "lamp has the start distributions episode, balanced; got 'end'"),
        (["collect", "lamp", "--policy", "[bold]"], "unknown policy '[bold]': expected one of uniform, skewed"),
        (["collect", "lamp", "--transitions", "0"], "expected at least one transition"),
        (["domains", "lamp", "--out", "docs"], "expected the name of a PNG file as --out, such as lamp.png, got docs"),
        (["bench", "--out", "."], "expected a file name as --out, got the directory ."),
        (["data", "nowhere"], "nowhere: not a data set: expected a directory, found nothing there"),
        (["train", "nowhere", "--out", "run"], "nowhere: not a data set"),
        (["evaluate"], "expected at least one run directory: acf evaluate RUN..."),
        (["evaluate", "nowhere"], "nowhere is not a run directory: it has no config.json"),
        (["report"], "expected at least one run directory: acf report RUN..."),
        (["report", "nowhere"], "nowhere is not a run directory: it has no config.json"),
        (["report", "a", "a"], "expected different runs, got one twice: a, a"),
        (["run", "lamp", "--preset", "huge"], "unknown preset 'huge': expected one of quick, full, paper, sparse"),
        (["run", "lamp", "--method", "magic"], "unknown method 'magic': expected one of lattice, acf"),
        (["run", "lamp", "--seeds", "0"], "expected at least one seed"),
        (["run", "lamp", "--epochs", "0"], "expected epochs >= 1"),
        (["run", "lamp", "--hparams", "speed", "1"], "lattice has no hyperparameter speed: expected some of lr, "),
    ],
)
def test_errors(command, tmp_path, args, message):
    code, out, err = command(*args)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
    assert not [path for path in tmp_path.rglob("*") if path.name not in ("run", ".lock")]


def test_version(command):
    assert command("--version") == (0, f"acf-rl {__version__}\n", "")


def test_unexpected_arguments(command):
    code, _, err = command("train")
    assert code == 2
    assert "required" in err.lower()


def test_interrupted(command, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("acf.data.collect", interrupted)
    assert command("collect", "lamp") == (130, "", "interrupted\n")


def test_domains(command):
    code, out, err = command("domains")
    assert (code, err) == (0, "")
    for name in DOMAINS:
        assert re.search(rf"│ {name}\b", out)
        for factor in make(name).factor_names:
            assert factor in out
    assert out.splitlines()[-1] == "Look at one with acf domains taxi --out taxi.png"


def test_domain_is_drawn(command, tmp_path):
    code, out, err = command("domains", "taxi", "--out", "x.png")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "wrote x.png: random states of taxi with their factors",
        "Collect transitions with acf collect taxi --out data/taxi",
    ]
    image = matplotlib.image.imread(tmp_path / "x.png")
    assert min(image.shape[:2]) > 200
    assert image[..., :3].std() > 0.1


def test_collect(command, tmp_path):
    args = ("collect", "lamp", "--transitions", 300, "--seed", 2)
    code, out, err = command(*args)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "wrote data/lamp: 300 transitions, 330 frames, 1 MiB",
        "Look into it with acf data data/lamp",
    ]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data" / "lamp").iterdir()}
    assert command(*args)[1].startswith("reused data/lamp: 300 transitions")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "data" / "lamp").iterdir()}

    code, out, err = command("collect", "lamp", "--transitions", 200, "--seed", 2)
    assert (code, out) == (1, "")
    assert err == (
        "error: data/lamp holds other data (transitions: 300 there, 200 asked). "
        "Choose another folder or remove this one.\n"
    )
    (tmp_path / "empty").mkdir()
    assert command(*args, "--out", "empty")[1].startswith("wrote empty")


def cells(out, first):
    """The cells of the row of a table that begins with `first`."""
    (row,) = (line for line in out.splitlines() if re.match(rf"│ {re.escape(first)} ", line))
    return [cell.strip() for cell in row.strip("│").split("│")]


def test_data(command):
    command("collect", "lamp", "--transitions", 300)
    code, out, err = command("data", "data/lamp")
    assert (code, err) == (0, "")
    data = Transitions.open("data/lamp")
    assert cells(out, "transitions")[1] == "300 in 30 episodes"
    assert cells(out, "frames")[1] == "330 of 32x32x3"
    assert cells(out, "factors")[1] == "power colour position shape"
    assert cells(out, "controllable")[1] == "power colour"
    assert cells(out, "hash")[1] == data.hash
    assert cells(out, "size")[1] == "1.0 MiB"
    assert "domain lamp" in cells(out, "made by")[1]
    count = int((data.action == 1).sum())
    _, found, frame, factors = cells(out, "switch_power")
    assert found == f"{count} ({count / 300:.1%})"
    assert float(frame.rstrip("%")) > 80
    assert re.fullmatch(r"power [89]\d\.\d%, colour \d\.\d%", factors)  # what never changes is left out
    assert float(cells(out, "noop (no-op)")[2].rstrip("%")) < 20
    assert out.splitlines()[-1] == "Train on it with acf train data/lamp --out runs/lamp"


def test_data_of_which_little_is_known(command):
    known = collect("lamp", 60)
    kept = known.select(known.action != 2)
    replace(kept, factors=None, factor_names=(), controllable=()).save("plain")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, out, err = command("data", "plain", "--noop", 0)
    assert (code, err) == (0, "warning: actions that never occur: 'switch_colour' (2)\n")
    assert cells(out, "factors")[1] == cells(out, "controllable")[1] == "not known"
    assert cells(out, "switch_colour") == ["switch_colour", "0 (0.0%)", "-", ""]
    assert out.splitlines()[-1] == "Train on it with acf train plain --out runs/plain --noop 0 --latents K"
