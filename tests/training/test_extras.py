"""What a method learns beside its encoder lies beside the weights."""

import dataclasses
import json

import numpy as np
import pytest
import small_acf

import acf
from acf.training import RunDir

pytestmark = pytest.mark.usefixtures("small")


def own_number(model, hparams):
    return {"noise": float(hparams.noise), "bias": np.asarray(model.linear.bias[...]).tolist()}


def test_extras_of_every_member_with_its_own_settings(lamp, tmp_path, monkeypatch):
    monkeypatch.setattr(small_acf, "METHOD", dataclasses.replace(small_acf.METHOD, extras=own_number))
    settings = [{"noise": 0.1}, {"noise": 0.2}]
    run = acf.train(lamp, tmp_path / "run", method="toy", preset="quick", seeds=[7, 3], hparams=settings)
    for n in range(2):
        found = json.loads(run.extras(n).read_text())
        assert found["noise"] == settings[n]["noise"]
        np.testing.assert_allclose(found["bias"], acf.load(run.path, n).params["linear"]["bias"][...], rtol=1e-6)
        assert run.extras(n).parent == run.model(n).parent


def test_a_method_without_extras_writes_none(lamp, tmp_path):
    acf.train(lamp, tmp_path / "run", method="toy", preset="quick")
    assert not RunDir(tmp_path / "run").extras(0).exists()
