"""Every figure can be drawn, and its CSV holds the numbers of the scores."""

import csv
import io

import numpy as np
import pytest
from looks import ACTIONS, NAMES, make_look
from matplotlib.image import imread
from matplotlib.patches import Rectangle

from acf.report.colours import CATEGORIES, CHANCE, ORACLE, heat
from acf.report.drawing import Drawing
from acf.report.groups import group
from acf.report.page import draw
from acf.report.score_figures import bars


def read(drawing: Drawing) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(drawing.csv())))


@pytest.fixture(scope="module")
def look():
    return make_look()


@pytest.fixture(scope="module")
def drawings(look):
    return {drawing.name: drawing for drawing in draw(look)}


def test_all_are_there(drawings):
    of_members = [
        f"{name}-member{n}"
        for name in ("scatter", "traversal-mean", "traversal-samples", "actions", "action-effects")
        for n in (0, 1)
    ]
    assert sorted(drawings) == sorted(["training-curves", "r2-heatmaps", "per-factor", *of_members])


def test_each_is_a_picture(drawings):
    for name in ("r2-heatmaps", "per-factor", "traversal-mean-member0", "action-effects-member1"):
        picture = imread(io.BytesIO(drawings[name].png))
        assert min(picture.shape[:2]) > 150
        assert picture[..., :3].std() > 0.05


def test_heatmaps_hold_mean_and_std_over_seeds(look, drawings):
    rows = read(drawings["r2-heatmaps"])
    assert len(rows) == 4 * 9
    first, second = (np.array(member["r2"])[::-1] for member in look.members)  # latent k is factor 2-k
    for row in rows:
        i, j = NAMES.index(row["latent matched to"]), NAMES.index(row["factor"])
        expected = {
            "mean over seeds": (first[i, j] + second[i, j]) / 2,
            "std over seeds": abs(first[i, j] - second[i, j]) / 2,
            "oracle": float(i == j),
            "chance": 0.004,
        }
        assert float(row["r2"]) == pytest.approx(expected[row["panel"]])


def test_per_factor(look, drawings):
    rows = read(drawings["per-factor"])
    seeds = {(row["factor"], row["seed"]): float(row["r2"]) for row in rows if row["kind"] == "seed"}
    assert seeds == {(name, str(seed)): pytest.approx(r2) for name in NAMES for seed, r2 in ((7, 0.9), (3, 0.7))}
    assert {row["kind"] for row in rows} == {"seed", "mean", "std", "oracle", "chance"}


def test_actions_hold_the_maps_of_the_scores(look, drawings):
    rows = read(drawings["actions-member1"])
    found = {(row["map"], row["row"], row["action"]): float(row["value"]) for row in rows}
    actions = look.members[1]["actions"]
    for k, label in enumerate(["z0 → is_open", "z1 → hue", "z2 → size"]):
        for a, action in enumerate(ACTIONS):
            assert found["score difference", label, action] == pytest.approx(actions["score_difference"][k][a])
            assert found["latents moved (in their spread)", label, action] == pytest.approx(actions["movement"][k][a])
    rows = read(drawings["action-effects-member0"])
    effects = {(row["action"], int(row["latent"])): float(row["share of states"]) for row in rows}
    assert effects["grow", 0] == 0.8
    assert ("stay", 0) not in effects  # the no-op moves nothing


def test_graphs_hold_every_edge_in_the_order_of_the_factors():
    look = make_look(method="dms", energies=False, graphs=True)
    assert look.graphs is not None
    drawings = {drawing.name: drawing for drawing in draw(look)}
    labels = ["z0 → is_open", "z1 → hue", "z2 → size"]
    for name, columns in (("state", labels), ("action", ACTIONS)):
        drawing = drawings[f"graph-{name}-member1"]
        rows = read(drawing)
        expected = look.graphs[1][name]
        assert [row["next"] for row in rows[:: len(columns)]] == labels[::-1]
        for row in rows:
            value = expected[labels.index(row["next"]), columns.index(row["hangs on"])]
            assert float(row["probability"]) == pytest.approx(value)
            assert row["open"] == str(bool(value > 0.5))
        (axes,) = drawing.figure.axes
        frames = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        framed = {(round(frame.get_y() + 0.46), round(frame.get_x() + 0.46)) for frame in frames}
        order = [2, 1, 0]
        shown = expected[order][:, order] if name == "state" else expected[order]
        assert framed == {(i, j) for i, j in np.ndindex(shown.shape) if shown[i, j] > 0.5}
        assert 0 < len(framed) < shown.size


def test_curves_and_scatter(look, drawings):
    rows = read(drawings["training-curves"])
    assert [float(row["value"]) for row in rows if row["term"] == "fwd" and row["seed"] == "3"] == pytest.approx(
        look.curves["fwd"][:, 1].tolist()
    )
    first = read(drawings["scatter-member0"])[0]
    assert (first["factor"], first["latent"]) == ("size", "2")
    assert float(first["s"]) == pytest.approx(look.factors[0, 0])
    assert float(first["z"]) == pytest.approx(look.z[0, 0, 2])


def test_bars_of_methods_and_domains():
    looks = [make_look(f"{m}-{d}", method=m, domain=d) for m in ("acf", "gcl") for d in ("toy", "taxi")]
    rows = read(bars(group(looks)))
    assert {(row["domain"], row["method"]) for row in rows} == {(d, m) for m in ("acf", "gcl") for d in ("toy", "taxi")}
    assert {row["score"] for row in rows} == {"diag", "off_diag"}
    for row in rows:
        assert float(row["mean"]) == pytest.approx(looks[0].members[0][row["score"]])
        assert row["seeds"] == "2"
        assert row["oracle"]
        assert row["chance"]


def test_same_figure_same_file(look):
    one, other = ({d.name: d for d in draw(look)}["per-factor"] for _ in range(2))
    assert one.svg() == other.svg()


@pytest.mark.parametrize(
    ("factors", "energies", "missing"),
    [(False, True, "r2-heatmaps"), (True, False, "action-effects-member0"), (False, False, "scatter-member0")],
)
def test_what_cannot_be_known_is_left_out(factors, energies, missing):
    names = {drawing.name for drawing in draw(make_look(factors=factors, energies=energies, seeds=(0,)))}
    assert missing not in names
    assert {"traversal-mean-member0", "actions-member0", "training-curves"} <= names


def test_more_latents_than_factors_and_one_channel():
    assert draw(make_look(latents=5, channels=1, seeds=(0,)))


def luminance(colour: str) -> float:
    r, g, b = bytes.fromhex(colour[1:])
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_heat_darkens_steadily_and_its_text_can_be_read():
    values = np.linspace(0, 1, 50)
    lights = [luminance(heat(value)[0]) for value in values]
    assert (np.diff(lights) < 0).all()  # so that order survives a grey printer
    for value in values:
        background, text = heat(value)
        assert abs(luminance(background) - luminance(text)) > 70
    assert heat(float("nan"))[0] == "#EEEEEE"


# Machado, Oliveira and Fernandes (2009): what is seen without one kind of cone.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


@pytest.mark.parametrize("kind", BLINDNESS)
def test_categories_can_be_told_apart(kind):
    rgb = np.array([list(bytes.fromhex(colour[1:])) for colour in (*CATEGORIES, ORACLE, CHANCE)]) / 255
    seen = np.clip(rgb**2.2 @ np.array(BLINDNESS[kind]).T, 0, 1) ** (1 / 2.2)
    distance = np.linalg.norm(seen[:, None] - seen, axis=2)
    assert distance[~np.eye(len(rgb), dtype=bool)].min() > 0.1
