"""The same populations on a Ray cluster: one task a population, begun again elsewhere when its worker dies.

All machines see the sweep's directory under the same path: a task that is begun again goes on from the state that the
dead one saved, and the process that asked alone writes the study.
"""

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

from acf.errors import AcfError
from acf.files import Busy
from acf.study.sweep.population import Runner, run_population
from acf.study.sweep.samples import Outcome, Population
from acf.terminal import counting
from acf.training.interrupt import Interrupted

# Read when ray is imported. It reports to nobody; and it does not, where it finds itself under `uv run`, send the
# working directory to all machines to build environments there.
SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
RETRIES = 3  # of one population
CONNECT_S = 5
BUSY_S = 60  # to wait for a worker that is on its way out


@contextmanager
def connected(address: str) -> Iterator[Runner]:
    """A runner on the cluster at this address (`HOST:PORT`, or `auto` for the one this machine belongs to)."""
    try:
        for name, value in SETTINGS.items():
            os.environ.setdefault(name, value)
        import ray
    except ImportError:
        raise AcfError("--ray needs the package ray: pip install 'acf-rl[sweep]'") from None
    help = "start one with `ray start --head`, or check the address"
    _check_answers(address, help)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        token = "; where it asks for a token, set RAY_AUTH_MODE=token here too"
        raise AcfError(f"no answer from Ray at {address} ({str(error).splitlines()[0]}): {help}{token}") from None
    jax.config.update("jax_platforms", "cpu")  # this machine's GPU is for Ray's workers; here there is little to do
    try:
        yield run_on_ray
    finally:
        ray.shutdown()


def run_on_ray(out: Path, populations: list[Population]) -> Iterator[tuple[Population, list[Outcome]]]:
    """As they come."""
    import ray
    import ray.exceptions

    gpus = 1 if ray.cluster_resources().get("GPU") else 0
    task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(_task)
    waiting: dict[Any, Population] = {task.remote(str(out.resolve()), p): p for p in populations}
    with counting("populations on Ray") as progress:
        progress(0, len(populations))
        while waiting:
            (first, *_), _ = ray.wait(list(waiting), num_returns=1)
            population = waiting.pop(first)
            try:
                yield population, ray.get(first)
            except ray.exceptions.RayTaskError as error:
                cause = getattr(error, "cause", None)
                raise (AcfError(str(cause)) if isinstance(cause, AcfError) else error) from None
            except ray.exceptions.RayError as error:
                reason = str(error).splitlines()[0]
                message = f"population {population.number} could not be finished on Ray ({reason})"
                raise AcfError(f"{message}; the same command goes on from what was saved") from None
            progress(len(populations) - len(waiting), len(populations))


def _task(out: str, population: Population) -> list[Outcome]:
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            return run_population(Path(out), population)
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
        except Interrupted as stop:
            os._exit(stop.exit_code)  # its state is saved; Ray sees a dead worker and begins the task elsewhere


def _check_answers(address: str, help: str) -> None:
    """Ray itself would try for many minutes, also where `auto` finds the address of a cluster that has died."""
    if address == "auto":
        from ray._private.services import canonicalize_bootstrap_address

        try:
            address = canonicalize_bootstrap_address("auto") or ""
        except ConnectionError:
            raise AcfError(f"there is no Ray cluster on this machine: {help}") from None
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise AcfError(f"--ray: expected HOST:PORT or auto, got {address!r}")
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise AcfError(f"there is no Ray cluster at {address} ({error}): {help}") from None
