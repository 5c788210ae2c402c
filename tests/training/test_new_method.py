"""The example in CONTRIBUTING.md is a method that trains."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import acf
from acf.methods import METHODS

pytestmark = pytest.mark.usefixtures("small")

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


def example() -> str:
    _, code = re.findall(r"```python\n(.*?)```", CONTRIBUTING.read_text(), re.S)  # after that of a domain
    return code


def test_it_is_short():
    imports = ("import ", "from ", "#", '"""')
    lines = [line for line in example().splitlines() if line.strip() and not line.startswith(imports)]
    assert len(lines) <= 20


def test_it_trains(lamp, tmp_path, monkeypatch):
    (tmp_path / "contributed.py").write_text(example())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(METHODS, "inverse", "contributed")
    fast = {"preset": "quick", "epochs": 20, "hparams": {"lr": 3e-3}}
    run = acf.train(lamp, tmp_path / "run", method="inverse", seeds=[7, 3], **fast)
    logged = [json.loads(line)["inverse"] for line in run.metrics.read_text().splitlines()]
    # Lamp's three actions: at first any is as likely; in the end some can be told from what they change.
    np.testing.assert_allclose(logged[0], np.log(3), atol=0.15)
    assert max(logged[-1]) < 1
    data = acf.Transitions.open(lamp)
    assert acf.load(run.path, 1).encode(data.frames[:5]).shape == (5, 4)
