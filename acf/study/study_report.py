"""From records to the page of a study: its figures and tables beside the paper's numbers, and what is still missing.

No weights are needed: traversals were drawn when the records were made.
"""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from acf.errors import AcfError
from acf.files import write_atomic
from acf.report.blocks import Block, Heading, Picture, Table, Text, body, markdown
from acf.report.drawing import Drawing
from acf.report.groups import Group
from acf.report.html import score_cell
from acf.report.look import Scored
from acf.report.page import foot, whole
from acf.report.score_figures import bars
from acf.report.study_figures import method_heatmaps
from acf.study.plan import Cell, Study
from acf.study.records import TITLE, Record, leave_out_of_git, read_records, seeds_in_words
from acf.study.report import write_drawing
from acf.study.traversals import FIGURES, traversal_name
from acf.study.work import missing_cells

LABELS = {"acf": "ACF", "gcl": "GCL", "dms": "DMS", "msa": "MSA", "factored_markov": "Factored Markov"}
MISSING = "missing"

Setting = tuple[str, str, str]  # domain, method, preset


def report_study(study: Study, out: str | Path) -> tuple[Path, Path]:
    """Write `README.md`, `report.html` and their figures into `out`; returns the first two."""
    out = Path(out)
    records = read_records(study, out)
    if not records:
        raise AcfError(f"{out} has no records yet: `{_command(study, out)}` makes them")
    found = _Found(study, out, records, _pool(study, records))
    title = f"{TITLE} `{study.name}`"
    blocks = [
        _about(found),
        *_main(found),
        *_heatmaps(found),
        *_ablation(found),
        *_traversals(found),
        *_times(found),
        *_left(found),
    ]
    leave_out_of_git(out)
    write_atomic(out / "README.md", markdown(title, blocks))
    write_atomic(out / "report.html", whole(title.replace("`", ""), body(title.replace("`", ""), blocks) + foot()))
    return out / "README.md", out / "report.html"


@dataclass(frozen=True)
class _Found:
    study: Study
    out: Path
    records: list[Record]
    scored: dict[Setting, Scored]
    """What there is of each setting, all its seeds together."""

    def group(self, setting: Setting) -> Group | None:
        domain, method, preset = setting
        return Group(domain, label(method, preset), (self.scored[setting],)) if setting in self.scored else None

    @property
    def main(self) -> list[Setting]:
        return [(d, m, p) for d in self.study.domains for m, presets in self.study.methods.items() for p in presets]

    def picture(self, drawing: Drawing, alt: str) -> Picture:
        write_drawing(self.out / FIGURES, drawing)
        return self.saved_picture(drawing.name, alt)

    def saved_picture(self, name: str, alt: str) -> Picture:
        file = self.out / FIGURES / f"{name}.png"
        return Picture(f"{FIGURES}/{file.name}", file.read_bytes(), alt)


def label(method: str, preset: str) -> str:
    """
    >>> label("acf", "paper"), label("acf", "no-fwd"), label("acf", "sparse")
    ('ACF', 'ACF no-fwd', 'ACF sparse (ours)')
    """
    name = LABELS.get(method, method)
    if preset in ("paper", "quick"):
        return name
    return f"{name} {preset}" + (" (ours)" if preset == "sparse" else "")


def _pool(study: Study, records: list[Record]) -> dict[Setting, Scored]:
    """Members of each setting from every record; oracle and chance are those of the first, on the same data."""
    asked = set(study.cells())
    pooled: dict[Setting, dict[str, Any]] = {}
    for record in records:
        for cell, member in zip(record.cells, record.scores["members"], strict=True):
            if cell in asked:
                scores = pooled.setdefault(cell[:3], record.scores | {"members": []})
                scores["members"].append(member)
    for scores in pooled.values():
        scores["members"].sort(key=lambda member: member["seed"])
    return {setting: Scored("-".join(setting), scores, {}) for setting, scores in pooled.items()}


