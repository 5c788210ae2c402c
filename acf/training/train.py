"""`train`: transitions in, a run directory out; the same call on the same directory goes on where it stopped."""

import importlib.metadata
import json
import math
import os
import platform
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from acf.data.checks import rows_differ
from acf.data.transitions import Transitions, mean_picture, used_frames
from acf.errors import AcfError
from acf.files import check_own, exclusive_lock, write_atomic
from acf.methods import get, name_of
from acf.methods.base import Encoders, Learner, Method
from acf.nn.kernel import Kernel, chosen
from acf.training import checkpoint, population
from acf.training.compiled import keep_compiled_programs
from acf.training.config import Config, check_trainable, differences, make_hparams, make_settings, make_spec
from acf.training.flat import layout
from acf.training.interrupt import Interrupted, wish_to_stop
from acf.training.loggers import JsonLines, Logger, TensorBoard, Terms, WandB
from acf.training.population import Schedule, State
from acf.training.program import Program
from acf.training.run_dir import RunDir
from acf.training.view import View
from acf.training.watch import Watch

SAVE_EVERY = 30.0  # seconds
SHORT = 1.0  # seconds a chunk may take for the next to be started before it ends: who wants to stop waits for both


class AllDiverged(AcfError):  # noqa: N818 (an outcome)
    """No member is left to train."""


def train(
    data: Transitions | str | Path,
    out: str | Path,
    *,
    method: str | Method = "acf",
    preset: str | None = None,
    seeds: Sequence[int] = (0,),
    hparams: dict[str, float] | Sequence[dict[str, float]] = {},  # noqa: B006 (never changed)
    latents: int | None = None,
    epochs: int | None = None,
    encoder: Encoders | None = None,
    bf16: bool | None = None,
    kernel: Kernel = "auto",
    noop: int | None = None,
    wandb: str | None = None,
    save_every: float = SAVE_EVERY,
    until: float = math.inf,
) -> RunDir:
    """Train a population, one member a seed, into the directory `out`.

    `method` is a name, MODULE:NAME or the method itself, which must then be a module's own, to be found again.
    `hparams` overrides the preset's, for all members or as one dict a member. `latents` is the number of factors where
    the data knows them; `encoder`, `places` or `residual`, is the preset's; `noop` stands in for what the data says of
    its no-op. Data in memory is saved to `out/data`. A run that lasts until the time `until` of `time.monotonic()` is
    saved and `Interrupted` raised. A finished run is left alone; with more `epochs` it goes on from its last step.
    """
    keep_compiled_programs()
    directory = RunDir(Path(out))
    given = data if isinstance(data, Transitions) else Transitions.open(data, noop=noop)
    given = given if noop is None else replace(given, noop=noop)
    method = name_of(method)
    sizes, members = make_settings(method, preset, given.source.get("domain"), seeds, hparams, epochs)
    own = [member.hparams for member in members]
    latents = get(method).latents if latents is None else latents
    spec = make_spec(given, sizes, own, latents=latents, encoder=encoder, bf16=bf16, kernel=kernel)
    config = Config(method, spec, members, sizes.batch_size, sizes.epochs, data={})
    train_part, _ = directory.split(given)
    check_trainable(config, train_part)
    check_place(directory)
    with disk_trouble(directory), exclusive_lock(directory.path):  # nothing is written before
        if isinstance(data, Transitions):
            given, where = _saved(given, directory), directory.data
            train_part, _ = directory.split(given)
        else:
            where = Path(data)
        # Both without symbolic links: `..` leads out of where a link points to.
        path = os.path.relpath(where.resolve(), directory.path.resolve())
        about = {"path": path, "hash": given.hash, "source": given.source}
        config = replace(config, data=about)
        _agree(directory, config)
        if not directory.is_finished(config):
            _train(directory, config, train_part, wandb, save_every, until)
    return directory


@contextmanager
def disk_trouble(directory: RunDir) -> Iterator[None]:
    """A full disk or an unwritable directory, as something a person can act on."""
    try:
        yield
    except OSError as error:
        kept = "the last good state is kept" if directory.state.exists() else "there was no state to keep yet"
        raise AcfError(
            f"cannot work in {directory.path} ({error.strerror or error}); {kept}. "
            "Make room or mend the path or its permissions, then run the same command to go on."
        ) from error


def check_place(directory: RunDir) -> None:
    """A directory of something else is not for a run."""
    if not directory.config.exists():
        begun = directory.data, directory.state.parent, directory.restarts
        check_own(directory.path, "a run", [part.name for part in begun])


