"""Sections of the page about what the latents hold, and about how the run was made."""

import json

import numpy as np

from acf.report.frames import data_uri, png, stretch
from acf.report.html import escape, table
from acf.report.look import Look, latent_label, latent_order


def traversals(look: Look) -> str:
    members = "".join(
        f"<div class='member' data-member='{n}'>{_stage(look)}{_strips(look, n)}</div>"
        for n in range(len(look.members))
    )
    frames = "".join(f"<img src='{data_uri(png(frame))}' alt='a held-out frame'>" for frame in look.gallery)
    return (
        f"<h3>What it sees</h3><div class='gallery'>{frames}</div>"
        "<h3>What each latent holds</h3><p>Real frames from held-out episodes, from low to high values of one latent: "
        "above their mean (brightness stretched), below a random one. What changes along a row is what the latent "
        "holds; what blurs or jumps about is what it ignores. "
        "<span class='needs-script'>Choose a latent and slide.</span></p>"
        f"{members}"
    )


def _stage(look: Look) -> str:
    """Where a script shows one step of one latent in large."""
    track = "<span class='track'><i class='band'></i><i class='mark'></i></span>"
    gauges = "".join(
        f"<div class='factor' data-factor='{j}'><span>true {escape(name)}</span>{track}<output></output></div>"
        for j, name in enumerate(look.factor_names)
        if look.factors is not None
    )
    return (
        "<div class='stage needs-script'><div class='pictures'><canvas class='mean' aria-label='mean frame'></canvas>"
        "<canvas class='samples' aria-label='random frames'></canvas></div><div class='dials'>"
        "<div class='buttons' role='group' aria-label='latent'></div>"
        "<label class='slide'><span>latent value</span><input type='range' class='slider' min='0' step='1' value='0'>"
        f"<output class='value'></output></label>{gauges}</div></div>"
    )


def _strips(look: Look, member: int) -> str:
    all_of = look.traversals[member]
    low = high = np.zeros(0)
    if look.factors is not None:
        low, high = look.factors.min(axis=0), look.factors.max(axis=0)
    bright = np.split(
        stretch(np.concatenate([t.means for t in all_of])), np.cumsum([len(t.values) for t in all_of])[:-1]
    )
    figures = []
    for k in latent_order(look.members[member], look.n_latents):
        t = all_of[k]
        steps, samples, h, w = t.samples.shape[:4]
        sheet = np.concatenate([bright[k][:, None], t.samples], axis=1)  # [B, 1 + S, h, w, 3]
        picture = sheet.transpose(1, 2, 0, 3, 4).reshape((1 + samples) * h, steps * w, 3)
        about = {
            "values": t.values.round(3).tolist(),
            "counts": t.counts.tolist(),
            "size": [w, h, samples],
            "means": [] if t.factor_means is None else t.factor_means.round(3).tolist(),
            "stds": [] if t.factor_stds is None else t.factor_stds.round(3).tolist(),
            "low": low.round(3).tolist(),
            "high": high.round(3).tolist(),
            "own": look.members[member]["matching"][k] if look.has_factors else -1,
        }
        style = f"--steps:{steps};aspect-ratio:{steps * w}/{2 * h};max-width:{steps * max(w, 80)}px"
        ends = f"<small>from {t.values[0]:.2f} to {t.values[-1]:.2f}</small>"
        figures.append(
            f"<figure class='latent' data-latent='{k}' data-about='{escape(json.dumps(about))}'>"
            f"<figcaption>{escape(latent_label(look, member, k))}<br>{ends}</figcaption>"
            f"<div class='strip' style='{style}'>"
            f"<img alt='frames from low to high values of latent z{k}' src='{data_uri(png(picture))}'></div></figure>"
        )
    return f"<div class='strips'>{''.join(figures)}</div>"


def settings(look: Look) -> str:
    rows = [(escape(name), _plain(value)) for name, value in look.settings.items()]
    return f"<details><summary>How this run was made</summary>{table(['setting', ''], rows)}</details>"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{escape(name)}&nbsp;{_plain(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return "; ".join(map(_plain, value))
    return escape(f"{value:g}" if isinstance(value, float) else value)
