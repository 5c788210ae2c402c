"""The run directory: what lies where, and reading it back."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

from acf.data.transitions import Transitions
from acf.errors import AcfError
from acf.factors import Factors
from acf.methods import get
from acf.methods.base import Learner, Params, Spec
from acf.training import checkpoint
from acf.training.config import TEST_FRACTION, Config

ENCODE_BLOCK = 1024  # frames at a time
REPORT = "report.html"


@dataclass(frozen=True)
class RunDir:
    """Paths of a run. A run is finished when every member's model is there."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def state(self) -> Path:
        return self.path / "state" / "state.safetensors"

    @property
    def scores(self) -> Path:
        return self.path / "scores.json"

    @property
    def report(self) -> Path:
        return self.path / REPORT

    @property
    def report_figures(self) -> Path:
        return self.path / "report-figures"

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def restarts(self) -> Path:
        """Runs of single seeds or populations, from which this one is put together (`acf.study.restarts`)."""
        return self.path / "restarts"

    def model(self, member: int) -> Path:
        return self.path / "members" / str(member) / "model.safetensors"

    def extras(self, member: int) -> Path:
        """What the method learned beside the encoder, where it has such (`Method.extras`)."""
        return self.path / "members" / str(member) / "extras.json"

    def factors(self, member: int) -> Path:
        """How factors are read from the member's latents, once they were looked for (`acf.factors`)."""
        return self.path / "members" / str(member) / "factors.json"

    def read_config(self) -> Config:
        if not self.config.exists():
            raise AcfError(f"{self.path} is not a run directory: it has no config.json. `acf train` makes one.")
        try:
            found = json.loads(self.config.read_text())
        except ValueError as error:
            raise AcfError(f"{self.config} is not JSON ({error}); the run is damaged") from None
        return Config.from_json(found, self.config)

    def read_finished(self) -> Config:
        config = self.read_config()
        if not self.is_finished(config):
            again = "run the same `acf train` or `acf run` command again to go on"
            raise AcfError(f"{self.path} is not finished: {again}")
        return config

    def is_finished(self, config: Config) -> bool:
        return all(self.model(n).exists() for n in range(len(config.members)))

    def looks_finished(self) -> bool:
        return self.config.exists() and self.is_finished(self.read_config())

    def forget_results(self) -> None:
        """Removes what a longer training makes anew. The models go last: without them the run is not finished."""
        for file in (self.scores, self.report):
            file.unlink(missing_ok=True)
        for folder in (self.report_figures, self.path / "members"):
            if folder.exists():
                shutil.rmtree(folder)

    def open_data(self, config: Config) -> Transitions:
        where = self.path / config.data["path"]
        if not where.exists():
            raise AcfError(f"the data of {self.path} is gone: expected it in {where.resolve()}. Put it back there.")
        return Transitions.open(where, noop=config.spec.noop)

    def split(self, data: Transitions) -> tuple[Transitions, Transitions]:
        """Training and test episodes: the same two whenever this data is split."""
        return data.split(test=TEST_FRACTION, seed=0)


Frames = UInt8[np.ndarray, "*N H W C"] | UInt8[Array, "*N H W C"] | Sequence[UInt8[np.ndarray, "H W C"]]