def _about(found: _Found) -> Block:
    study = found.study
    own = {"transitions": study.transitions, "epochs": study.epochs}
    changed = "".join(f", {value} {name}" for name, value in own.items() if value is not None)
    total = len(study.cells())
    return Text(
        f"{total - len(missing_cells(study, found.records))} of {total} trials, {study.seeds} seeds a setting. Data, "
        f"networks, batches and epochs of the preset `{study.sizes}`{changed}. Each record (`DOMAIN-METHOD.json`) "
        "holds every score of its members, their settings and how they came about; `docs/scores.md` defines the scores."
    )


def _main(found: _Found) -> list[Block]:
    groups = [group for setting in found.main if (group := found.group(setting))]
    text = (
        "Left: how much a latent tells about a factor that is not its own (0 is best). Right: how much it tells about "
        "its own (1 is best). Mean and standard deviation over seeds. The green line is the oracle, the true factors "
        "in place of the latents, which is what a perfect encoder scores; less off the diagonal is easy where little "
        "is encoded. The dotted line is chance."
    )
    alt = "Bars of the off-diagonal and diagonal score of every method and domain, with oracle and chance"
    columns = ("domain", "method", "seeds", "diag", "off-diag", "oracle: diag", "off-diag", "chance: diag", "off-diag")
    columns = (*columns, "diverged", "the paper's diag", "off-diag")
    return [
        Heading("Every method on every domain"),
        Text(text),
        *([found.picture(bars(groups), alt)] if groups else []),
        Table(columns, [_main_row(found, setting) for setting in found.main]),
        Text("Where the paper has only a figure, no number is read off it."),
    ]


def _main_row(found: _Found, setting: Setting) -> tuple[str, ...]:
    domain, method, preset = setting
    group = found.group(setting)
    theirs = [_theirs(found.study, setting, score) for score in ("diag", "off_diag")]
    if group is None:
        return (domain, label(method, preset), f"0 of {found.study.seeds}", *[MISSING] * 2, *["–"] * 5, *theirs)
    levels = [f"{group.level(kind, score):.3f}" for kind in ("oracle", "chance") for score in ("diag", "off_diag")]
    diverged = sum(member["diverged_at"] >= 0 for member in group.members)
    ours = [_ours(group, score) for score in ("diag", "off_diag")]
    return (domain, label(method, preset), _seeds(found, group), *ours, *levels, str(diverged), *theirs)


def _seeds(found: _Found, group: Group) -> str:
    n = len(group.members)
    return str(n) if n == found.study.seeds else f"{n} of {found.study.seeds}"


def _ours(group: Group | None, score: str) -> str:
    return MISSING if group is None else score_cell(*group.mean_std(score), seeds=len(group.members))


def _heatmaps(found: _Found) -> list[Block]:
    pictures: list[Block] = []
    for domain in found.study.domains:
        groups = [group for s in found.main if s[0] == domain and (group := found.group(s))]
        if groups:
            alt = f"R² heatmaps of {domain}: {', '.join(group.label for group in groups)} and the oracle"
            pictures.append(found.picture(method_heatmaps(groups), alt))
    text = (
        "R² of each true factor (columns) from each latent alone (rows, in the order of the factors they are matched "
        "to). Perfect is dark on the diagonal and, elsewhere, as pale as the oracle. The paper has these as figures "
        "only."
    )
    return [Heading("Which latent knows which factor"), Text(text), *pictures] if pictures else []


def _ablation(found: _Found) -> list[Block]:
    ablation = found.study.ablation
    if ablation is None:
        return []
    settings = [(ablation.domain, m, p) for m, presets in ablation.methods.items() for p in presets]
    groups = [found.group(setting) for setting in settings]
    rows = []
    for setting, group in zip(settings, groups, strict=True):
        pairs = [(_ours(group, score), _theirs(found.study, setting, score)) for score in ("diag", "off_diag")]
        seeds = f"0 of {found.study.seeds}" if group is None else _seeds(found, group)
        rows.append((label(*setting[1:]), seeds, *pairs[0], *pairs[1]))
    there = next((group for group in groups if group), None)
    for kind in ("oracle", "chance"):
        levels = [f"{there.level(kind, score):.3f}" if there else MISSING for score in ("diag", "off_diag")]
        rows.append((kind, "", levels[0], "not in the paper", levels[1], "not in the paper"))
    columns = ("", "seeds", "diag", "the paper's", "off-diag", "the paper's")
    return [Heading(f"Ablation on {ablation.domain}"), Table(columns, rows)]


