"""The pictures of the README: contact sheets of the domains, what a run's latents hold, and its report.

uv run acf run grid2d && uv run python docs/make_pictures.py runs/grid2d-acf-quick
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import tyro
from matplotlib.figure import Figure

import acf
from acf.data.transitions import used_frames
from acf.domains import DOMAINS
from acf.report.sheet import contact_sheet
from acf.training import RunDir

IMAGES = Path(__file__).parent / "images"


def main(run: tyro.conf.Positional[Path]) -> None:
    for domain in map(acf.make, DOMAINS):
        contact_sheet(domain, IMAGES / f"{domain.name}.png", start=domain.starts[-1])
    latents_against_factors(run, IMAGES / "grid2d-latents.png")
    report(run, IMAGES.parent / "grid2d-report.html", IMAGES / "grid2d-report.png")


def latents_against_factors(run: Path, out: Path) -> None:
    """Some held-out frames, and each latent against each true factor."""
    directory = RunDir(run)
    data = directory.open_data(directory.read_config())
    rows = used_frames(directory.split(data)[1])[:1500]
    frames, factors = np.asarray(data.frames[rows]), data.factors[rows]
    z = acf.load(run).encode(frames)
    K = z.shape[1]
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.3])
    for axes, frame in zip(left.subplots(3, 3).flat, frames[:: len(frames) // 9], strict=False):
        axes.imshow(frame)
        axes.set(xticks=[], yticks=[])
    left.suptitle("what it sees: pixels", fontsize=10)
    grid = right.subplots(K, K, sharex="col", sharey="row")
    for k in range(K):
        for j in range(K):
            grid[k, j].plot(factors[:, j], z[:, k], ".", ms=1.5, color="#0072B2")
            grid[k, j].set(ylim=(-1.05, 1.05))
        grid[k, 0].set_ylabel(f"latent {k}")
        grid[-1, k].set_xlabel(f"true {data.factor_names[k]}")
    right.suptitle("what it finds: each latent is one knob of the world", fontsize=10)
    figure.savefig(out, dpi=110)


def report(run: Path, page: Path, picture: Path) -> None:
    """The run's page, and its upper part as Chromium shows it with a slider in the middle."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        acf.report_runs([run], Path(folder) / page.name)
        shutil.copy(Path(folder) / page.name, page)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1130, "height": 1345})
        opened.goto(f"file://{page.resolve()}")
        opened.locator(".slider").first.fill("7")
        opened.locator(".slider").first.blur()
        opened.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    tyro.cli(main)
