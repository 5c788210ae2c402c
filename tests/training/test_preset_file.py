"""A preset as a file: written and read back, or refused with a reason."""

import pytest

from acf.errors import AcfError
from acf.training import train
from acf.training.preset_file import read_preset, write_preset
from acf.training.presets import Preset, get_preset
from acf.training.run_dir import RunDir


@pytest.mark.parametrize("method", ["acf", "gcl"])
def test_round_trip(tmp_path, method):
    file = tmp_path / "best.toml"
    paper = get_preset("paper", method, "doorkey")
    write_preset(file, paper, method, "Two lines\nof where it is from.")
    assert file.read_text().startswith("# Two lines\n# of where it is from.\nmethod = ")
    assert get_preset(str(file), method, "taxi") == paper


def test_what_is_left_out_is_as_always(tmp_path):
    file = tmp_path / "own"  # any file will do
    file.write_text('method = "acf"\nepochs = 3\n[hparams]\nlr = 1\n')
    assert get_preset(str(file), "acf", None) == Preset(epochs=3, hparams={"lr": 1.0})


@pytest.mark.usefixtures("small")
def test_a_run_takes_it(lamp, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('method = "toy"\nepochs = 3\nbatch_size = 32\nhidden = 7\n[hparams]\nnoise = 0.25\n')
    train(lamp, tmp_path / "run", method="toy", preset=str(file), hparams={"lr": 0.01})
    config = RunDir(tmp_path / "run").read_config()
    assert (config.epochs, config.batch_size, config.spec.hidden) == (3, 32, 7)
    assert config.members[0].hparams == {"lr": 0.01, "noise": 0.25, "fwd": 0.0, "nan_from": 1e9}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("method = acf", "is not TOML"),
        ("epochs = 3", "expected `method`, the name of a method, found None"),
        ('method = "gcl"', "is for gcl, not for acf: add --method gcl"),
        ('method = "acf"\nepoch = 3', r"unknown epoch; expected some of method, transitions, .*, \[hparams\]"),
        ('method = "acf"\nepochs = 0', "expected epochs as a whole number of at least 1, found 0"),
        ('method = "acf"\nepochs = true', "expected epochs as a whole number of at least 1, found True"),
        ('method = "acf"\nstart = 3', "expected start as text, found 3"),
        ('method = "acf"\nhparams = 3', r"expected a table \[hparams\], found 3"),
        ('method = "acf"\n[hparams]\nlr = "low"', "expected hyperparameter lr as a number, found 'low'"),
    ],
)
def test_bad_files(tmp_path, text, message):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(AcfError, match=message):
        read_preset(file, "acf")


def test_missing_file():
    with pytest.raises(AcfError, match=r"preset file nowhere\.toml does not exist"):
        get_preset("nowhere.toml", "acf", None)
