"""The page in a real Chromium, on a run that was really trained."""

import json
import os
import shutil
from pathlib import Path

import pytest

from acf.study.report import report_runs

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")


@pytest.fixture(scope="module")
def run(runs) -> Path:
    """Two seeds on Lamp, with their page."""
    report_runs([runs / "lamp"])
    return runs / "lamp"


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def opened(chromium, run):
    """The page, what its console said and what it asked for."""
    heard, asked = [], []
    page = chromium.new_page(viewport={"width": 1100, "height": 900})
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{run / 'report.html'}")
    yield page, heard, asked
    page.close()


@pytest.fixture
def page(opened):
    return opened[0]


def scores(run: Path) -> dict:
    return json.loads((run / "scores.json").read_text())


def picture(page, canvas: str) -> str:
    return page.evaluate(f"document.querySelector('.member.shown {canvas}').toDataURL()")


def slide(page, step: int) -> None:
    page.locator(".member.shown .slider").evaluate(
        "(slider, step) => { slider.value = step; slider.dispatchEvent(new Event('input')); }", str(step)
    )


def test_heatmaps_are_those_of_the_scores(page, run):
    for n, member in enumerate(scores(run)["members"]):
        cells = page.evaluate(
            f"""[...document.querySelectorAll("[data-heat='r2-member{n}'] td[data-value]")].map((cell) =>
                [cell.parentElement.dataset.row, cell.dataset.column, cell.dataset.value, cell.textContent])"""
        )
        assert len(cells) == 16
        for row, column, value, shown in cells:
            expected = member["r2"][int(row)][int(column)]
            assert float(value) == pytest.approx(expected, abs=1e-6)
            assert float(shown) == pytest.approx(expected, abs=0.0051)


def test_verdict_is_that_of_the_scores(page, run):
    """Of both seeds, whichever is shown; below the cards."""
    lead = page.locator(".factors-found .lead")
    certified = sum(member["certificate"]["certified"] for member in scores(run)["members"])
    assert lead.text_content().startswith(f"Certified: {certified} of 2" if certified else "Not certified: none of 2")
    assert page.locator(".factors-found").bounding_box()["y"] > page.locator(".cards").bounding_box()["y"]


def test_slider_changes_the_picture(page):
    assert page.locator(".member.shown").first.is_visible()
    steps = int(page.locator(".member.shown .slider").get_attribute("max"))
    assert steps > 0
    seen, values = [], []
    for step in (0, steps):
        slide(page, step)
        seen.append((picture(page, "canvas.mean"), picture(page, "canvas.samples")))
        values.append(float(page.locator(".member.shown output.value").text_content().split(",")[0]))
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] != seen[1][1]
    assert values[0] < values[1]


def test_another_latent_is_another_picture(page):
    slide(page, 0)
    buttons = page.locator(".member.shown .buttons button")
    assert buttons.count() == 4
    seen = []
    for n in (0, 1):
        buttons.nth(n).click()
        page.wait_for_timeout(50)
        seen.append(picture(page, "canvas.mean"))
        assert buttons.nth(n).get_attribute("aria-pressed") == "true"
    assert seen[0] != seen[1]


def test_another_member_is_shown(page):
    first, second = (page.locator(f"[data-heat='r2-member{n}']") for n in (0, 1))
    assert (first.is_visible(), second.is_visible()) == (True, False)
    page.select_option(".choose-member", "1")
    assert (first.is_visible(), second.is_visible()) == (False, True)
    page.select_option(".choose-member", "0")
    assert (first.is_visible(), second.is_visible()) == (True, False)


def test_pointing_at_a_cell_tells_its_numbers(page, run):
    tip = page.locator("#tip")
    assert not tip.is_visible()
    cell = page.locator("[data-heat='r2-member0'] tr[data-row='2'] td[data-column='1']")
    cell.hover()
    assert tip.is_visible()
    assert f"R² {scores(run)['members'][0]['r2'][2][1]:.4f}, 95 %" in tip.text_content()
    page.mouse.move(2, 2)
    assert not tip.is_visible()


def test_nothing_left_the_file_and_nothing_complained(opened, run):
    # last, so that it speaks of all that was done above
    _, heard, asked = opened
    assert heard == []
    assert [url for url in asked if not url.startswith("data:")] == [f"file://{run / 'report.html'}"]


def test_readable_without_script(chromium, run):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{run / 'report.html'}")
    for n in (0, 1):
        assert page.locator(f"[data-heat='r2-member{n}']").is_visible()
    assert page.locator(".strip img").first.is_visible()
    assert page.locator(".slider").first.is_hidden()
    assert "R²" in page.locator("[data-heat='r2-member0'] td[data-value]").first.get_attribute("title")
    context.close()


def test_prints(chromium, run):
    page = chromium.new_page()
    page.goto(f"file://{run / 'report.html'}")
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.locator(".stage").first.is_hidden()
    assert page.locator(".cards").first.is_visible()
    # nothing runs off the paper: 184 mm between the margins of A4 are 695 pixels
    page.set_viewport_size({"width": 695, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth") <= 695
    page.close()
