"""Factors found without labels, on hand-made scores: the verdict first, then words and what was counted."""

import re

import pytest
from looks import add_found, certificate, make_look
from test_page import parse

from acf.report.factor_sections import factors_found
from acf.report.page import draw, page

ONE = (7,)
WHY = "only 80.5% of what action 1 (grow) changes is one step (needs 97%)"


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<.*?>", " ", text)).strip()


def lead(look) -> str:
    found = re.search(r"<p class='lead'>(.*?)</p>", factors_found(look))
    assert found is not None
    return re.sub(r"<.*?>", "", found[1])


def rows(text: str, first: str) -> dict[str, list[str]]:
    """Of the table whose first column is called so, by the name of each row."""
    (table,) = re.findall(rf"<table class='plain'><thead><tr><th scope='col'>{first}</th>.*?</table>", text)
    lines = re.findall(r"<tr><th scope='row'>(.*?)</th>(.*?)</tr>", table)
    return {name: [plain(cell) for cell in re.findall(r"<td>(.*?)</td>", cells)] for name, cells in lines}


def test_certified():
    look = add_found(make_look(seeds=ONE), certificate(True))
    text = factors_found(look)
    assert lead(look) == "Certified: 2 factors."
    assert "may be wrong" not in text
    words = re.findall(r"<li>(.*?)</li>", text)
    assert words == ["moved by grow; 5 levels <small>→ hue</small>", "moved by paint; cycle of 4 <small>→ size</small>"]
    assert rows(text, "") == {
        "seed 7": ["yes", "99.80%", "2", "0.987 latents 0.000", "0.200 latents 0.200", "0.300 latents 0.300", "87.50%"],
        "oracle": ["", "", "", "0.000", "0.200", "0.300", ""],
        "chance": ["", "", "", "0.000", "0.200", "0.300", ""],
    }


def test_what_was_counted():
    counted = rows(factors_found(add_found(make_look(seeds=ONE), certificate(True))), "counted")
    assert {name: row[:3] for name, row in counted.items()} == {
        "one step": ["99.80%", "99.70% to 99.90%", "100%"],
        "no step": ["0.10%", "0% to 0.20%", "0%"],
        "told apart": ["99.99%", "99.90% to 100%", "100%"],  # 0.99999 is not all
        "still": ["100%", "99.90% to 100%", "100%"],
        "along": ["97.00%", "96.90% to 97.10%", "100%"],
    }


def test_how_often_each_true_factor_is_told():
    """Of those that actions control: `is_open` is not asked for."""
    text = factors_found(add_found(make_look(seeds=ONE), certificate(True)))
    told = rows(text, "true factor that actions control")
    assert told == {"size": ["88.50%"], "hue": ["100%"], "all of them at once": ["87.50%"]}


def test_not_certified_says_why():
    look = add_found(make_look(seeds=ONE), certificate(False))
    assert lead(look) == f"Not certified, because {WHY}."
    assert "What was read all the same, and may be wrong:" in factors_found(look)
    assert "moved by grow; 5 levels" in factors_found(look)


def test_many_reasons_are_listed_below():
    found = certificate(False, because=[f"reason {n}" for n in range(5)], factors=[])
    look = add_found(make_look(seeds=ONE), found)
    assert lead(look) == "Not certified, because reason 0; reason 1; reason 2; and 2 more reasons:"
    assert re.findall(r"<li>(.*?)</li>", factors_found(look)) == ["reason 3", "reason 4"]


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([True, True], "Certified: 2 of 2 seeds, with 2 factors each."),
        ([True, False], "Certified: 1 of 2 seeds, with 2 factors."),
        ([False, False], "Not certified: none of 2 seeds."),
    ],
)
def test_several_seeds(verdicts, said):
    look = add_found(make_look(seeds=(7, 3)), *map(certificate, verdicts))
    text = factors_found(look)
    assert lead(look) == said
    assert [row[0] for row in rows(text, "").values()] == [*("yes" if v else "no" for v in verdicts), "", ""]
    own = re.findall(r"<p class='verdict'>(.*?)</p>", text)
    reasons = {True: "Certified: 2 factors.", False: f"Not certified, because {WHY}."}
    assert [plain(one).replace(" .", ".").replace(" ,", ",") for one in own] == [
        f"Seed {seed}: {reasons[v]}" for seed, v in zip((7, 3), verdicts, strict=True)
    ]


def test_seeds_with_different_numbers_of_factors():
    look = add_found(make_look(seeds=(7, 3)), certificate(True), certificate(True, factors=["a", "b", "c"]))
    for member in look.members:
        del member["factors"]
    assert lead(look) == "Certified: 2 of 2 seeds, with 2 to 3 factors."


def test_without_true_factors_verdict_and_words_only():
    look = add_found(make_look(seeds=ONE, factors=False), certificate(True))
    text = factors_found(look)
    assert lead(look) == "Certified: 2 factors."
    assert "<li>moved by grow; 5 levels</li>" in text
    assert "<table" not in text
    assert "true factors" not in text.lower()


def test_directions():
    """No levels, no shares but one; coordinates, which tell no value."""
    nothing = dict.fromkeys(("one_step", "no_step", "injective", "still"))
    why = "moves have no levels that could be counted; 95% of what actions change is along one direction"
    found = certificate(False, kind="directions", because=[why], factors=[], **nothing)
    text = factors_found(add_found(make_look(seeds=ONE), found))
    assert rows(text, "")["seed 7"][:3] == ["no", "–", "0"]
    assert rows(text, "")["seed 7"][-1] == "–"
    assert list(rows(text, "counted")) == ["along"]
    assert "told exactly" not in text


def test_no_code_where_nothing_was_found():
    look = add_found(make_look(seeds=ONE), certificate(False, factors=[], because=["no steps were found"]))
    del look.members[0]["factors"]
    assert rows(factors_found(look), "")["seed 7"][3] == "– latents 0.000"


def test_absent_where_it_was_scored_before():
    assert factors_found(make_look()) == ""
    assert "Factors found without labels" not in parse(make_look(method="lattice"))[1].said


@pytest.mark.parametrize(("method", "first"), [("lattice", True), ("acf", False)])
def test_place_on_the_page(method, first):
    """Below the cards; before the latents where the run was made for it."""
    text, _ = parse(add_found(make_look(method=method, seeds=ONE), certificate(True)))
    cards, found, latents = (
        text.index(part) for part in ("<div class='cards'>", "<div class='factors-found'>", "What it sees")
    )
    assert cards < found
    assert (found < latents) == first
    assert found < text.index("<h3>All scores</h3>")


def test_is_escaped():
    words = ["moved by <i>a</i> & 'b'; 2 levels"]
    look = make_look(seeds=(7, 3))
    look.scores["action_names"] = ["stay", "<u>grow</u>", "paint"]
    look.scores["factor_names"] = ["size", "<s>hue</s>", "is_open"]
    why = ["<b>no</b>", "action 1 is bad", "c", "<em>d</em>"]
    add_found(look, certificate(True, factors=words), certificate(False, factors=words, because=why))
    text, _ = page([look], {look.name: draw(look)})
    for tag in ("<i>a", "<u>", "<s>", "<b>no", "<em>d"):
        assert tag not in text
    assert "action 1 (&lt;u&gt;grow&lt;/u&gt;) is bad" in text
