"""Latents of networks that learned nothing, and of a range and scale of their own."""

from functools import partial

import jax
import numpy as np
import pytest
from flax import nnx
from hand_made import exact, found_in, latents, pictures, world

from acf.nn import PlacesEncoder

TRANSITIONS = 6_000


@partial(jax.jit, static_argnums=0)
def encode(graph, state, frames):
    return nnx.merge(graph, state).seen(frames).z


@pytest.mark.parametrize("name", ["taxi", "doorkey"])
@pytest.mark.parametrize("bounded", [True, False])
def test_untrained_network(name, bounded):
    one = world(name, TRANSITIONS)
    net = PlacesEncoder((32, 32, 3), 12, width=16, bounded=False, rngs=nnx.Rngs(0))
    graph, state = nnx.split(net)
    frames = pictures(name, TRANSITIONS)
    z = np.concatenate([np.asarray(encode(graph, state, block)) for block in np.split(frames, 4)]).astype(float)
    assert not found_in(one, np.tanh(z) if bounded else z).certificate.certified


@pytest.mark.parametrize("name", ["fourrooms", "taxi"])
def test_squeezed_into_a_tanh(name):
    """Levels near the ends lie closer together: certified or not, a certificate never is wrong."""
    one = world(name)
    z = np.tanh(latents(one, one.factors - one.factors.mean(0), units=0.1, noise=0.002, constant=0.0))
    found = found_in(one, z)
    assert exact(found, one, z) or not found.certificate.certified
