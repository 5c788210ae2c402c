"""Seeds until some are certified, on a method whose first seeds are wrong; and what is found in a run."""

import json

import lights
import numpy as np
import pytest

import acf
from acf.errors import AcfError
from acf.methods import METHODS
from acf.study import restarts
from acf.study.evaluate import evaluate_run
from acf.study.factors import exactness, number_pictures, samples_of, still_of, take_sample
from acf.study.restarts import train_until_certified


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("lights") / "data"
    lights.collect().save(path)
    return path


@pytest.fixture(autouse=True)
def method(monkeypatch):
    monkeypatch.setitem(METHODS, "lights", "lights")


@pytest.fixture(scope="module")
def right():
    """Seeds that are right; some before the first are wrong."""
    seeds = lights.right_seeds()
    assert 0 < seeds[0] < 8
    assert len(seeds) > 2
    return seeds


@pytest.fixture
def train(data, tmp_path):
    said = []

    def train(out="run", **options):
        options = {"method": "lights", "preset": "quick", "epochs": 1, "say": said.append} | options
        return train_until_certified(data, tmp_path / out, **options), said

    return train


def seeds_of(run):
    return [member.seed for member in run.read_config().members]


def test_until_one_is_certified(train, right):
    run, said = train()
    first = right[0]
    wrong = [f"seed {seed}: not certified" for seed in range(first)]
    assert [line.split(",")[0] for line in said] == [*wrong, f"seed {first}: certified"]
    config = run.read_config()
    assert seeds_of(run)[0] == first, "the certified one comes first"
    assert sorted(seeds_of(run)) == list(range(first + 1)), "and all are published"
    assert json.loads(run.config.read_text())["restarts"] == {"keep": 1, "most": 16, "first": 0, "certified": 1}
    assert not run.restarts.exists()
    assert run.is_finished(config)


def test_the_run_is_like_any_other(train, data, right):
    run, _ = train(seed=right[0] - 1)
    trained, found = acf.load(run.path), acf.Transitions.open(data)
    values = trained.factors(found.frames)
    cells = found.factors[:, :2].astype(int)
    for k in range(2):
        pairs = [set(zip(values[:, k].tolist(), cells[:, light].tolist(), strict=True)) for light in (0, 1)]
        assert min(map(len, pairs)) == 5, "five levels, one to one"
    assert trained.found is not None
    assert trained.found.certificate.certified
    rows = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    assert all(len(row["loss"]) == 2 for row in rows)
    scores = evaluate_run(run.path)
    member = scores["members"][0]
    assert member["seed"] == right[0]
    assert member["certificate"]["certified"]
    assert member["certificate"]["one_step"] == 1
    assert member["factors"]["diag_controllable"] == pytest.approx(1, abs=0.01)
    assert member["factors"]["diag"] == pytest.approx(1, abs=0.01), "the shade is read from the latent behind them"
    assert member["exact"] == {"state": 1.0, "factors": [1.0, 1.0]}
    assert not scores["members"][1]["certificate"]["certified"]
    assert scores["members"][1]["certificate"]["because"]


def test_as_many_as_are_wanted(train, right):
    run, _ = train(keep=2)
    assert sorted(seeds_of(run)[:2]) == right[:2]
    assert sorted(seeds_of(run)) == list(range(right[1] + 1))


def test_no_more_than_allowed(train, right):
    run, _ = train(most=right[0])
    assert len(seeds_of(run)) == right[0]
    assert json.loads(run.config.read_text())["restarts"]["certified"] == 0


def test_a_population_at_a_time(train, right, monkeypatch):
    """As on a GPU."""
    monkeypatch.setattr(restarts, "at_a_time", lambda: 8)
    run, said = train()
    assert len(said) == len(seeds_of(run)) == 8
    certified = [seed for seed in right if seed < 8]
    assert sorted(seeds_of(run)[: len(certified)]) == certified


def test_goes_on_where_it_was_stopped(train, right, monkeypatch):
    judged, seen = restarts._judged, []

    def stop(run, samples):
        seen.append(run.path.name)
        if len(seen) == right[0]:
            raise KeyboardInterrupt
        return judged(run, samples)

    monkeypatch.setattr(restarts, "_judged", stop)
    with pytest.raises(KeyboardInterrupt):
        train()
    monkeypatch.setattr(restarts, "_judged", judged)
    run, _ = train()
    assert seeds_of(run)[0] == right[0]
    state = run.config.stat().st_mtime_ns
    again, _ = train()
    assert again.config.stat().st_mtime_ns == state, "finished is finished"


def test_another_run_in_its_place_is_refused(train, data, tmp_path, right):
    train(seed=right[0])
    for other, message in (
        ({"seed": right[0], "keep": 2}, "keep: 1 there, 2 asked"),
        ({"seed": right[0], "hparams": {"lr": 0.5}}, "hparams.lr: 0.001 there, 0.5 asked"),
        ({"seed": right[0], "epochs": 2}, "epochs: 1 there, 2 asked"),
    ):
        with pytest.raises(AcfError, match=message):
            train(**other)
    acf.train(data, tmp_path / "plain", method="lights", preset="quick", epochs=1)
    with pytest.raises(AcfError, match="plain holds a run of given seeds"):
        train("plain")


@pytest.mark.parametrize("asked", [{"keep": 0}, {"keep": 3, "most": 2}])
def test_what_cannot_be_kept(train, asked):
    with pytest.raises(AcfError, match="expected to keep at least one seed and no more than"):
        train(**asked)


def test_a_sample_is_of_whole_episodes():
    data = lights.collect(episodes=40)
    sample = take_sample(data, still_of(data), most=250)
    assert len(np.unique(sample.episode)) == 10
    assert len(sample.action) == 250
    np.testing.assert_array_equal(
        sample.changed,
        (data.frames[data.i] != data.frames[data.j]).any((1, 2, 3))[
            np.isin(data.episode[data.i], np.unique(sample.episode))
        ],
    )
    assert sample.factors is not None
    np.testing.assert_array_equal(
        sample.factors[sample.i[0]], data.factors[data.i[data.episode[data.i] == sample.episode[0]][0]]
    )


@pytest.mark.parametrize("noise", [0.0, 8.0])
def test_pictures_of_one_state_have_one_number(noise):
    data = lights.collect(episodes=4, noise=noise)
    number = number_pictures(data.frames, data.episode, still_of(data))
    state = data.factors @ [1, 10, 100] + 1000 * data.episode
    pairs = np.unique(np.stack([number, state], axis=1), axis=0)
    assert len(pairs) == len(np.unique(state)) == len(np.unique(number))


def test_exactness_by_hand(train, data, right):
    """A combination that training does not have tells nothing."""
    run, _ = train(seed=right[0])
    found = acf.load(run.path).found
    samples = samples_of(run, acf.Transitions.open(data))
    train_factors, test_factors = (sample.factors for sample in samples)
    assert found is not None and train_factors is not None and test_factors is not None
    z = 3.0 * train_factors[:, :2].astype(float), 3.0 * test_factors[:, :2].astype(float)
    assert exactness(found, z, samples, [0, 1])["state"] == 1
    half = z[0], np.where(np.arange(len(z[1]))[:, None] % 2, z[1], z[1] + 3000)
    assert exactness(found, half, samples, [0, 1])["state"] == pytest.approx(0.5, abs=0.05)
    shuffled = z[0], np.random.default_rng(0).permutation(z[1])
    assert exactness(found, shuffled, samples, [0, 1])["state"] < 0.15
