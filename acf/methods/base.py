"""The contract every method keeps, and how the trainer sees one: pure functions of arrays."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from acf.nn import PlacesEncoder, ResidualEncoder
from acf.nn.kernel import Kernel

Params = Any  # the model's parameters, a pytree of float32 arrays
Encoders = Literal["places", "residual"]
Terms = dict[str, Float[Array, ""]]


@dataclass(frozen=True)
class Spec:
    """What a model is built for: the data's shapes and the networks' widths. Compile-time constants."""

    frame_shape: tuple[int, int, int]
    n_actions: int
    noop: int | None
    latents: int
    depth: int = 24
    """Channels of the first block of the residual encoder and decoder; they double from block to block."""
    hidden: int = 256
    """Width of every hidden layer outside the convolutions; a place's features are half as many."""
    bf16: bool = False
    """Encoder arithmetic in bfloat16; parameters, losses and optimiser stay in float32."""
    kernel: Kernel = "auto"
    """Of the energies: `pallas` for GPU kernels, `xla` for plain JAX; `auto` takes the kernels where there is a GPU for
    them."""
    decoder: bool = True
    """Whether a method that can do without a decoder has one."""
    encoder: Encoders = "places"
    """`places` looks at each place alone and adds up (`acf.nn.places`); `residual` is the paper's."""

    @property
    def dtype(self):
        return jnp.bfloat16 if self.bf16 else jnp.float32

    def make_encoder(
        self, latents: int | None = None, *, bounded: bool = True, rngs: nnx.Rngs
    ) -> PlacesEncoder | ResidualEncoder:
        """From frames to so many latents, as asked of the run; `bounded` ones end in tanh."""
        K = self.latents if latents is None else latents
        own = {"bounded": bounded, "dtype": self.dtype, "rngs": rngs}
        if self.encoder == "residual":
            return ResidualEncoder(self.frame_shape, K, depth=self.depth, hidden=self.hidden, **own)
        return PlacesEncoder(self.frame_shape, K, width=self.hidden // 2, **own)


class Batch(NamedTuple):
    x: UInt8[Array, "N H W C"]
    action: Int[Array, " N"]
    x_next: UInt8[Array, "N H W C"]
    epoch: Float[Array, ""]
    """Passes over the data so far, for terms that are ramped in."""
    progress: Float[Array, ""] | float = 0.0
    """The same as a share of the whole training."""
    known: Any = ()
    """What the method's sampler knows of the data."""


class Sampler(NamedTuple):
    """How batches are drawn, for methods that need others than those of a shuffle."""

    know: Callable[[Any], Any]
    """Once, of the training transitions: a pytree of arrays, for `draw` and for the loss (`Batch.known`)."""
    draw: Callable[[Any, PRNGKeyArray, int], Int[Array, " n"]]
    """The transitions of one batch of n."""
    multiple_of: int = 1
    """What n must be a multiple of."""


class Recipe(NamedTuple):
    """How a method is trained, where it differs from AdamW on shuffled transitions."""

    sampler: Sampler | None = None
    """None: every transition once an epoch, shuffled."""
    schedule: Callable[[Float[Array, ""]], Float[Array, ""]] = jnp.ones_like
    """The learning rate at each share of the training done, as a multiple of `lr`."""
    clip: float = math.inf
    """Largest norm of a gradient; what is longer is shortened to it."""


USUAL = Recipe()


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
    recipe: Recipe = USUAL
    latents: int | None = None
    """How many to ask for where nobody says, for a method that finds how many are needed. None: as many as factors."""
    finds_factors: bool = False
    """Whether its latents are made for certified factors: seeds are then trained until one is certified."""
    context: int = 0
    """How many of the latents, the last ones, stand for what an episode keeps."""
    nats: tuple[str, ...] = ()
    """The terms that are log-losses, in nats: their plain sum compares models whose weights of the terms differ."""
    needs_noop: bool = False
    """Whether data without an action that does nothing is refused before training."""

    def bind(self, spec: Spec) -> "Learner":
        """The method as pure functions for data of this shape. The module is split once, here."""
        graph = nnx.graphdef(nnx.eval_shape(lambda: self.model(spec, rngs=nnx.Rngs(0))))

        def init(key: PRNGKeyArray, mean: Float[Array, "H W C"] | None = None) -> Params:
            model = self.model(spec, rngs=nnx.Rngs(key))
            for _, part in nnx.iter_graph(model):
                if isinstance(part, PlacesEncoder) and mean is not None:
                    part.mean[...] = mean
            return nnx.state(model)

        def loss(params: Params, batch: Batch, key: PRNGKeyArray, hparams: Any) -> tuple[Float[Array, ""], Terms]:
            return self.loss(nnx.merge(graph, params), batch, key, hparams)

        def encode(params: Params, frames: UInt8[Array, "N H W C"]) -> Float[Array, "N d"]:
            return nnx.merge(graph, params).encode(frames)

        def extras(params: Params, hparams: Any) -> dict[str, Any]:
            return self.extras(nnx.merge(graph, params), hparams) if self.extras else {}

        def scores(params: Params, z_next: Float[Array, "N K"], z: Float[Array, "N K"]) -> Float[Array, "N K A"]:
            assert self.scores is not None
            return self.scores(nnx.merge(graph, params), z_next, z)

        return Learner(init, loss, encode, extras, scores if self.scores else None, self.recipe)


class Learner(NamedTuple):
    init: Callable[..., Params]
    """`init(key)`, or `init(key, mean)` with the mean picture of the data."""
    loss: Callable[[Params, Batch, PRNGKeyArray, Any], tuple[Float[Array, ""], Terms]]
    encode: Callable[[Params, UInt8[Array, "N H W C"]], Float[Array, "N d"]]
    extras: Callable[[Params, Any], dict[str, Any]]
    scores: Callable[[Params, Float[Array, "N K"], Float[Array, "N K"]], Float[Array, "N K A"]] | None = None
    recipe: Recipe = USUAL
