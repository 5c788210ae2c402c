"""Frames as pictures: any number of channels, any size, shown as small RGB."""

import base64
import io

import numpy as np
from jaxtyping import Float, UInt8

MAX_SIDE = 64  # larger frames are shrunk: a page holds hundreds of them


def to_rgb(frames: UInt8[np.ndarray, "*n H W C"]) -> UInt8[np.ndarray, "*n h w 3"]:
    """Grey for one channel, blue left dark for two, the first three of four; shrunk to at most `MAX_SIDE` pixels."""
    channels = frames.shape[-1]
    if channels == 1:
        frames = np.repeat(frames, 3, axis=-1)
    elif channels == 2:
        frames = np.concatenate([frames, np.zeros_like(frames[..., :1])], axis=-1)
    return _shrink(frames[..., :3])


def _shrink(frames: UInt8[np.ndarray, "*n H W 3"]) -> UInt8[np.ndarray, "*n h w 3"]:
    *n, H, W, C = frames.shape
    by = -(-max(H, W) // MAX_SIDE)
    if by == 1:
        return frames
    h, w = H // by, W // by
    blocks = frames[..., : h * by, : w * by, :].reshape(*n, h, by, w, by, C)
    return blocks.mean(axis=(-4, -2)).astype(np.uint8)


def stretch(means: Float[np.ndarray, "*n h w 3"]) -> UInt8[np.ndarray, "*n h w 3"]:
    """Mean frames with their darkest value black and their brightest white: a blob averaged over places is dim."""
    low, high = means.min(), means.max()
    return ((means - low) * (255 / max(high - low, 1e-6))).round().astype(np.uint8)


def png(picture: UInt8[np.ndarray, "h w 3"]) -> bytes:
    from matplotlib.image import imsave

    file = io.BytesIO()
    imsave(file, np.ascontiguousarray(picture), format="png")
    return file.getvalue()


def data_uri(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
