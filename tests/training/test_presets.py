"""Presets: the paper's table, and what differs from it."""

import dataclasses
from types import SimpleNamespace

import pytest

from acf.data import collect
from acf.errors import AcfError
from acf.methods import METHODS, get
from acf.training.config import make_hparams, make_settings, make_spec
from acf.training.presets import PRESETS, Preset, default_method, default_preset, get_preset

# Table "Hyperparameters and coefficient weights for the ACF baseline across four domains", column by column:
# batch_size, lr, epochs, λ_fwd, λ_r, λ_inv, λ_π.
TABLE = {
    "doorkey": (128, 4.0966e-4, 100, 97.815, 25.623, 22.094, 1.610),
    "taxi": (128, 2.9126e-4, 200, 31.444, 5.018, 1.000, 9.916),
    "grid2d": (128, 2.27497e-4, 200, 95.395, 48.560, 1.000, 1.332),
    "fourrooms": (128, 3.6392e-4, 200, 40.736, 16.963, 97.365, 22.764),
}

# The same of the other methods, row by row: lr, then the coefficients in the order of the table.
BASELINES = {
    "gcl": (
        ("lr", "classifier", "recons"),
        {
            "doorkey": (2.0363e-4, 60.444, 9.26e-8),
            "taxi": (4.4530e-4, 27.293, 4.53e-10),
            "grid2d": (1.6031e-4, 90.737, 0.193),
            "fourrooms": (2.7661e-5, 51.030, 3.50e-4),
        },
    ),
    "dms": (
        ("lr", "elbo", "action_sparsity", "state_sparsity", "gumbel_temp", "l2"),
        {
            "doorkey": (3.5332e-4, 4.737, 3.536, 2.557, 7.417, 0.0015),
            "taxi": (9.6832e-5, 67.349, 36.881, 8.024, 1.000, 0.0023),
            "grid2d": (7.5007e-5, 42.948, 91.982, 1.000, 6.360, 0.2805),
            "fourrooms": (4.0218e-4, 5.225, 9.878, 6.091, 3.465, 0.0060),
        },
    ),
    "msa": (
        ("lr", "inverse", "ratio", "smoothness"),
        {
            "doorkey": (4.5536e-4, 6.009, 8.519, 2.092),
            "taxi": (3.9622e-4, 66.916, 42.518, 8.234),
            "grid2d": (4.2654e-4, 78.480, 1.000, 84.905),
            "fourrooms": (1.5854e-4, 9.472, 0.311, 9.691),
        },
    ),
}
ABLATIONS = {"no-fwd": "fwd", "no-inv": "inv", "no-policy": "policy", "no-ratio": "ratio"}


def hparams(preset, method="acf"):
    return make_hparams(get(method), preset.hparams)


@pytest.mark.parametrize("domain", TABLE)
def test_paper(domain):
    preset = get_preset("paper", "acf", domain)
    own = hparams(preset)
    found = (preset.batch_size, own.lr, preset.epochs, own.fwd, own.ratio, own.inv, own.policy)
    assert found == TABLE[domain]
    assert preset.transitions == 150_000  # "All experiments used 150K transitions"
    assert (preset.depth, preset.hidden) == (24, 256)
    assert own.sparsity == 0  # not in the paper


@pytest.mark.parametrize("domain", [*TABLE, "lamp", None])
def test_sparse_is_paper_with_the_sparsity_term(domain):
    paper, sparse = (get_preset(name, "acf", domain) for name in ("paper", "sparse"))
    assert hparams(sparse).sparsity > 0
    assert dataclasses.replace(hparams(sparse), sparsity=0.0) == hparams(paper)
    assert dataclasses.replace(sparse, hparams=paper.hparams) == paper


@pytest.mark.parametrize("domain", TABLE)
@pytest.mark.parametrize("method", BASELINES)
def test_paper_of_the_baselines(method, domain):
    names, table = BASELINES[method]
    preset = get_preset("paper", method, domain)
    # A reconstruction that weighs next to nothing is left out.
    expected = tuple(
        0.0 if name == "recons" and value < 1e-3 else value for name, value in zip(names, table[domain], strict=True)
    )
    assert tuple(getattr(hparams(preset, method), name) for name in names) == expected
    same = get_preset("paper", "acf", domain)
    assert dataclasses.replace(preset, hparams={}) == dataclasses.replace(same, hparams={}), "one protocol"


@pytest.mark.parametrize(
    ("members", "decoder"),
    [([{"recons": 0.0}], False), ([{"recons": 0.0}, {"recons": 1e-9}], True), ([{"elbo": 0.0}], True)],
)
def test_no_decoder_where_no_member_weighs_its_reconstruction(members, decoder):
    assert make_spec(collect("lamp", 20), Preset(), members).decoder == decoder


