"""The record of a population: its scores, and how they came about, small enough to commit and to copy.

A study is done when its records hold every cell, wherever these were trained.
"""

import json
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from acf.domains import make
from acf.errors import AcfError
from acf.files import write_atomic
from acf.methods import get
from acf.metrics.scores import mean_std
from acf.study.evaluate import FORMAT as SCORES_FORMAT
from acf.study.evaluate import evaluate_run, read_scores
from acf.study.plan import Cell, Study, hparams_of
from acf.training import checkpoint
from acf.training.config import Config
from acf.training.run_dir import RunDir

FORMAT = 1
TITLE = "The study"  # how a report begins


@dataclass(frozen=True, eq=False)
class Record:
    file: Path
    content: dict[str, Any]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Of each member, in order."""
        domain, method = self.content["domain"], self.content["method"]
        return tuple(Cell(domain, method, member["preset"], member["seed"]) for member in self.content["members"])

    @property
    def scores(self) -> dict[str, Any]:
        """As in `scores.json`, less the means over all members: those of different presets do not belong together."""
        return self.content["scores"]


def record_of(
    run: str | Path,
    study: Study,
    *,
    command: str | None = None,
    device: str | None = None,
    seconds: float | None = None,
    device_seconds: float | None = None,
) -> dict[str, Any]:
    """A finished run as the record of a study; evaluated first where that has not been done.

    The preset of each member is recognised by its hyperparameters. A run that is scored needs only its `config.json`
    and `scores.json`; where it has no weights, or is of an older version, `seconds` and `device` say what these files
    do not. `device_seconds` is the run's share of the device's time, where it had not all of it.
    """
    directory = RunDir(Path(run))
    config = directory.read_config()
    cells = recognise(study, config, str(run))
    about = json.loads(directory.config.read_text())
    scores = read_scores(run) or evaluate_run(run)
    _check_scores(scores, config, str(run))
    if seconds is None and directory.model(0).exists():
        seconds = checkpoint.about(directory.model(0))["seconds"]
    files = [directory.extras(n) for n in range(len(cells))]
    extras = [json.loads(file.read_text()) for file in files if file.exists()]
    domain, method = cells[0].domain, cells[0].method
    of_members = [name for name, value in scores["oracle"].items() if value is None or isinstance(value, float)]
    return {
        "format": FORMAT,
        "domain": domain,
        "method": method,
        "members": [{"preset": cell.preset, "seed": cell.seed} for cell in cells],
        "command": command,
        "created": about.get("created"),
        "device": device or about.get("device"),
        "versions": about.get("versions"),
        "training_seconds": seconds,
        "device_seconds": seconds if device_seconds is None else device_seconds,
        "summary": _summaries(cells, scores["members"], of_members),
        **({"extras": extras} if extras else {}),
        "config": _portable(config),
        "scores": {name: value for name, value in scores.items() if name not in of_members},
    }


def write_record(file: str | Path, content: dict[str, Any]) -> None:
    """A line for each thing in it."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items())
    write_atomic(file, f"{{\n{lines}\n}}\n")


def leave_out_of_git(out: Path) -> None:
    """What is large, or drawn again at any time: records, tables and figures are what is committed."""
    if not (out / ".gitignore").exists():
        write_atomic(out / ".gitignore", "/data/\n/runs/\n/report.html\n.lock\n")


def read_records(study: Study, out: Path) -> list[Record]:
    """Every record in `out`; one that disagrees with the study is an error, and so is a cell in two of them."""
    readme = out / "README.md"
    title = readme.read_text().partition("\n")[0] if readme.exists() else None
    if (out.exists() and not out.is_dir()) or (title is not None and not title.startswith(f"# {TITLE}")):
        raise AcfError(f"{out} is not the directory of a study, and would be overwritten: choose another --out")
    if title is not None and Path(title.strip("`").rpartition("`")[2]).name != Path(study.name).name:
        raise AcfError(f"{out} is the directory of another study ({title[2:]}): choose another --out")
    records = [_read(study, file) for file in sorted(out.glob("*.json"))]
    holder: dict[Cell, Path] = {}
    for record in records:
        for cell in record.cells:
            if cell in holder:
                where = f"{holder[cell]} and {record.file}"
                raise AcfError(f"{describe([cell])} is in two records, {where}: remove one of them")
            holder[cell] = record.file
    return records


def recognise(study: Study, config: Config, where: str) -> tuple[Cell, ...]:
    """Which cell of the study each member of a run is."""
    name = config.data.get("source", {}).get("domain")
    domain = study.domain_called(name)
    if not domain or not study.presets(domain, config.method):
        what = f"{config.method} on {name or 'data of its own'}"
        raise AcfError(f"{where} has {what}, which {study.name} does not ask for")
    _check_sizes(study, config, domain, where)
    presets = {name: hparams_of(config.method, name, domain) for name in study.presets(domain, config.method)}
    cells = []
    for n, member in enumerate(config.members):
        differing = {name: _differences(member.hparams, hparams) for name, hparams in presets.items()}
        nearest = min(differing, key=lambda name: (name != member.preset, len(differing[name])))
        if differing[nearest]:
            raise AcfError(
                f"{where}: member {n} (seed {member.seed}) has the hyperparameters of no preset that {study.name} asks "
                f"for ({', '.join(presets)}); the nearest is {nearest} ({'; '.join(differing[nearest])})"
            )
        cells.append(Cell(domain, config.method, nearest, member.seed))
    if len(set(cells)) < len(cells):
        raise AcfError(f"{where} has the same preset and seed twice: {describe(cells)}")
    return tuple(cells)


