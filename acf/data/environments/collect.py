"""Transitions from a Gymnasium environment, or a vector of them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from acf.data.blocks import Block, Header, Progress, keep, there
from acf.data.checks import check_frame_shape, warn_about_actions
from acf.data.environments.acting import Act, make_policy, name_of_policy
from acf.data.environments.factors import ReadFactors
from acf.data.environments.opening import (
    action_names,
    check_discrete,
    find_noop,
    is_vector,
    name_of,
    one_of,
    open_named,
)
from acf.data.environments.pictures import NoPicture, Picture, check_channels, picture_of
from acf.data.environments.stepping import Rendered, Seen, Single, Vector, Worlds
from acf.data.environments.tape import Tape, Track
from acf.data.transitions import Transitions
from acf.errors import AcfError


class Asked(NamedTuple):
    """What to collect from an environment; `acf.collect` says what each means."""

    transitions: int
    seed: int
    horizon: int | None
    policy: str | Callable[[Any], Any]
    noop: int | str | None
    size: int | None
    gray: bool
    stack: int
    factors: str | Callable[[Any], Any] | None
    render: bool


def collect_environment(environment: Any, asked: Asked, out: str | Path | None, progress: Progress) -> Transitions:
    """Of an environment, or of the name of one, which is then closed in the end."""
    if asked.transitions < 1 or asked.stack < 1 or (asked.horizon or 1) < 1 or (asked.size or 16) < 16:
        found = f"{asked.transitions}, {asked.stack}, {asked.horizon} and {asked.size}"
        raise AcfError(f"expected transitions, stack and horizon of at least 1 and a size of at least 16, got {found}")
    if not isinstance(environment, str):
        with one_of(environment) as part:
            name = name_of(part)
        return _collect(environment, name, asked, out, progress)
    env, asked = _opened(environment, asked)
    try:
        return _collect(env, environment, asked, out, progress)
    finally:
        env.close()


def _opened(name: str, asked: Asked) -> tuple[Any, Asked]:
    """With rendering where the observation is no picture: there is nothing else to look at."""
    env = open_named(name, asked.render)
    if asked.render:
        return env, asked
    try:
        picture_of(env.single_observation_space if is_vector(env) else env.observation_space)
    except NoPicture:
        env.close()
        return open_named(name, render=True), asked._replace(render=True)
    return env, asked


def _collect(env: Any, name: str, asked: Asked, out: str | Path | None, progress: Progress) -> Transitions:
    space = env.single_action_space if is_vector(env) else env.action_space
    check_discrete(space)
    with one_of(env) as part:
        names = action_names(part, int(space.n))
    source = _source(env, name, asked)
    if found := there(out, source):
        return found
    factors = None if asked.factors is None else ReadFactors(asked.factors)
    worlds = _worlds(env, asked, factors)
    starts = worlds.reset(asked.seed)
    H, W, C = starts[0].frame.shape
    check_channels(C, asked.stack)
    check_frame_shape((H, W, C * asked.stack))
    header = Header(
        frame_shape=(H, W, C * asked.stack),
        action_names=names,
        noop=find_noop(asked.noop, names),
        factor_names=factors.names if factors else (),
        controllable=(),
        source=source,
    )
    act = make_policy(asked.policy, space, asked.seed)
    data = keep(header, _blocks(worlds, starts, act, int(space.start), asked, progress), out)
    warn_about_actions(data)
    return data


def _source(env: Any, name: str, asked: Asked) -> dict[str, Any]:
    """The same source gives the same data, as far as the environment is seeded by its reset."""
    factors = (
        asked.factors if asked.factors is None or isinstance(asked.factors, str) else name_of_policy(asked.factors)
    )
    named = asked._asdict() | {"policy": name_of_policy(asked.policy), "factors": factors}
    said = {key: value for key, value in named.items() if value is not None and value is not False}
    return {"domain": name, "environment": str(env), **said}


def _worlds(env: Any, asked: Asked, factors: ReadFactors | None) -> Worlds:
    if is_vector(env):
        _check_vector(asked, factors)
        return Vector(env, picture_of(env.single_observation_space, asked.gray, asked.size), factors)
    if asked.render:
        if env.render_mode != "rgb_array":
            found = f'expected an environment with render_mode="rgb_array", found {env.render_mode!r}'
            raise AcfError(f"render: {found}; give that to gymnasium.make")
        return Rendered(env, Picture(asked.gray, asked.size), factors, asked.horizon)
    return Single(env, picture_of(env.observation_space, asked.gray, asked.size), factors, asked.horizon)


def _check_vector(asked: Asked, factors: ReadFactors | None) -> None:
    if asked.render:
        raise AcfError("render: a vector environment shows its parts after their resets; collect from one environment")
    if asked.horizon:
        raise AcfError("horizon: a vector environment resets its parts itself; give them gymnasium.wrappers.TimeLimit")
    if factors and not factors.of_info:
        raise AcfError(
            "factors: the parts of a vector environment are out of reach; have them put their factors into info and "
            "say --factors info:KEY, or collect from one environment"
        )


def _blocks(
    worlds: Worlds, starts: list[Seen], act: Act, first_action: int, asked: Asked, progress: Progress
) -> Iterator[Block]:
    tracks = [Track(start, episode, asked.stack) for episode, start in enumerate(starts)]
    episodes, done, tape = len(tracks), 0, Tape()
    while done < asked.transitions:
        actions = [act(track.observation) for track in tracks]
        for k, outcome in enumerate(worlds.step([action + first_action for action in actions])):
            if outcome.after is not None and done < asked.transitions:
                tracks[k].follow(tape, actions[k], outcome.after)
                done += 1
            if outcome.start is not None:
                tracks[k] = Track(outcome.start, episodes, asked.stack)
                episodes += 1
        if tape.is_full() or done == asked.transitions:
            yield tape.cut()
            tape = tape.next()
        progress(done, asked.transitions)
