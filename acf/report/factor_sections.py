"""The section of the page about factors that were found without labels: verdict, words, what was counted."""

import re
from typing import Any

from acf.report.html import escape, table
from acf.report.look import PARTLY, Look

SHARES = {  # its name here, its best value, what it is a share of
    "one_step": ("one step", 1, "of the changes of the picture: one number changes, by one"),
    "no_step": ("no step", 0, "of the changes of the picture: no number changes"),
    "injective": ("told apart", 1, "of pairs of different pictures of one episode: their numbers differ"),
    "still": ("still", 1, "of pictures that stay as they are: they keep their numbers"),
    "along": ("along", 1, "of what each action changes in the latents: along one direction"),
}
CODE_SCORES = {
    "diag": "diag",
    "diag_controllable": "diag, controllable",
    "off_diag_controllable": "off-diag, controllable",
}
REASONS = 3  # that the verdict itself gives; the others are listed below it


def factors_found(look: Look) -> str:
    """Nothing where a run was scored before there were certificates."""
    judged = [n for n, member in enumerate(look.members) if "certificate" in member]
    if not judged:
        return ""
    against = "The true factors are used for nothing but the scores below. " if look.has_factors else ""
    details = "".join(
        f"<div class='member' data-member='{n}'>{_member(look, n, several=len(judged) > 1)}</div>" for n in judged
    )
    return (
        f"<div class='factors-found'><h3>Factors found without labels</h3>{_verdict(look, judged)}"
        "<p>Read from the latents by which action was taken and whether the picture changed, then judged on episodes "
        f"that training never saw. {against}What a certificate proves, and what it takes for granted: "
        f"<code>docs/lattice.md</code>.</p>{_seeds(look, judged)}{details}</div>"
    )


def _verdict(look: Look, judged: list[int]) -> str:
    if len(judged) == 1:
        return _of_seed(look, judged[0], "lead")
    certified = [found for found in (look.members[n]["certificate"] for n in judged) if found["certified"]]
    if not certified:
        return f"<p class='lead'><b>Not certified</b>: none of {len(judged)} seeds.</p>"
    counts = sorted({len(found["factors"]) for found in certified})
    number = _count(counts[0], "factor") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} factors"
    each = " each" if len(certified) > 1 and len(counts) == 1 else ""
    return f"<p class='lead'><b>Certified: {len(certified)} of {len(judged)} seeds</b>, with {number}{each}.</p>"


def _of_seed(look: Look, n: int, kind: str, start: str = "") -> str:
    """`Certified: 5 factors.`, or why not."""
    found = look.members[n]["certificate"]
    if found["certified"]:
        return f"<p class='{kind}'>{start}<b>Certified: {_count(len(found['factors']), 'factor')}</b>.</p>"
    because = [escape(_with_names(why, look.scores["action_names"])) for why in found["because"]]
    first, rest = "; ".join(because[:REASONS]), because[REASONS:]
    more = f"; and {_count(len(rest), 'more reason')}:" if rest else "."
    listed = f"<ul>{''.join(f'<li>{why}</li>' for why in rest)}</ul>" if rest else ""
    return f"<p class='{kind}'>{start}<b>Not certified</b>, because {first}{more}</p>{listed}"


def _with_names(why: str, action_names: list[str]) -> str:
    """A certificate knows actions by number only."""

    def named(match: re.Match[str]) -> str:
        a = int(match[1])
        return f"{match[0]} ({action_names[a]})" if a < len(action_names) else match[0]

    return re.sub(r"\baction (\d+)\b", named, why)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _seeds(look: Look, judged: list[int]) -> str:
    """A line a seed: the code of the factors beside the latents, oracle and chance below."""
    if not look.has_factors:
        return ""
    rows = []
    for member in (look.members[n] for n in judged):
        found, code = member["certificate"], member.get("factors", {})  # no code where nothing was found
        scores = [
            f"{_number(code.get(name))} <small>latents {_number(member.get(name))}</small>" for name in CODE_SCORES
        ]
        exact = None if found["kind"] == "directions" else member.get("exact", {}).get("state")
        verdict = ("found", "yes") if found["certified"] else ("missed", "no")
        rows.append(
            (
                f"seed {member['seed']}",
                "<span class='state {}'>{}</span>".format(*verdict),
                _percent(found["one_step"]),
                str(len(found["factors"])),
                *scores,
                _percent(exact),
            )
        )
    for kind in ("oracle", "chance"):
        scores = (_number(look.scores[kind].get(name)) for name in CODE_SCORES)
        rows.append((kind, "", "", "", *scores, ""))
    return table(("", "certified", "one step", "factors", *CODE_SCORES.values(), "state exact"), rows)


def _member(look: Look, n: int, *, several: bool) -> str:
    member = look.members[n]
    verdict = _of_seed(look, n, "verdict", f"Seed {member['seed']}: ") if several else ""
    counted = f"{_shares(member['certificate'])}{_exact(look, member)}" if look.has_factors else ""
    return f"{verdict}{_words(look, member)}{counted}"


def _words(look: Look, member: dict[str, Any]) -> str:
    """Numbered as in the code, by which the reasons call them."""
    found = member["certificate"]
    if not found["factors"]:
        return ""
    doubt = "" if found["certified"] else "<p>What was read all the same, and may be wrong:</p>"
    lines = (f"<li>{escape(words)}{_true_name(look, member, k)}</li>" for k, words in enumerate(found["factors"]))
    return f"{doubt}<ol class='words' start='0'>{''.join(lines)}</ol>"


def _true_name(look: Look, member: dict[str, Any], k: int) -> str:
    """Of the true factor that a found one stands for, where it tells most of it."""
    if not look.has_factors or "factors" not in member:
        return ""
    factor = member["factors"]["matching"][k]
    if factor < 0 or member["factors"]["r2"][k][factor] < PARTLY:
        return ""
    return f" <small>→ {escape(look.factor_names[factor])}</small>"


def _shares(found: dict[str, Any]) -> str:
    rows = []
    for name, (short, best, meaning) in SHARES.items():
        if found.get(name) is not None:  # where there are no levels nothing but `along` is known
            low, high = found["intervals"][name]
            ends = f"{_percent(low)} to {_percent(high)}"
            rows.append((short, _percent(found[name]), ends, f"{best:.0%}", f"<small>{meaning}</small>"))
    return table(("counted", "share", "95 % interval", "best", ""), rows) if rows else ""


def _exact(look: Look, member: dict[str, Any]) -> str:
    """How often each true factor that actions control is told; coordinates tell no value."""
    exact = member.get("exact")
    if exact is None or member["certificate"]["kind"] == "directions":
        return ""
    names = [name for name, own in zip(look.factor_names, look.scores["controllable"], strict=True) if own]
    rows = [(escape(name), _percent(share)) for name, share in zip(names, exact["factors"], strict=True)]
    rows.append(("all of them at once", _percent(exact["state"])))
    return table(("true factor that actions control", "held-out frames in which it is told exactly"), rows)


def _percent(share: float | None) -> str:
    """Never rounded to all or nothing.

    >>> _percent(1.0), _percent(0.99996), _percent(0.8), _percent(None)
    ('100%', '99.99%', '80.00%', '–')
    """
    if share is None:
        return "–"
    return f"{share:.0%}" if share in (0, 1) else f"{min(max(share, 0.0001), 0.9999):.2%}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
