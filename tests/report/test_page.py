"""The page as text: whole, self-contained, and honest about what it cannot show."""

import re
from html.parser import HTMLParser

import pytest
from looks import NAMES, make_look

from acf.report.page import draw, page
from acf.report.score_sections import summary

VOID = {"meta", "img", "br", "input"}


class Checker(HTMLParser):
    """Tags close in order; what is fetched and what is said is kept."""

    def __init__(self):
        super().__init__()
        self.open, self.sources, self.text, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.sources += [attributes[name] for name in ("src", "href") if name in attributes]
        self.ids += [attributes["id"]] if "id" in attributes else []
        if tag == "img":
            assert "alt" in attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    @property
    def said(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.text))

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text.append(data)


def parse(*looks) -> tuple[str, Checker]:
    text, _ = page(looks, {look.name: draw(look) for look in looks})
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    return text, checker


@pytest.fixture(scope="module")
def one():
    return parse(make_look())


def test_nothing_is_fetched(one):
    text, checker = one
    assert checker.sources
    assert all(source.startswith(("data:", "#")) for source in checker.sources)
    assert "default-src 'none'" in text
    assert "{{" not in text
    assert not re.search(r"url\((?!data:)", text)


def test_says_what_was_learned(one):
    _, checker = one
    # the mean over the two seeds is 0.8: neither found nor missed
    assert "acf on toy" in checker.said
    assert "0 of 3 factors found." in checker.said
    for name in NAMES:
        assert name in checker.said


def test_copies_are_not_called_single():
    look = make_look(seeds=(7,))
    names, (member,) = look.scores["factor_names"], look.scores["members"]
    member["r2"] = [[0.0, 1.0, 0.0]] * 2 + [[1.0, 0.0, 0.0]]
    member["matching"] = [1, 2, 0]
    lead = summary(look)
    assert "2 of 3 factors found." in lead
    assert f"A single latent holds <b>{names[0]}</b>. Several latents hold <b>{names[1]}</b>." in lead


def test_oracle_and_chance_stand_beside_the_scores(one):
    text, _ = one
    cards = re.findall(r"<div class='card'><p class='label'>(.*?)</p>.*?<p class='levels'>(.*?)</p>", text)
    assert [label for label, _ in cards] == ["diag", "off-diag", "diag, controllable", "1-sparsity"]
    for label, levels in cards:
        assert ("ideal 1.000" if label == "1-sparsity" else "oracle") in levels
        assert "chance" in levels
    assert "data-heat='r2-oracle'" in text
    assert "data-heat='r2-chance'" in text


def test_without_true_factors_it_says_why():
    text, checker = parse(make_look(factors=False))
    assert "This data has no true factors, so there is nothing to score the latents against" in checker.said
    assert "data-heat='r2" not in text
    assert "data-latent='0'" in text
    assert "data-heat='score-difference-member0'" in text


def test_without_energies_it_says_why():
    text, checker = parse(make_look(method="msa", energies=False))
    assert "The method msa has no energy for each latent and action" in checker.said
    assert "score-difference" not in text
    assert "data-heat='movement-member0'" in text


def test_learned_graphs_are_shown_for_each_member():
    text, checker = parse(make_look(method="dms", energies=False, graphs=True))
    assert "The learned graphs" in checker.said
    for n in (0, 1):
        part = re.search(rf"The learned graphs.*<div class='member' data-member='{n}'>(.*?)</div>", text, re.DOTALL)
        assert part is not None
        assert re.findall(r"data-figure='(.*?)'", part[1]) == [f"graph-state-member{n}", f"graph-action-member{n}"]
    assert "The learned graphs" not in parse(make_look())[1].said


def test_several_runs_are_compared():
    looks = [make_look("a"), make_look("b", method="gcl"), make_look("c", domain="taxi", factors=False)]
    text, checker = parse(*looks)
    assert "3 runs compared" in checker.said
    assert "data-figure='bars'" in text
    assert "Without true factors, and so without R²: c." in checker.said
    assert text.count("<section class='run'") == 3
    comparison = re.search(r"<section class='comparison'>.*?</section>", text, re.DOTALL)
    assert comparison is not None
    rows = re.findall(r"<tr><th scope='row'>(.*?)</th><td>(.*?)</td><td>(.*?)</td>", comparison[0])
    assert rows == [("toy", "acf", "2"), ("toy", "gcl", "2")]
    links = re.findall(r"<a href='#run-(\d)'>(.*?)</a> <small>(.*?)</small>", text)
    assert links == [("0", "acf on toy", "a"), ("1", "gcl on toy", "b"), ("2", "acf on taxi", "c")]


@pytest.mark.parametrize("latents", [1, 2, 5])
def test_latents_are_not_factors(latents):
    text, _ = parse(make_look(latents=latents))
    own = re.search(r"data-heat='r2-member0'.*?</table>", text)
    assert own is not None
    assert own[0].count("<tr data-row=") == latents
    # a factor without a latent has no R², and is not called found
    assert text.count("data-value='nan'") == 9 * max(3 - latents, 0)  # mean, std and chance


def test_names_are_escaped():
    look = make_look("<b>run</b>", domain="a<b>&'\"")
    text, checker = parse(look, make_look("other"))
    assert "<b>run</b>" not in text
    assert "acf on a<b>&'\"" in checker.said


def test_a_diverged_seed_is_named():
    look = make_look()
    look.members[1]["diverged_at"] = 40
    _, checker = parse(look)
    assert "Training diverged for seed 3." in checker.said
