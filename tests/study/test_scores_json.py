"""`scores.json`, format 2, of a run whose latents are known: what they read from the frames stands in the frames."""

import json
import shutil
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import acf
from acf.data import Transitions
from acf.errors import AcfError
from acf.methods import METHODS
from acf.methods.base import Method
from acf.study.evaluate import evaluate_run, read_scores
from acf.training import Trained

SEEDS = [7, 3, 5]
SCORES = ("diag", "off_diag", "diag_controllable", "off_diag_controllable")
MORE = ("mcc_pearson", "mcc_spearman", "disentanglement", "completeness", "informativeness")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HParams:
    lr: float = 1e-3
    broken: float = 0.0


class Pixels(nnx.Module):
    """Latent k is pixel k and, to a share that is the member's own, pixel k + 1."""

    def __init__(self, spec, *, rngs: nnx.Rngs):
        self.leak = nnx.Param(jax.random.uniform(rngs.params(), (), maxval=0.5))

    def encode(self, frames):
        pixels = frames[:, :3, 0, 0] / 255
        return pixels + self.leak * jnp.roll(pixels, 1, axis=1)


def loss(model, batch, key, hparams):
    del key
    value = (model.encode(batch.x) ** 2).mean() / (1 - hparams.broken)
    return value, {"square": value}


METHOD = Method("pixels", Pixels, HParams, loss)


@pytest.fixture(scope="module")
def data():
    """Three factors, each the value of a pixel."""
    rng = np.random.default_rng(0)
    T, factors = 3000, rng.integers(0, 5, (3001, 3)).astype(np.float32)
    frames = np.zeros((T + 1, 16, 16, 1), np.uint8)
    frames[:, :3, 0, 0] = factors * 60
    return Transitions(
        frames=frames,
        i=np.arange(T, dtype=np.int32),
        action=rng.integers(0, 2, T).astype(np.int32),
        j=np.arange(T, dtype=np.int32),  # stays where it is
        episode=(np.arange(T + 1) // 10).astype(np.int32),
        action_names=("stay", "go"),
        noop=0,
        factors=factors,
        factor_names=("a", "b", "c"),
        controllable=(True, True, False),
        source={"domain": "pixels"},
    )


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "run"
    with pytest.MonkeyPatch.context() as patch, pytest.warns(UserWarning, match="never change a frame: 'go'"):
        patch.setitem(METHODS, "pixels", __name__)
        hparams = [{}, {}, {"broken": 1.0}]
        acf.train(data, path, method="pixels", preset="quick", seeds=SEEDS, hparams=hparams, epochs=1)
    return path


@pytest.fixture(autouse=True)
def pixels(monkeypatch):
    monkeypatch.setitem(METHODS, "pixels", __name__)
    monkeypatch.setattr("acf.data.transitions.warn_about_actions", lambda data: None)


@pytest.fixture(scope="module")
def scores(run):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, "pixels", __name__)
        patch.setattr("acf.data.transitions.warn_about_actions", lambda data: None)
        return evaluate_run(run)


def no_constant(name):
    pytest.fail(f"{name} is not JSON")


def test_file_is_what_is_returned(run, scores):
    assert json.loads((run / "scores.json").read_text(), parse_constant=no_constant) == scores
    assert read_scores(run) == scores


def test_format(scores):
    about = ["format", "domain", "method", "evaluation_seed", "factor_names", "controllable", "action_names", "noop"]
    assert list(scores) == [*about, "members", *SCORES, *MORE, "oracle", "chance"]
    assert (scores["format"], scores["domain"], scores["method"]) == (2, "pixels", "pixels")
    assert (scores["action_names"], scores["noop"]) == (["stay", "go"], 0)
    assert scores["factor_names"] == ["a", "b", "c"]
    assert scores["controllable"] == [True, True, False]
    own = ["r2", "r2_interval", "matching", *SCORES, "intervals", *MORE]
    of_member = ["seed", "diverged_at", "certificate", *own, "exact", "actions"]  # no factors: nothing ever moves
    assert [list(member) for member in scores["members"]] == [of_member] * 3
    assert list(scores["oracle"]) == [*own, "actions"]
    assert list(scores["chance"]) == own
    assert [member["seed"] for member in scores["members"]] == SEEDS
    assert [member["diverged_at"] for member in scores["members"]] == [-1, -1, 0]
    for part in (*scores["members"], scores["oracle"], scores["chance"]):
        assert np.shape(part["r2"]) == (3, 3)
        assert len(part["matching"]) == 3


