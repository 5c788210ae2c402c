"""The contract every method keeps, and how the trainer sees one: pure functions of arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from acf.nn.kernel import Kernel

Params = Any  # the model's parameters, a pytree of float32 arrays
Terms = dict[str, Float[Array, ""]]


@dataclass(frozen=True)
class Spec:
    """What a model is built for: the data's shapes and the networks' widths. Compile-time constants."""

    frame_shape: tuple[int, int, int]
    n_actions: int
    noop: int | None
    latents: int
    depth: int = 24
    """Channels of the encoder's first block; they double from block to block."""
    hidden: int = 256
    """Width of every hidden layer outside the convolutions."""
    bf16: bool = False
    """Encoder arithmetic in bfloat16; parameters, losses and optimiser stay in float32."""
    kernel: Kernel = "auto"
    """`pallas` for the GPU kernels, `xla` for plain JAX; `auto` takes the kernels where there is a GPU for them."""
    decoder: bool = True
    """Whether a method that can do without a decoder has one."""

    @property
    def dtype(self):
        return jnp.bfloat16 if self.bf16 else jnp.float32


class Batch(NamedTuple):
    x: UInt8[Array, "N H W C"]
    action: Int[Array, " N"]
    x_next: UInt8[Array, "N H W C"]
    epoch: Float[Array, ""]
    """Passes over the data so far, for terms that are ramped in."""


@dataclass(frozen=True)
class Method:
    """A method is one file that makes one of these.

    `model(spec, rngs=...)` is an `nnx.Module` with an `encode(frames)`; `hparams` a frozen dataclass of floats that has
    an `lr` and is a pytree (settings are traced: one program serves every setting); `loss(model, batch, key, hparams)`
    returns the scalar to minimise and every term of it, unweighted, by name. `extras(model, hparams)`, where a method
    learns more than an encoder, is that as a JSON-able dict: it is written beside the trained weights.
    """

    name: str
    model: Callable[..., nnx.Module]
    hparams: type
    loss: Callable[[Any, Batch, PRNGKeyArray, Any], tuple[Float[Array, ""], Terms]]
    scores: Callable[[Any, Array, Array], Float[Array, "N K A"]] | None = None
    """`scores(model, z_next, z)`: `∂E_k(z'_k, a, z) / ∂z'_k`, for methods with an energy a latent and action."""
    extras: Callable[[Any, Any], dict[str, Any]] | None = None
    nats: tuple[str, ...] = ()
    """The terms that are log-losses, in nats: their plain sum compares models whose weights of the terms differ."""
    needs_noop: bool = False
    """Whether data without an action that does nothing is refused before training."""

    def bind(self, spec: Spec) -> "Learner":
        """The method as pure functions for data of this shape. The module is split once, here."""
        graph = nnx.graphdef(nnx.eval_shape(lambda: self.model(spec, rngs=nnx.Rngs(0))))

        def init(key: PRNGKeyArray) -> Params:
            return nnx.state(self.model(spec, rngs=nnx.Rngs(key)))

        def loss(params: Params, batch: Batch, key: PRNGKeyArray, hparams: Any) -> tuple[Float[Array, ""], Terms]:
            return self.loss(nnx.merge(graph, params), batch, key, hparams)

        def encode(params: Params, frames: UInt8[Array, "N H W C"]) -> Float[Array, "N d"]:
            return nnx.merge(graph, params).encode(frames)

        def extras(params: Params, hparams: Any) -> dict[str, Any]:
            return self.extras(nnx.merge(graph, params), hparams) if self.extras else {}

        def scores(params: Params, z_next: Float[Array, "N K"], z: Float[Array, "N K"]) -> Float[Array, "N K A"]:
            assert self.scores is not None
            return self.scores(nnx.merge(graph, params), z_next, z)

        return Learner(init, loss, encode, extras, scores if self.scores else None)


class Learner(NamedTuple):
    init: Callable[[PRNGKeyArray], Params]
    loss: Callable[[Params, Batch, PRNGKeyArray, Any], tuple[Float[Array, ""], Terms]]
    encode: Callable[[Params, UInt8[Array, "N H W C"]], Float[Array, "N d"]]
    extras: Callable[[Params, Any], dict[str, Any]]
    scores: Callable[[Params, Float[Array, "N K"], Float[Array, "N K"]], Float[Array, "N K A"]] | None = None