@pytest.mark.parametrize(
    ("backend", "capability", "bf16"),
    [("cpu", None, False), ("gpu", "9.0", True), ("gpu", "7.5", False), ("gpu", "gfx942", True)],
)
def test_bfloat16_where_it_is_fast(monkeypatch, backend, capability, bf16):
    data = collect("lamp", 20)
    monkeypatch.setattr("jax.default_backend", lambda: backend)
    monkeypatch.setattr("jax.local_devices", lambda: [SimpleNamespace(compute_capability=capability or "")])
    assert make_spec(data, Preset(), []).bf16 == bf16
    assert make_spec(data, Preset(), [], bf16=True).bf16


@pytest.mark.parametrize("domain", TABLE)
def test_factored_markov_has_acfs_settings(domain):
    ours, acfs = (hparams(get_preset("paper", method, domain), method) for method in ("factored_markov", "acf"))
    assert vars(ours) == {name: getattr(acfs, name) for name in vars(ours)}


@pytest.mark.parametrize("domain", [*TABLE, "lamp", None])
@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_is_paper_with_one_weight_at_zero(name, domain):
    paper, ablation = (get_preset(preset, "acf", domain) for preset in ("paper", name))
    assert hparams(paper) != hparams(ablation)
    assert dataclasses.replace(hparams(paper), **{ABLATIONS[name]: 0.0}) == hparams(ablation)
    assert dataclasses.replace(ablation, hparams=paper.hparams) == paper


@pytest.mark.parametrize("name", ["sparse", *ABLATIONS])
def test_a_preset_of_acfs_terms_is_for_acf(name):
    message = f"preset '{name}' changes a term that only acf has: expected quick, full or paper for msa"
    with pytest.raises(AcfError, match=message):
        get_preset(name, "msa", "taxi")


@pytest.mark.parametrize("domain", [*TABLE, "lamp", None])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["quick", "full", "paper"])
def test_every_method_has_every_domain(name, method, domain):
    if (name, method) == ("paper", "lattice"):
        with pytest.raises(AcfError, match="preset 'paper' is not for lattice: expected quick or full"):
            get_preset(name, method, domain)
    else:
        assert hparams(get_preset(name, method, domain), method).lr > 0


@pytest.mark.parametrize("method", METHODS)
def test_which_encoder(method):
    """The paper's with the paper's settings, that over places with ours."""
    encoders = {name: get_preset(name, method, "taxi").encoder for name in ("quick", "full")}
    assert encoders == {"quick": "places", "full": "places"}
    if method != "lattice":
        assert get_preset("paper", method, "taxi").encoder == "residual"


@pytest.mark.parametrize("domain", TABLE)
def test_full_is_paper_with_the_encoder_over_places(domain):
    paper, full = (get_preset(name, "acf", domain) for name in ("paper", "full"))
    assert dataclasses.replace(full, encoder="residual", epochs=paper.epochs) == paper


@pytest.mark.parametrize(
    ("continuous", "preset", "method"),
    [
        (False, None, "lattice"),
        (False, "full", "lattice"),
        (True, None, "acf"),
        (False, "paper", "acf"),
        (False, "own.toml", "acf"),
    ],
)
def test_the_default_method(continuous, preset, method):
    assert default_method(continuous, preset) == method


@pytest.mark.parametrize("domain", [*TABLE, "lamp", None])
def test_quick_is_paper_made_small(domain):
    paper, quick = (get_preset(name, "acf", domain) for name in ("paper", "quick"))
    smaller = {
        name for name in ("transitions", "depth", "hidden", "epochs") if getattr(quick, name) < getattr(paper, name)
    }
    assert smaller == {"transitions", "depth", "hidden", "epochs"}
    same = {name: getattr(paper, name) for name in (*smaller, "encoder", "hparams")}
    assert dataclasses.replace(quick, **same) == paper
    assert dataclasses.replace(hparams(quick), lr=hparams(paper).lr) == hparams(paper)


def test_quick_is_the_default_without_a_gpu(monkeypatch):
    for backend, name in (("cpu", "quick"), ("gpu", "full")):
        monkeypatch.setattr("jax.default_backend", lambda backend=backend: backend)
        assert default_preset() == name
    assert default_preset() in PRESETS


def test_a_member_says_which_preset_it_has(tmp_path):
    """By its hyperparameters, whichever was asked for; a file by its name alone."""
    own = [{}, {"sparsity": 5.0}, {"fwd": 0.0}, {"lr": 0.5}]
    _, members = make_settings("acf", "paper", "taxi", range(4), own, None)
    assert [member.preset for member in members] == ["paper", "sparse", "no-fwd", None]
    (tmp_path / "mine.toml").write_text('method = "gcl"\n[hparams]\nlr = 0.01\n')
    _, members = make_settings("gcl", str(tmp_path / "mine.toml"), "taxi", [0], {}, None)
    assert members[0].preset == "mine.toml"
