"""Learned graphs are read back as they were written, and damage is named."""

import json

import jax
import numpy as np
import pytest
from flax import nnx

from acf.errors import AcfError
from acf.methods.base import Spec
from acf.methods.dms import DMS, HParams, graphs
from acf.study.report import read_graphs

SPEC = Spec((8, 8, 1), n_actions=4, noop=0, latents=3, depth=2, hidden=8)
SHAPES = {"state": (3, 3), "action": (3, 4)}


@pytest.fixture
def extras(with_weights, tmp_path):
    model = with_weights(lambda: DMS(SPEC, rngs=nnx.Rngs(0)))
    file = tmp_path / "extras.json"
    file.write_text(json.dumps(graphs(model, HParams())))
    return file, model.dynamics.logits(HParams())


def test_graphs_of_dms_come_back(extras):
    file, logits = extras
    found = read_graphs(file, SHAPES)
    assert set(found) == {"state", "action"}
    for name, probability in found.items():
        np.testing.assert_allclose(probability, jax.nn.sigmoid(getattr(logits, name)), atol=1e-5)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:-5], "is damaged"),
        (lambda text: text.replace("action", "acts"), "is damaged"),
        (
            lambda text: json.dumps({"graphs": {**json.loads(text)["graphs"], "state": {"probability": [[1.0]]}}}),
            "shape",
        ),
    ],
    ids=["cut", "without a graph", "another shape"],
)
def test_damage_is_named(extras, damage, message):
    file, _ = extras
    file.write_text(damage(file.read_text()))
    with pytest.raises(AcfError, match=message):
        read_graphs(file, SHAPES)