def test_scores_of_a_member(scores):
    """From its R² matrix by hand; latent k is factor k, and reads a little of the factor before it."""
    for member in scores["members"]:
        r2 = np.array(member["r2"])
        assert member["matching"] == [0, 1, 2]
        leak = np.where(np.eye(3), 0, r2).max(1)
        assert member["diag"] == pytest.approx(np.diag(r2).mean(), abs=1e-5)
        assert member["off_diag"] == pytest.approx(leak.mean(), abs=1e-5)
        assert member["diag_controllable"] == pytest.approx(np.diag(r2)[:2].mean(), abs=1e-5)
        assert member["off_diag_controllable"] == pytest.approx(leak[:2].mean(), abs=1e-5)
        assert member["diag"] > 0.7


def test_intervals_hold_the_scores(scores):
    for part in (*scores["members"], scores["oracle"], scores["chance"]):
        low, high = np.array(part["r2_interval"])
        assert (low <= high).all()
        assert (np.array(part["r2"]) <= high + 0.02).all()
        assert (np.array(part["r2"]) >= low - 0.02).all()
        for name in SCORES:
            # off_diag takes a maximum, so its draws lie a little higher
            assert part["intervals"][name][0] - 0.01 <= part[name] <= part["intervals"][name][1] + 0.01


def test_movement_is_of_latents_and_factors(scores):
    # nothing ever moves in this data, and the method has no energies
    for part in (*scores["members"], scores["oracle"]):
        assert part["actions"] == {"movement": [[0, 0]] * 3}


def test_again_is_the_same(run, scores):
    assert evaluate_run(run) == scores


def test_summary(scores):
    for name in (*SCORES, *MORE):
        values = [member[name] for member in scores["members"]]
        assert scores[name] == {
            "mean": pytest.approx(sum(values) / 3, abs=1e-5),
            "std": pytest.approx((sum((v - sum(values) / 3) ** 2 for v in values) / 3) ** 0.5, abs=1e-5),
        }
    assert scores["diag"]["std"] > 0


def test_oracle_and_chance(scores):
    assert scores["oracle"]["diag"] > 0.99
    assert scores["oracle"]["off_diag"] < 0.05
    assert scores["chance"]["diag"] < 0.05


def test_latents_that_are_not_finite_score_nothing(run, scores, monkeypatch):
    encode = Trained.encode

    def broken(trained, frames):
        z = encode(trained, frames)
        return z * np.float32("nan") if trained.seed == 5 else z

    monkeypatch.setattr(Trained, "encode", broken)
    try:
        first, second, lost = evaluate_run(run)["members"]
    finally:
        (run / "scores.json").write_text(json.dumps(scores))
    assert [first, second] == scores["members"][:2]
    assert lost["diag"] == lost["off_diag"] == 0
    assert np.array(lost["r2"]).max() == 0


def test_without_true_factors(data, tmp_path):
    unknown = replace(data, factors=None, factor_names=(), controllable=())
    acf.train(unknown, tmp_path / "run", method="pixels", preset="quick", latents=3, epochs=1)
    scores = evaluate_run(tmp_path / "run")
    assert read_scores(tmp_path / "run") == scores
    assert "oracle" not in scores
    (member,) = scores["members"]
    assert not member.pop("certificate")["certified"]
    assert member == {"seed": 0, "diverged_at": -1, "actions": {"movement": [[0, 0]] * 3}}


def test_without_a_noop(data, tmp_path, monkeypatch):
    """Score differences are to the no-op's scores: without one there are none, whatever the method has."""
    scored = replace(METHOD, scores=lambda model, z_next, z: jnp.ones((len(z), 3, 2)))
    monkeypatch.setattr(f"{__name__}.METHOD", scored)
    acf.train(replace(data, noop=None), tmp_path / "run", method="pixels", preset="quick", epochs=1)
    scores = evaluate_run(tmp_path / "run")
    assert scores["noop"] is None
    assert scores["members"][0]["actions"].keys() == {"movement"}


def test_no_scores_yet(tmp_path):
    assert read_scores(tmp_path) is None
    (tmp_path / "scores.json").write_text('{"format": 1}')
    assert read_scores(tmp_path) is None  # an older version's are made anew


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 2', r"scores.json is damaged \(.*\); `acf evaluate .*` makes it anew"),
        ("[]", "scores.json is damaged"),
        ('{"format": 3}', "expected scores of format 2, found 3; use a matching acf-rl, or `acf evaluate"),
    ],
)
def test_scores_that_cannot_be_read(tmp_path, text, message):
    (tmp_path / "scores.json").write_text(text)
    with pytest.raises(AcfError, match=message):
        read_scores(tmp_path)


def test_changed_data(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    config["data"]["hash"] = "0" * 64
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    with pytest.raises(AcfError, match=r"the data of .* has changed since training: expected hash 000"):
        evaluate_run(tmp_path / "run")