def _saved(given: Transitions, directory: RunDir) -> Transitions:
    """Data in memory, as it lies in the run's directory from now on."""
    there = directory.data.exists()
    if not there:
        given.save(directory.data)
    found = Transitions.open(directory.data)
    if there and not _same_data(given, found):
        raise AcfError(f"{directory.path} holds a run on other data. Choose another --out.")
    return found


def _same_data(a: Transitions, b: Transitions) -> bool:
    """Frames that no transition uses do not count: they are not saved."""
    names = ("frame_shape", "action_names", "noop", "factor_names", "controllable")
    rows, found = used_frames(a), used_frames(b)
    return (
        all(getattr(a, name) == getattr(b, name) for name in names)
        and len(rows) == len(found)
        and np.array_equal(a.action, b.action)
        and np.array_equal(np.searchsorted(rows, a.i), np.searchsorted(found, b.i))
        and np.array_equal(np.searchsorted(rows, a.j), np.searchsorted(found, b.j))
        and np.array_equal(a.episode[rows], b.episode[found])
        and (a.factors is None or b.factors is None or np.array_equal(a.factors[rows], b.factors[found]))
        and not rows_differ(a.frames, rows, b.frames, found).any()
    )


def _agree(directory: RunDir, config: Config) -> None:
    """A directory holds one run: the first call writes its config, every later one must ask for the same."""
    if directory.config.exists():
        there = directory.read_config()
        changed = differences(there, config)
        if changed and not differences(replace(there, epochs=config.epochs), config):
            _lengthen(directory, there, config.epochs)
        elif changed:
            raise AcfError(f"{directory.path} holds another run ({'; '.join(changed)}). Choose another --out.")
        return
    versions = {name: importlib.metadata.version(name) for name in ("jax", "flax", "optax", "numpy")}
    about = {
        "versions": {"python": platform.python_version(), **versions},
        "device": jax.devices()[0].device_kind,
        "created": datetime.now(UTC).isoformat(),
    }
    write_atomic(directory.config, json.dumps(config.to_json() | about, indent=2) + "\n")


def _lengthen(directory: RunDir, there: Config, epochs: int) -> None:
    """More epochs for a run: no step of it depends on how many there will be."""
    finished = directory.is_finished(there)
    if epochs < there.epochs:
        done = "was trained for" if finished else "was begun with"
        raise AcfError(
            f"{directory.path} {done} {there.epochs} epochs, {epochs} asked: a run can be made longer, not shorter. "
            f"Ask for {there.epochs} or more, or choose another --out."
        )
    if finished and not directory.state.exists():
        raise AcfError(
            f"{directory.path} cannot go on: expected the state it ended in as {directory.state}, found none. Put it "
            "back, or choose another --out to train from the beginning."
        )
    directory.forget_results()
    found = json.loads(directory.config.read_text()) | {"epochs": epochs}
    write_atomic(directory.config, json.dumps(found, indent=2) + "\n")


class _Progress(NamedTuple):
    step: int
    seconds: float  # spent training, over all the processes that had a part in it


