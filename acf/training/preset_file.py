"""A preset as a file, which `--preset FILE` takes: what `acf sweep` found, or your own."""

import dataclasses
import json
import tomllib
from pathlib import Path
from typing import Any, get_args

from acf.errors import AcfError
from acf.files import write_atomic
from acf.methods.base import Encoders
from acf.training.presets import Preset

_FIELDS = {field.name: field.type for field in dataclasses.fields(Preset) if field.name != "hparams"}


def write_preset(path: str | Path, preset: Preset, method: str, about: str) -> None:
    """TOML; `about` becomes comments at its head."""
    values = {"method": method} | {name: getattr(preset, name) for name in _FIELDS}
    lines = [f"# {line}".rstrip() for line in about.splitlines()]
    lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    lines += ["", "[hparams]", *(f"{name} = {float(value)!r}" for name, value in preset.hparams.items())]
    write_atomic(path, "\n".join(lines) + "\n")


def read_preset(path: str | Path, method: str) -> Preset:
    """The preset in a file, for the method that it was made for; what it leaves out is as in `Preset`."""
    try:
        found = tomllib.loads(Path(path).read_text())
    except FileNotFoundError:
        raise AcfError(f"preset file {path} does not exist: give the best.toml of an `acf sweep`") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AcfError(f"preset file {path} is not TOML ({error})") from None
    made_for = found.pop("method", None)
    if not isinstance(made_for, str):
        raise AcfError(f"preset file {path}: expected `method`, the name of a method, found {made_for!r}")
    if made_for != method:
        raise AcfError(f"preset file {path} is for {made_for}, not for {method}: add --method {made_for}")
    hparams = found.pop("hparams", {})
    _check(path, found, hparams)
    return Preset(**found, hparams={name: float(value) for name, value in hparams.items()})


def _check(path: str | Path, found: dict[str, Any], hparams: Any) -> None:
    unknown = sorted(set(found) - set(_FIELDS))
    if unknown:
        known = ", ".join(["method", *_FIELDS, "[hparams]"])
        raise AcfError(f"preset file {path}: unknown {', '.join(unknown)}; expected some of {known}")
    for name, value in found.items():
        if name == "encoder" and value not in get_args(Encoders):
            raise AcfError(
                f"preset file {path}: expected encoder as {' or '.join(get_args(Encoders))}, found {value!r}"
            )
        is_text = name in ("start", "encoder")
        if not (isinstance(value, str) if is_text else type(value) is int and value >= 1):
            wanted = "text" if is_text else "a whole number of at least 1"
            raise AcfError(f"preset file {path}: expected {name} as {wanted}, found {value!r}")
    if not isinstance(hparams, dict):
        raise AcfError(f"preset file {path}: expected a table [hparams], found {hparams!r}")
    for name, value in hparams.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise AcfError(f"preset file {path}: expected hyperparameter {name} as a number, found {value!r}")
