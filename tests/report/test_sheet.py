import numpy as np
import pytest
from matplotlib.image import imread

from acf.domains import DOMAINS, make
from acf.report.sheet import _caption, contact_sheet


@pytest.mark.parametrize("name", DOMAINS)
def test_contact_sheet_shows_the_frames(name: str, tmp_path):
    domain = make(name)
    contact_sheet(domain, tmp_path / "new" / "sheet.png", start=domain.starts[-1])
    picture = imread(tmp_path / "new" / "sheet.png")
    assert picture.shape[1] > 900
    colours = np.unique((picture[..., :3] * 255).astype(np.uint8).reshape(-1, 3), axis=0)
    assert len(colours) > 20  # not an empty page


def test_caption_keeps_a_name_with_its_value():
    caption = _caption(("passenger_x", "passenger_y", "in_taxi"), np.array([1.0, 2.0, 0.25]))
    assert caption.replace("\xa0", " ").split("\n") == ["passenger_x 1 passenger_y 2", "in_taxi 0.25"]