def _train(
    directory: RunDir, config: Config, data: Transitions, wandb: str | None, save_every: float, until: float
) -> None:
    learner, schedule = get(config.method).bind(config.spec), config.schedule(len(data))
    hparams = population.stack([make_hparams(get(config.method), member.hparams) for member in config.members])
    seeds = [member.seed for member in config.members]
    watch = Watch(config, schedule.steps)

    with ExitStack() as stack:
        wish = stack.enter_context(wish_to_stop(until))
        state, progress = _resume(directory, learner, seeds)
        loggers: list[Logger] = []
        if wandb:  # which may not be installed
            loggers.append(stack.enter_context(closing(WandB(wandb, directory.path, config))))
        view = stack.enter_context(View(f"training {config.method}", progress.step, schedule.steps))
        # While the program is compiled: the first state of all, and a library that imports torch where there is one.
        beside = stack.enter_context(ThreadPoolExecutor(1))
        start = beside.submit(lambda: state or _init(learner, seeds, mean_picture(data)))
        library = beside.submit(import_module, "tensorboardX")
        program = Program(learner, schedule, data, seeds, hparams, progress.step)
        stack.enter_context(closing(program))
        program.begin(start.result())
        del start, state  # the program holds the state now, and takes its memory for the next one
        library.result()  # a second thread would find it half imported
        for logger in _files(directory, config, progress.step):
            loggers.append(stack.enter_context(closing(logger)))
        for message in _about(program, config):
            view.say(message)
        ahead, took, saved = None, math.inf, time.monotonic()
        ended = saved
        while progress.step < schedule.steps:
            chunk, step = ahead or program.start(progress.step), progress.step + schedule.chunk
            # The device goes on while the host looks at what is done; unless the state is wanted as it is then.
            wanted = bool(wish) or ended - saved >= save_every or step == schedule.steps
            ahead = program.start(step) if took < SHORT and not wanted else None
            terms, diverged_at = chunk.wait()
            took, ended = time.monotonic() - ended, time.monotonic()
            progress = _Progress(step, progress.seconds + took)
            _report(step, schedule, terms, diverged_at, loggers, view, watch)
            if min(diverged_at) >= 0:
                raise AllDiverged("every member diverged: nothing is left to train. Lower the learning rate.")
            if ahead:
                continue
            stop = bool(wish)  # asked once: it may become true at any moment
            if stop or ended - saved >= save_every:
                _save(directory, program.state(), progress, loggers)
                saved = ended = time.monotonic()
            if stop and progress.step < schedule.steps:
                message = f"stopped at step {progress.step} of {schedule.steps} and saved; the same command goes on"
                raise Interrupted(message, wish.signum)
        state = program.state()
        _save(directory, state, progress, loggers)
        _write_models(directory, config, learner, state, progress)
        if wish.signum is not None:
            raise Interrupted("stopped after the last step: the models are saved", wish.signum)


def _about(program: Program, config: Config) -> Iterator[str]:
    members, available = len(config.members), len(jax.local_devices())
    at_once = members // program.groups
    if config.spec.kernel == "pallas" and chosen("auto") != "pallas":
        yield "there is no GPU for the kernels of the energies: they are interpreted, which is slow and for tests"
    if program.groups > 1:
        yield f"{members} members do not fit in memory at once: they train {at_once} at a time"
    if program.streamed:
        yield "the data leaves too little of the device's memory to train in: it is streamed"
    if program.devices < min(available, at_once):
        yield f"{at_once} members train on {program.devices} of {available} devices: as many as share them equally"


def _resume(directory: RunDir, learner: Learner, seeds: Sequence[int]) -> tuple[State | None, _Progress]:
    """What was saved, if anything was."""
    if not directory.state.exists():
        return None, _Progress(0, 0.0)
    shapes = jax.eval_shape(partial(population.init, learner), jnp.array(seeds))
    state, about = checkpoint.load(directory.state, shapes)
    return state, _Progress(about["step"], about["seconds"])


def _init(learner: Learner, seeds: Sequence[int], mean: Float[np.ndarray, "H W C"]) -> State:
    # It runs once: on a CPU, optimising this program takes several times longer than all it does.
    options = {"xla_backend_optimization_level": 0} if jax.default_backend() == "cpu" else None
    return jax.jit(partial(population.init, learner), compiler_options=options)(jnp.array(seeds), mean)


def _files(directory: RunDir, config: Config, step: int) -> Iterator[Logger]:
    """One after the other: where one cannot be made, the one before it can still be closed."""
    yield JsonLines(directory.metrics, step)
    yield TensorBoard(directory.tensorboard, step, config)


def _report(
    step: int,
    schedule: Schedule,
    terms: Terms,
    diverged_at: list[int],
    loggers: list[Logger],
    view: View,
    watch: Watch,
) -> None:
    for logger in loggers:
        logger.log(step, step / schedule.steps_per_epoch, terms)
    for message in watch.look(step, terms, diverged_at):
        view.say(message)
    view.update(step, terms)


def _save(directory: RunDir, state: State, progress: _Progress, loggers: list[Logger]) -> None:
    for logger in loggers:
        logger.flush()
    checkpoint.save(directory.state, state, progress._asdict())


def _write_models(directory: RunDir, config: Config, learner: Learner, state: State, progress: _Progress) -> None:
    unravel = layout(jax.eval_shape(learner.init, jax.random.key(0))).unravel
    for n, member in enumerate(config.members):
        params = unravel(state.params[n])
        about = {"seed": member.seed, "diverged_at": int(state.diverged_at[n]), **progress._asdict()}
        extras = learner.extras(params, make_hparams(get(config.method), member.hparams))
        if extras:  # before the model, whose presence says that the run is finished
            directory.extras(n).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(directory.extras(n), json.dumps(extras, indent=2) + "\n")
        checkpoint.save(directory.model(n), params, about)
