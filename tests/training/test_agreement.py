"""A directory holds one run, and what cannot be trained is refused with the choices there are."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from trained_runs import about, state

import acf
from acf.cli import main
from acf.data import Transitions
from acf.data.store import content_hash
from acf.errors import AcfError
from acf.study.evaluate import evaluate_run
from acf.training import RunDir

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def train(lamp, tmp_path):
    def train(data=lamp, **options):
        return acf.train(data, tmp_path / "run", **{"preset": "quick", "method": "toy"} | options)

    return train


@pytest.fixture
def config(train):
    """The config.json of a finished run."""
    return train().config


@pytest.fixture
def plain(lamp):
    """The data without factors."""
    return replace(Transitions.open(lamp), factors=None, factor_names=(), controllable=())


@pytest.fixture
def without_noop(lamp, tmp_path):
    """The data as somebody else may write it: nobody has said which action does nothing."""
    path = tmp_path / "unknown"
    Transitions.open(lamp).save(path)
    meta = json.loads((path / "meta.json").read_text()) | {"noop": None}
    (path / "meta.json").write_text(json.dumps(meta | {"hash": content_hash(meta)}))
    return path


OTHER = [
    ({"seeds": [1]}, ["members.0.seed: 0 there, 1 asked"]),
    ({"seeds": [0, 1]}, ["(1 members there, 2 asked)"]),
    ({"hparams": {"lr": 0.5}}, ["members.0.hparams.lr: 0.001 there, 0.5 asked"]),
    ({"epochs": 3, "latents": 7}, ["epochs: 2 there, 3 asked", "spec.latents: 4 there, 7 asked"]),
    ({"method": "acf"}, ["(method: toy there, acf asked)"]),
    ({"preset": "paper"}, ["batch_size: 32 there, 128 asked", "spec.depth: 2 there, 24 asked"]),
]


@pytest.mark.parametrize(("options", "differences"), OTHER, ids=lambda part: ",".join(part))
def test_another_run_in_the_directory(train, config, options, differences):
    before = config.read_bytes()
    with pytest.raises(AcfError, match=r"run holds another run .* Choose another --out") as caught:
        train(**options)
    for difference in differences:
        assert difference in str(caught.value)
    assert config.read_bytes() == before


def test_other_data(train, lamp, config, tmp_path):
    acf.collect("lamp", 600, seed=1, out=tmp_path / "other")
    with pytest.raises(AcfError, match=r"holds another run \(data.hash: \w+ there, \w+ asked"):
        train(tmp_path / "other")
    # Where it lies does not matter.
    lamp.rename(tmp_path / "moved")
    train(tmp_path / "moved")
    (tmp_path / "moved").rename(lamp)


def test_other_data_in_memory(train, lamp):
    data = Transitions.open(lamp)
    run = train(data)
    assert run.data.is_dir()
    train(data)
    changed = [
        data.select(np.arange(len(data) - 1)),
        replace(data, action=(data.action + 1) % 3),
        replace(data, frames=np.asarray(data.frames) ^ np.uint8(1)),
        replace(data, noop=1),
    ]
    for other in changed:
        with pytest.raises(AcfError, match=r"run holds a run on other data"):
            train(other)


UNKNOWN = [
    ({"method": "magic"}, "unknown method 'magic': expected one of lattice, acf, "),
    ({"preset": "huge"}, "unknown preset 'huge': expected one of quick, full, paper, sparse"),
    ({"hparams": {"speed": 1.0}}, "toy has no hyperparameter speed: expected some of lr, noise, fwd, nan_from"),
    ({"hparams": {"lr": float("nan")}}, "hyperparameter lr: expected a finite number, got nan"),
    ({"hparams": {"lr": 1e30}}, "hyperparameter lr: expected a learning rate between 0 and 1, got 1e+30"),
    ({"hparams": [{}, {}]}, "expected one set of hyperparameters a seed, got 2 for 1 seeds"),
    ({"seeds": []}, "expected at least one seed"),
    ({"seeds": [-1]}, "expected seeds from 0 to 2^31 - 1, got -1"),
    ({"seeds": [2**31]}, "expected seeds from 0 to 2^31 - 1, got 2147483648"),
    ({"latents": 0}, "expected at least one latent, got 0"),
    ({"epochs": 0}, "expected epochs >= 1 and batch_size >= 2, got 0 and 32"),
]


@pytest.mark.parametrize(("options", "message"), UNKNOWN, ids=lambda part: part if isinstance(part, str) else "")
def test_unknown_settings(train, tmp_path, options, message):
    with pytest.raises(AcfError, match=re.escape(message)):
        train(**options)
    assert not (tmp_path / "run" / "config.json").exists()


def test_no_such_data(train, tmp_path):
    with pytest.raises(AcfError, match=r"nowhere: not a data set: expected a directory, found nothing there"):
        train(tmp_path / "nowhere")


def test_data_without_factors(train, plain):
    with pytest.raises(AcfError, match=r"no factors, so say how many latents to learn: --latents K"):
        train(plain)
    run = train(plain, latents=3).path
    assert acf.load(run).encode(plain.frames[:5]).shape == (5, 3)
    assert "oracle" not in evaluate_run(run)  # nothing to score the latents against


@pytest.mark.filterwarnings("ignore:the no-op")  # which the last one asked for is not
def test_data_without_noop(train, without_noop, tmp_path):
    with pytest.raises(AcfError, match=r"acf contrasts each action with one that does nothing.*--noop INDEX"):
        train(without_noop, method="acf")
    run = RunDir(tmp_path / "run")
    main(["train", str(without_noop), "--out", str(run.path), "--preset", "quick", "--method", "toy", "--noop", "0"])
    assert not run.data.exists()  # nothing is copied for it
    assert run.read_config().spec.noop == 0
    assert evaluate_run(run.path)["factor_names"] == ["power", "colour", "position", "shape"]
    with pytest.raises(AcfError, match=r"spec.noop: 0 there, 1 asked"):
        train(without_noop, noop=1)


def test_too_little_data(train, lamp):
    data = Transitions.open(lamp)
    with pytest.raises(AcfError, match=r"has 20 transitions, less than one batch of 32: collect more"):
        train(data.select(np.arange(30)))
    with pytest.raises(AcfError, match="say how many latents"):
        train(replace(data, factors=None, factor_names=(), controllable=()))
    # Nothing was written that would stand in the way of the next try.
    assert train(data).path.exists()


@pytest.mark.parametrize("file", ["meta.json", "thesis.tex"])
def test_a_directory_of_something_else(train, tmp_path, file):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / file).write_text("{}")
    with pytest.raises(AcfError, match=f"run is not for a run: it holds {file}. Choose another --out"):
        train()
    assert [path.name for path in (tmp_path / "run").iterdir()] == [file]


def test_a_run_behind_a_link(train, tmp_path):
    """The way to its data begins where the link leads to."""
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "run").symlink_to(tmp_path / "far" / "away")
    run = train()
    assert run.open_data(run.read_config()).hash == run.read_config().data["hash"]


def test_kernels_without_a_gpu(train, capsys):
    train(kernel="pallas", epochs=1)
    assert "there is no GPU for the kernels of the energies" in capsys.readouterr().err


def test_too_little_data_to_score(train, lamp):
    run = train(Transitions.open(lamp).select(np.arange(100))).path
    with pytest.raises(AcfError, match=r"held-out part of .* has 1 episodes, scoring needs 3: collect more"):
        evaluate_run(run)


def test_changed_data_is_not_scored(train, lamp):
    data = Transitions.open(lamp)
    run = train(data)
    for file in run.data.iterdir():
        file.unlink()
    data.select(np.arange(500)).save(run.data)
    with pytest.raises(AcfError, match=r"data of .*run has changed since training: expected hash"):
        evaluate_run(run.path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found | {"format": 2}, r"config.json: expected run format 1, found 2; use a matching acf-rl"),
        (lambda found: [found], r"config.json: expected run format 1, found None"),
        (lambda found: {"format": 1}, r"config.json is damaged: 'spec'"),
        (lambda found: found | {"spec": {**found["spec"], "colour": 1}}, r"config.json is damaged: .*colour"),
    ],
)
def test_config_of_another_kind(train, config, change, message):
    config.write_text(json.dumps(change(json.loads(config.read_text()))))
    for use in (train, lambda: acf.load(config.parent), lambda: evaluate_run(config.parent)):
        with pytest.raises(AcfError, match=message):
            use()


def test_config_that_is_not_json(config):
    config.write_text('{"format": 1,')
    with pytest.raises(AcfError, match=r"config.json is not JSON .*; the run is damaged"):
        acf.load(config.parent)


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"{}"])
def test_damaged_state(train, config, content):
    run = RunDir(config.parent)
    run.model(0).unlink()
    run.state.write_bytes(content)
    with pytest.raises(
        AcfError, match=r"state.safetensors is damaged .*; remove it and run the command that trains again"
    ):
        train()
    run.state.unlink()
    train()
    assert about(state(run.path))["step"] == 32


def test_truncated_state(train, config):
    run = RunDir(config.parent)
    run.model(0).unlink()
    run.state.write_bytes(run.state.read_bytes()[:-10])
    with pytest.raises(AcfError, match=r"state.safetensors is damaged"):
        train()


def test_state_of_other_networks(train, config):
    run = RunDir(config.parent)
    run.model(0).unlink()
    found = json.loads(config.read_text())
    config.write_text(json.dumps(found | {"spec": found["spec"] | {"latents": 5}}))
    with pytest.raises(AcfError, match=r"state.safetensors: expected params as float32\[1, 15392\], found .*12320"):
        train(latents=5)


def test_load(train, lamp, tmp_path):
    with pytest.raises(AcfError, match=r"nowhere is not a run directory: it has no config.json"):
        acf.load(tmp_path / "nowhere")
    run = train(seeds=[7, 3]).path
    for member in (-1, 2):
        with pytest.raises(AcfError, match=f"has members 0 to 1, got {member}"):
            acf.load(run, member)

    trained, frames = acf.load(run, 1), Transitions.open(lamp).frames
    assert trained.seed == 3
    z = trained.encode(frames)
    assert z.shape == (660, 4)
    assert z.dtype == np.float32
    assert trained.encode(frames[:0]).shape == (0, 4)
    for wrong in (frames / 255, frames[0, 0], frames[:, :, :, :1], np.zeros((2, 16, 16, 3), np.uint8)):
        with pytest.raises(AcfError, match=r"expected frames uint8\[N, 32, 32, 3\] or one of uint8\[32, 32, 3\], got "):
            trained.encode(wrong)

    # The kernels may have been asked for where it was trained; here there is no GPU for them.
    there = json.loads((run / "config.json").read_text())
    there["spec"] |= {"kernel": "pallas"}
    (run / "config.json").write_text(json.dumps(there))
    assert acf.load(run).config.spec.kernel == "pallas"
    assert acf.load(run).learner is trained.learner

    (run / "members" / "0" / "model.safetensors").unlink()
    with pytest.raises(AcfError, match=r"is not finished: run the same `acf train` or `acf run` command again"):
        acf.load(run, 1)