def _traversals(found: _Found) -> list[Block]:
    blocks: list[Block] = []
    for domain, method, preset in [s for s in found.main if s[1] == "acf"]:
        cells = [Cell(domain, method, preset, seed) for seed in range(found.study.seeds)]
        drawn = [c for c in cells if (found.out / FIGURES / f"{traversal_name(c, 'mean')}.png").exists()]
        name = f"{domain}, {label(method, preset)}"
        if not drawn:
            run = "is not trained yet" if (domain, method, preset) not in found.scored else "was recorded without them"
            blocks.append(Text(f"{name}: no traversals, it {run}."))
            continue
        blocks.append(Text(f"{name}, seed {drawn[0].seed}:"))
        for kind, words in (("mean", "mean observation"), ("samples", "random observations")):
            alt = f"{words} along each latent of {name}"
            blocks.append(found.saved_picture(traversal_name(drawn[0], kind), alt))
    text = (
        "A row a latent, from low to high values: first the mean of the held-out frames with that value (brightness "
        "stretched), as the paper shows Taxi, then a random one of them, as it shows DoorKey. The seed is the lowest "
        "one there is, not a chosen one."
    )
    return [Heading("What the latents of ACF hold"), Text(text), *blocks] if blocks else []


def _times(found: _Found) -> list[Block]:
    theirs = PAPER["trial"]
    rows = []
    for record in found.records:
        content, n = record.content, len(record.cells)
        seconds = content["training_seconds"]
        share = content.get("device_seconds", seconds)
        one = None if share is None else share / n
        theirs_too = found.study.is_the_papers_size
        rows.append(
            (
                record.file.stem,
                str(n),
                content["device"] or "not recorded",
                "not recorded" if seconds is None else f"{seconds:.0f} s",
                "–" if one is None else f"{one:.1f} s",
                f"{100 * one / (60 * theirs['minutes']):.1f} %" if one is not None and theirs_too else "–",
                (content["created"] or "")[:10],
                f"`{content['command']}`" if content["command"] else "adopted",
            )
        )
    columns = ("record", "members", "device", "training", "device time a member", "of the paper's trial")
    columns = (*columns, "begun", "command")
    text = (
        f"The paper: {theirs['minutes']} minutes a trial on one {theirs['device']}. A trial is read as one seed of one "
        "setting. Members of a record train together, so a member's time, which is what it costs, is its share of the "
        "device's; also where records trained side by side on one device. Compiling, collecting and scoring are not in "
        "it."
    )
    return [Heading("Time and cost of a trial"), Text(text), Table(columns, rows)]


def _left(found: _Found) -> list[Block]:
    missing = missing_cells(found.study, found.records)
    if not missing:
        return []
    seeds: dict[Setting, list[int]] = {}
    for cell in missing:
        seeds.setdefault(cell[:3], []).append(cell.seed)
    rows = [
        (
            domain,
            label(method, preset),
            seeds_in_words(of_setting),
            f"`{_command(found.study, found.out)} --domains {domain} --methods {method}`",
        )
        for (domain, method, preset), of_setting in seeds.items()
    ]
    text = f"{len(missing)} of {len(found.study.cells())} trials. `{_command(found.study, found.out)}` trains them all."
    return [Heading("Still missing"), Text(text), Table(("domain", "method", "seeds", "command"), rows)]


def _command(study: Study, out: Path) -> str:
    return f"acf study {study.name} --out {out}"


PAPER = tomllib.loads((files("acf.study") / "paper_numbers.toml").read_text())


def _theirs(study: Study, setting: Setting, score: str) -> str:
    """What the paper says of a setting, in a cell of a table."""
    domain, method, preset = setting
    table, figures = PAPER["ablation"], PAPER["figures"]
    if not study.is_the_papers_size:
        return "not in the paper"
    if domain == table["domain"] and preset in table.get(method, {}):
        mean, std = table[method][preset][score]
        return f"{mean:.3f} ± {std:.3f}"
    shown = domain in figures["domains"] and method in figures["methods"] and preset == "paper"
    return "figure only" if shown else "not in the paper"
