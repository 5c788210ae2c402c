"""From what an environment shows to a frame: bytes, channels last, gray or of another size where asked."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Shaped, UInt8

from acf.data.checks import MAX_CHANNELS, MIN_SIDE, DataError

KEYS = ("image", "pixels")  # under which dictionaries hold their picture
LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)


class NoPicture(DataError):  # noqa: N818 (a state, not a fault)
    """The observation shows nothing; its rendering may."""


@dataclass(frozen=True)
class Picture:
    """How to make frames of observations; the same for every one of them."""

    gray: bool = False
    size: int | None = None
    """Height and width; None leaves them."""
    key: str | None = None
    channels_first: bool = False
    scale: float = 1.0
    """255 for pictures from 0 to 1."""

    def frame(self, observation: Any) -> UInt8[np.ndarray, "H W C"]:
        """A copy: environments write into their own arrays again."""
        found = np.asarray(observation if self.key is None else observation[self.key])
        if found.dtype != np.uint8:
            found = np.round(found * self.scale).astype(np.uint8)
        if found.ndim == 2:
            found = found[..., None]
        elif self.channels_first:
            found = np.moveaxis(found, 0, -1)
        if self.gray:
            found = to_gray(found)
        return np.array(found if self.size is None else resized(found, self.size), order="C")


def picture_of(space: Any, gray: bool = False, size: int | None = None) -> Picture:
    """How to make frames of this space's observations; says what is wrong with those that are no picture."""
    asked = Picture(gray, size)
    if hasattr(space, "spaces") and hasattr(space, "keys"):
        for key in KEYS:
            if key in space.spaces and _is_picture(space[key]):
                return replace(asked, key=key, **_layout(space[key]))
    elif _is_picture(space):
        return replace(asked, **_layout(space))
    raise NoPicture(
        f"observation: expected a picture of at least {MIN_SIDE} x {MIN_SIDE} pixels (or one under "
        f"{' or '.join(map(repr, KEYS))}), found {space}; take what the environment renders: --render, render=True"
    )


def _is_picture(space: Any) -> bool:
    shape = getattr(space, "shape", None) or ()
    if len(shape) == 4 and min(shape[1:3]) >= MIN_SIDE:
        raise DataError(
            f"observation: expected one picture, found a stack of them, {shape}; leave away the wrapper that stacks "
            "and say --gray --stack N (gray=True, stack=N)"
        )
    sides = shape if len(shape) == 2 else shape[1:] if _channels_first(shape) else shape[:2]
    return len(shape) in (2, 3) and min(sides) >= MIN_SIDE


def _channels_first(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 and shape[0] < MIN_SIDE <= min(shape[1:])


def _layout(space: Any) -> dict[str, Any]:
    if space.dtype == np.uint8:
        scale = 1.0
    elif space.dtype.kind == "f" and space.low.min() >= 0 and space.high.max() in (1, 255):
        scale = 255 / float(space.high.max())
    else:
        raise NoPicture(
            f"observation: expected bytes, or numbers from 0 to 1 or 255, found {space.dtype} "
            f"from {space.low.min()} to {space.high.max()}; give its space those bounds, or take what it renders: "
            "--render, render=True"
        )
    return {"channels_first": _channels_first(space.shape), "scale": scale}


def check_channels(channels: int, stack: int) -> None:
    if channels * stack > MAX_CHANNELS:
        raise DataError(
            f"frames: expected at most {MAX_CHANNELS} channels, found {stack} pictures of {channels}; "
            "make them gray (--gray, gray=True) or stack fewer"
        )


def to_gray(frame: UInt8[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "H W 1"]:
    if frame.shape[2] == 1:
        return frame
    if frame.shape[2] != 3:
        raise DataError(f"gray: expected a picture of 1 or 3 channels, found {frame.shape[2]}; leave --gray away")
    return np.round(frame @ LUMINANCE).astype(np.uint8)[..., None]


def resized(frame: Shaped[np.ndarray, "H W C"], size: int) -> UInt8[np.ndarray, "size size C"]:
    """A pixel is the mean of the area it covers: nothing thin is skipped, as it is by picking the nearest pixel.

    >>> checks = np.indices((64, 64)).sum(0)[..., None].astype(np.uint8) % 2 * 100
    >>> np.unique(resized(checks, 32)).tolist()
    [50]
    """
    from PIL import Image

    if frame.shape[:2] == (size, size):
        return frame
    if frame.shape[2] == 3:  # others might be taken for colours with opacity
        return np.asarray(Image.fromarray(np.ascontiguousarray(frame)).resize((size, size), Image.Resampling.BOX))
    channels = [Image.fromarray(np.ascontiguousarray(channel)) for channel in np.moveaxis(frame, -1, 0)]
    return np.stack([np.asarray(c.resize((size, size), Image.Resampling.BOX)) for c in channels], axis=-1)
