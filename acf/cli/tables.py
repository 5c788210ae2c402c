"""Scores as a person reads them in a terminal: every table ends with the oracle and chance."""

from typing import Any

MAIN = {
    "diag": "diag (1 is best)",
    "off_diag": "off-diag (0 is best)",
    "diag_controllable": "diag, controllable",
    "off_diag_controllable": "off-diag, controllable",
}
MORE = {
    "mcc_pearson": "MCC, Pearson",
    "mcc_spearman": "MCC, Spearman",
    "disentanglement": "DCI: D",
    "completeness": "DCI: C",
    "informativeness": "DCI: I",
}


def print_scores(scores: dict[str, Any]) -> None:
    from acf.terminal import console

    what = f"{scores['method']} on {scores['domain'] or 'its data'}"
    if "oracle" in scores:
        title = f"{what}: R² of latents and factors and 95 % intervals, held-out episodes"
        console.print(_table(scores, MAIN, title))
        console.print(_table(scores, MORE, "Other scores, 1 is best"))
    else:
        console.print(f"{what}: the data has no true factors, so there is no R² to give", soft_wrap=True)
    _print_found(scores)
    _print_sparsity(scores)


def _print_found(scores: dict[str, Any]) -> None:
    """What was found without the true factors, and how it does against them."""
    from acf.terminal import console, table

    members = [member for member in scores["members"] if "certificate" in member]
    if not members:
        return  # scored before there were certificates
    columns = {"diag": "diag", "diag_controllable": "diag, controllable", "off_diag_controllable": "off-diag, c."}
    rows = table(
        "", "certified", "one step", "factors", *columns.values(), "state exact", title="Factors found, no labels"
    )
    for member in members:
        found = member["certificate"]
        share = "–" if found["one_step"] is None else f"{found['one_step']:.3f}"
        of_factors = (_number(member.get("factors", {}).get(name)) for name in columns)
        exact = _number(member.get("exact", {}).get("state"))
        verdict = "yes" if found["certified"] else "no"
        rows.add_row(f"seed {member['seed']}", verdict, share, str(len(found["factors"])), *of_factors, exact)
    console.print(rows)
    for member in members[:1]:
        found = member["certificate"]
        why = "; ".join(found["factors"] if found["certified"] else found["because"])
        start = "certified:" if found["certified"] else "not certified, because"
        console.print(f"seed {member['seed']} is {start} {why}", soft_wrap=True, markup=False)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _table(scores: dict[str, Any], columns: dict[str, str], title: str):
    from acf.terminal import table

    rows = table("", *columns.values(), title=title)
    for member in scores["members"]:
        stopped = f", diverged at step {member['diverged_at']}" if member["diverged_at"] >= 0 else ""
        rows.add_row(f"seed {member['seed']}{stopped}", *(_cell(member, name) for name in columns))
    rows.add_section()
    if len(scores["members"]) > 1:
        rows.add_row("mean ± std", *(_mean_std(scores.get(name)) for name in columns))
    for name in ("oracle", "chance"):
        rows.add_row(name, *(_cell(scores[name], column) for column in columns))
    return rows


def _cell(code: dict[str, Any], name: str) -> str:
    if code.get(name) is None:  # not defined for this data, or not known yet when it was scored
        return "–"
    ends = code["intervals"].get(name)
    return f"{code[name]:.3f}" + (f"\n[dim]{ends[0]:.3f} – {ends[1]:.3f}[/]" if ends else "")


def _mean_std(value: dict[str, float] | None) -> str:
    return "–" if value is None else f"{value['mean']:.3f} ± {value['std']:.3f}"


def _print_sparsity(scores: dict[str, Any]) -> None:
    from acf.terminal import console

    actions = [member["actions"] for member in scores["members"] if "sparsity" in member["actions"]]
    if actions:
        own, chance = (", ".join(f"{a[name]:.3f}" for a in actions) for name in ("sparsity", "sparsity_chance"))
        line = f"1-sparsity of the score differences (1 is best): {own}; chance {chance}"
        console.print(line, soft_wrap=True)
