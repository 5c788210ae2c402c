"""Pages as plain pieces: Markdown and HTML from the same ones."""

from acf.report.blocks import Heading, Picture, Table, Text, body, markdown

BLOCKS = [
    Heading("What & why"),
    Text("Run `acf <x>`."),
    Table(("a", "b"), [("1 < 2", "x | y")]),
    Picture("figures/bars.png", b"\x89PNG", "It's bars"),
]


def test_markdown():
    assert markdown("Title", BLOCKS) == (
        "# Title\n\n## What & why\n\nRun `acf <x>`.\n\n"
        "| a | b |\n| --- | --- |\n| 1 < 2 | x \\| y |\n\n![It's bars](figures/bars.png)\n"
    )


def test_html_is_escaped():
    text = body("Title", BLOCKS)
    for piece in (
        "<h1>Title</h1>",
        "<h2>What &amp; why</h2>",
        "<p>Run <code>acf &lt;x&gt;</code>.</p>",
        "<th scope='row'>1 &lt; 2</th><td>x | y</td>",
        "data-figure='bars' alt='It&#x27;s bars' src='data:image/png;base64,iVBORw=='",
    ):
        assert piece in text