@dataclass(frozen=True)
class Trained:
    """A member of a finished run: an encoder to put under an agent."""

    config: Config
    learner: Learner
    params: Params
    seed: int
    diverged_at: int
    """Step at which training stopped being finite, or -1."""
    found: Factors | None = None
    """How factors are read from the latents, with the certificate, once they were looked for."""

    def encode(self, frames: Frames) -> Float[np.ndarray, "*N d"]:
        """Latents of one frame [d] or of any number of them [N, d]."""
        given = np.asarray(frames)
        self._check(given)
        if given.ndim == 3:
            return _encode_in_blocks(self.learner, self.params, given[None])[0]
        return _encode_in_blocks(self.learner, self.params, given)

    def apply(self, frames: UInt8[Array, "*N H W C"]) -> Float[Array, "*N d"]:
        """`encode` as a pure function of arrays, for programs of your own: under `jax.jit`, `jax.vmap` and `scan`."""
        self._check(frames)
        if frames.ndim == 3:
            return self.learner.encode(self.params, frames[None])[0]
        return self.learner.encode(self.params, frames)

    def factors(self, frames: Frames) -> Int[np.ndarray, "*N F"] | Float[np.ndarray, "*N F"]:
        """Values of the controllable factors of one frame [F] or of many [N, F]: whole numbers, where it has levels.

        Ask `found.certificate` whether they are right, and `found.describe(...)` which action moves which.
        """
        if self.found is None:
            raise AcfError("the factors of this run were not looked for yet: `acf evaluate RUN` does that")
        z = self.controllable(self.encode(frames))
        values = self.found.read(np.atleast_2d(z).astype(np.float64))
        return values if z.ndim == 2 else values[0]

    def controllable(self, z: Float[np.ndarray, "*N d"]) -> Float[np.ndarray, "*N K"]:
        """The latents less those that stand for what an episode keeps."""
        return z[..., : z.shape[-1] - get(self.config.method).context]

    def _check(self, frames: np.ndarray | Array) -> None:
        shape = self.config.spec.frame_shape
        if frames.dtype != np.uint8 or frames.ndim not in (3, 4) or frames.shape[-3:] != shape:
            one = ", ".join(map(str, shape))
            raise AcfError(f"expected frames uint8[N, {one}] or one of uint8[{one}], got {frames.dtype}{frames.shape}")

    def scores(
        self, z_next: Float[np.ndarray, "N d"], z: Float[np.ndarray, "N d"]
    ) -> Float[np.ndarray, "N d A"] | None:
        """`∂E_k(z'_k, a, z) / ∂z'_k` of each transition, latent and action; None for a method without such energies."""
        if self.learner.scores is None:
            return None
        return np.asarray(_scores(self.learner.scores, self.params, z_next, z))


def load(run: str | Path, member: int = 0) -> Trained:
    """Open one member of a finished run.

    `acf.load("runs/grid2d").encode(frames)` is the whole use of it; members are counted from 0 in the order of their
    seeds on the command line.
    """
    directory = RunDir(Path(run))
    config = directory.read_finished()
    if not 0 <= member < len(config.members):
        raise AcfError(f"{run} has members 0 to {len(config.members) - 1}, got {member}")
    # The kernels were asked for where it was trained; here there may be no GPU for them.
    spec = replace(config.spec, kernel="auto") if config.spec.kernel == "pallas" else config.spec
    learner = _learner(config.method, spec)
    key = jax.eval_shape(jax.random.key, 0)  # a real one would be made on the device, by a program to compile
    params, about = checkpoint.load(directory.model(member), jax.eval_shape(learner.init, key))
    on_device = jax.device_put(params)  # once, not with every call
    return Trained(config, learner, on_device, about["seed"], about["diverged_at"], _read_factors(directory, member))


def _read_factors(directory: RunDir, member: int) -> Factors | None:
    file = directory.factors(member)
    if not file.exists():
        return None
    try:
        return Factors.from_json(json.loads(file.read_text()))
    except (ValueError, AcfError) as error:
        raise AcfError(f"{file} is damaged ({error}); remove it, and `acf evaluate` makes it anew") from None


def _encode_in_blocks(
    learner: Learner, params: Params, frames: UInt8[np.ndarray, "N H W C"]
) -> Float[np.ndarray, "N d"]:
    """Blocks are filled up to a power of two: a program for each of these, and few frames cost little."""
    size = min(ENCODE_BLOCK, 1 << max(len(frames) - 1, 0).bit_length())
    out = []
    for first in range(0, max(len(frames), 1), size):
        block = frames[first : first + size]
        padding = [(0, size - len(block))] + [(0, 0)] * 3
        z: Array = _encode(learner.encode, params, np.pad(block, padding))
        out.append(np.asarray(z)[: len(block)])
    return np.concatenate(out)


@cache
def _learner(method: str, spec: Spec) -> Learner:
    """The same functions for every member of a run, so that `encode` is compiled once."""
    return get(method).bind(spec)


# A GPU would take longer to choose among kernels for these than to run any of them. Other devices take no notice.
_jit = partial(jax.jit, static_argnums=0, compiler_options={"xla_gpu_autotune_level": 0})
_encode = _jit(lambda encode, params, frames: encode(params, frames))
_scores = _jit(lambda scores, params, z_next, z: scores(params, z_next, z))