def describe(cells: list[Cell] | tuple[Cell, ...]) -> str:
    """`taxi acf paper 0-4, sparse 0 2`, and so on."""
    groups: dict[tuple[str, str], dict[str, list[int]]] = {}
    for cell in cells:
        groups.setdefault(cell[:2], {}).setdefault(cell.preset, []).append(cell.seed)
    return "; ".join(
        f"{domain} {method} " + ", ".join(f"{preset} {seeds_in_words(seeds)}" for preset, seeds in presets.items())
        for (domain, method), presets in groups.items()
    )


def seeds_in_words(seeds: list[int]) -> str:
    """
    >>> seeds_in_words([0, 1, 2, 3]), seeds_in_words([4, 0])
    ('seeds 0-3', 'seeds 0 4')
    """
    seeds = sorted(seeds)
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    in_a_row = seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"seeds {seeds[0]}-{seeds[-1]}" if in_a_row else f"seeds {' '.join(map(str, seeds))}"


def _read(study: Study, file: Path) -> Record:
    try:
        content = json.loads(file.read_text())
        version = content["format"]
        if version != FORMAT:
            raise AcfError(f"{file}: expected a record of format {FORMAT}, found {version!r}; use a matching acf-rl")
        record = Record(file, content)
        config = Config.from_json(content["config"], file)
        _check_scores(record.scores, config, str(file))
        asked = [study.presets(cell.domain, cell.method) for cell in record.cells]
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, AcfError):
            raise
        raise AcfError(f"{file} is not the record of a study, or damaged ({error!r}): move it elsewhere") from None
    if any(asked):
        _check_sizes(study, config, content["domain"], str(file))
    for cell, member, presets in zip(record.cells, config.members, asked, strict=True):
        # A preset that this study leaves out may be what it likes.
        expected = hparams_of(cell.method, cell.preset, cell.domain) if cell.preset in presets else member.hparams
        if differing := _differences(member.hparams, expected):
            raise AcfError(
                f"{file}: its {cell.preset} is not that of {study.name} ({'; '.join(differing)}). Move the record "
                "elsewhere and run the study again, or choose another --out."
            )
    return record


def _check_sizes(study: Study, config: Config, domain: str, where: str) -> None:
    size, source = study.size(domain, config.method), study.source(domain, config.method)
    expected = {
        "batch_size": size.batch_size,
        "epochs": size.epochs,
        "encoder": size.encoder,
        "depth": size.depth,
        "hidden": size.hidden,
        "latents": get(config.method).latents or len(make(domain).factor_names),
        **{f"data.{name}": value for name, value in json.loads(json.dumps(source)).items()},  # tuples are lists there
    }
    spec = config.spec
    found = {
        "batch_size": config.batch_size,
        "epochs": config.epochs,
        **{name: getattr(spec, name) for name in ("encoder", "depth", "hidden", "latents")},
        **{f"data.{name}": value for name, value in config.data["source"].items()},
    }
    if differing := _differences(found, expected):
        raise AcfError(
            f"{where} is not a run of {study.name} as it stands ({'; '.join(differing)}). Move it elsewhere or choose "
            "another --out."
        )


def _check_scores(scores: dict[str, Any], config: Config, where: str) -> None:
    if scores["format"] != SCORES_FORMAT:
        raise AcfError(f"{where}: expected scores of format {SCORES_FORMAT}, found {scores['format']!r}")
    seeds, scored = [member.seed for member in config.members], [member["seed"] for member in scores["members"]]
    if seeds != scored:
        raise AcfError(f"{where}: the members have seeds {seeds}, but the scores are of seeds {scored}")
    if "oracle" not in scores:
        raise AcfError(f"{where} has no true factors to be scored against; a study needs them")


def _differences(found: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    names = dict.fromkeys(chain(asked, found))
    return [
        f"{name}: {found.get(name)!r} there, {asked.get(name)!r} asked"
        for name in names
        if found.get(name) != asked.get(name)
    ]


def _summaries(cells: tuple[Cell, ...], members: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """Of each preset by itself."""
    return {
        preset: {
            name: mean_std([member[name] for cell, member in zip(cells, members, strict=True) if cell.preset == preset])
            for name in names
        }
        for preset in dict.fromkeys(cell.preset for cell in cells)
    }


def _portable(config: Config) -> dict[str, Any]:
    """Without the place of the data, which means nothing elsewhere."""
    content = config.to_json()
    return content | {"data": {name: value for name, value in config.data.items() if name != "path"}}
