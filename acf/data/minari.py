"""Minari data sets, in and out."""

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from acf.data.blocks import Block, Header, Progress, keep, there
from acf.data.checks import DataError, warn_about_actions
from acf.data.environments.collect import Asked
from acf.data.environments.factors import ReadFactors
from acf.data.environments.opening import check_discrete, find_noop
from acf.data.environments.pictures import NoPicture, Picture, check_channels, picture_of
from acf.data.environments.stepping import Seen
from acf.data.environments.tape import Tape, Track
from acf.data.transitions import Transitions
from acf.errors import AcfError

ABOUT = "acf"  # the key of a data set's metadata under which stands what Minari has no place for
FACTORS = "factors"  # their key in `infos`


def collect_minari(name: str, asked: Asked, out: str | Path | None, progress: Progress) -> Transitions:
    """The first transitions of the local data set `minari:ID`."""
    _check_nothing_of_environments(asked)
    minari, name = _minari(), name.removeprefix("minari:")
    try:
        dataset = minari.load_dataset(name)
    except FileNotFoundError:
        raise AcfError(f"minari:{name} is not on this machine: minari download {name}") from None
    return _read(dataset, asked, out, progress)


def from_minari(dataset: Any, noop: int | str | None, factors: str | None) -> Transitions:
    asked = Asked(int(dataset.total_steps), 0, None, "uniform", noop, None, False, 1, factors, False)
    return _read(dataset, asked, None, lambda done, total: None)


def to_minari(data: Transitions, name: str) -> Any:
    gym, minari = importlib.import_module("gymnasium"), _minari()
    about = {key: getattr(data, key) for key in ("action_names", "noop", "factor_names", "controllable", "source")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that neither author nor algorithm is named
        dataset = minari.create_dataset_from_buffers(
            name,
            _episodes(data, minari),  # one at a time
            observation_space=gym.spaces.Box(0, 255, data.frame_shape, np.uint8),
            action_space=gym.spaces.Discrete(data.n_actions),
            data_format="hdf5",
            jpeg_encoding=False,  # which loses what a pixel was
        )
    dataset.storage.update_metadata({ABOUT: about})
    return minari.MinariDataset(dataset.storage)


def _minari() -> Any:
    try:
        return importlib.import_module("minari")
    except ImportError:
        raise AcfError("Minari is not installed: pip install 'acf-rl[gym]'") from None


def _check_nothing_of_environments(asked: Asked) -> None:
    if asked.render or asked.horizon or asked.policy not in ("uniform", "random"):
        raise AcfError("render, horizon and policy are for environments: a Minari data set was collected before")


# In


def _read(dataset: Any, asked: Asked, out: str | Path | None, progress: Progress) -> Transitions:
    check_discrete(dataset.action_space)
    about = dataset.storage.metadata.get(ABOUT, {})
    said = {key: value for key, value in asked._asdict().items() if value is not None and value is not False}
    source = {"domain": f"minari:{dataset.id}", **said}
    if found := there(out, source):
        return found
    picture = _picture(dataset, asked)
    read = asked.factors or (f"info:{FACTORS}" if about.get("factor_names") else None)
    factors = ReadFactors(read) if read else None
    start = next(_moments(next(dataset.iterate_episodes()), picture, factors))
    H, W, C = start.frame.shape
    check_channels(C, asked.stack)
    names = tuple(about.get("action_names", map(str, range(int(dataset.action_space.n)))))
    known = factors is not None and asked.factors is None
    header = Header(
        frame_shape=(H, W, C * asked.stack),
        action_names=names,
        noop=about["noop"] if about and asked.noop == "auto" else find_noop(asked.noop, names),
        factor_names=tuple(about["factor_names"]) if known else factors.names if factors else (),
        controllable=tuple(about["controllable"]) if known else (),
        source=source,
    )
    total = min(asked.transitions, int(dataset.total_steps))
    data = keep(header, _blocks(dataset, picture, factors, total, asked.stack, progress), out)
    warn_about_actions(data)
    return data


def _picture(dataset: Any, asked: Asked) -> Picture:
    try:
        return picture_of(dataset.observation_space, asked.gray, asked.size)
    except NoPicture:
        raise DataError(
            f"minari:{dataset.id}: expected pictures as observations, found {dataset.observation_space}; "
            "collect from its environment what it renders: acf collect gym:ID --render"
        ) from None


def _moments(episode: Any, picture: Picture, factors: ReadFactors | None) -> Iterator[Seen]:
    for t in range(len(episode) + 1):
        observation = _at(episode.observations, t)
        yield Seen(picture.frame(observation), factors(None, _at(episode.infos, t)) if factors else None, None)


def _at(column: Any, t: int) -> Any:
    return {key: _at(value, t) for key, value in column.items()} if isinstance(column, dict) else column[t]


def _blocks(
    dataset: Any, picture: Picture, factors: ReadFactors | None, total: int, stack: int, progress: Progress
) -> Iterator[Block]:
    first_action, done, tape = int(dataset.action_space.start), 0, Tape()
    for number, episode in enumerate(dataset.iterate_episodes()):
        moments = _moments(episode, picture, factors)
        track = Track(next(moments), number, stack)
        for action, after in zip(episode.actions[: total - done], moments, strict=False):
            track.follow(tape, int(action) - first_action, after)
            done += 1
            if tape.is_full():
                yield tape.cut()
                tape = tape.next()
        progress(done, total)
        if done == total:
            break
    if tape.frames:
        yield tape.cut()


# Out


def _episodes(data: Transitions, minari: Any) -> Iterator[Any]:
    order = np.argsort(data.episode[data.i], kind="stable")
    i, j, episode = data.i[order], data.j[order], data.episode[data.i[order]]
    ends = np.flatnonzero((j[:-1] != i[1:]) | (episode[:-1] != episode[1:])) + 1
    for number, t in enumerate(np.split(order, ends)):
        rows = np.append(data.i[t], data.j[t[-1]])
        last = np.arange(len(t)) == len(t) - 1
        yield minari.data_collector.EpisodeBuffer(
            id=number,
            observations=data.frames[rows],
            actions=data.action[t].astype(np.int64),
            rewards=np.zeros(len(t)),
            terminations=np.zeros(len(t), bool),
            truncations=last,  # whether something ended or was only cut is not kept here
            infos=None if data.factors is None else {FACTORS: data.factors[rows]},
        )
