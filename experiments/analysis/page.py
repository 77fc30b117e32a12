"""The report as one HTML page that asks for nothing else: styles, scripts, figures and merge tables are in it. What
it looks like is in page.html, explorer.html and page.css, what it does in the browser in page.js. Left out: what the
parts are made of, and where the page is written.

Of Markdown it knows `code`, [links](https://...) and empty lines between paragraphs, and nothing more.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from .document import Cell, Drawing, ReportPart, Section, Table, commands_of
from .drawing import svg

TITLE = "BPE-dropout: what the paper says, and what was found"
FOLDER = Path(__file__).parent
WORD = "unrelated"  # what the explorer shows first
PHRASES = {"ja": "どこに行っていたのですか", "zh": "我不知道你在说什么"}  # the same of languages without spaces


@dataclass
class MergeTable:
    """Merges for the explorer, in the order of their priority, as in codes of version 0.2: "</w>" ends a word's last
    character."""

    title: str
    pairs: list[tuple[str, str]]
    language: str = "en"

    @property
    def example(self) -> str:
        return PHRASES.get(self.language, WORD)

    @property
    def p(self) -> float:
        """The paper's."""
        return 0.6 if self.language in PHRASES else 0.1


def render(introduction: str, found: ReportPart | None, sections: list[Section], tables: list[MergeTable]) -> str:
    """The page; without merge tables it has no explorer."""
    parts = [*([found] if found else []), *(part for section in sections for part in section.parts)]
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"inline": inline, "paragraphs": paragraphs, "slug": slug, "identity": id}
    environment.tests["drawing"] = lambda block: isinstance(block, Drawing)
    page = environment.get_template("page.html").render(
        title=TITLE,
        found=found,
        sections=sections,
        tables=tables,
        introduction=introduction,
        css=Markup(read("page.css")),
        js=Markup(read("page.js")),
        merges=merges_json(tables),
        pictures=pictures(parts),
        number_columns=number_columns,
        missing_commands=missing_commands,
    )
    return page.lstrip()


def read(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


def inline(text: str) -> Markup:
    """
    >>> inline("`make a` & wait")
    Markup('<code>make a</code> &amp; wait')
    """
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", links(str(escape(text)))))


def links(text: str) -> str:
    return re.sub(r"\[([^\]]+)\]\((https://[^)]+)\)", r'<a href="\2">\1</a>', text)


def paragraphs(text: str) -> list[Markup]:
    return [inline(one) for one in re.split(r"\n\s*\n", text.strip()) if one]


def slug(text: str) -> str:
    """
    >>> slug("does not hold")
    'does-not-hold'
    """
    return re.sub(r"[^\w.-]+", "-", text)


# Tables.


def number_columns(table: Table) -> list[bool]:
    """Which columns hold numbers, or will when they are run, and so are flush right."""
    places = range(1, len(table.columns))
    return [False, *(any(is_number(row.cells[i]) for row in table.rows) for i in places)]


def is_number(cell: Cell) -> bool:
    return cell.value is not None or bool(cell.commands)


def missing_commands(part: ReportPart) -> list[str]:
    """The commands that run what was not run of tables of which something was; of the others a note says it."""
    tables = [table for table in part.tables if not table.is_papers_alone]
    return commands_of(cell for table in tables for row in table.rows for cell in row.cells)


# What is put into the page as it is.


def pictures(parts: list[ReportPart]) -> dict[int, Markup]:
    """The SVG of each drawing, by the drawing's identity. No id occurs twice in the page."""
    found: dict[int, Markup] = {}
    taken: set[str] = set()
    for drawing in (drawing for part in parts for drawing in part.drawings):
        name = prefix = slug(drawing.name)
        number = 2
        while prefix in taken:
            prefix, number = f"{name}-{number}", number + 1
        taken.add(prefix)
        if drawing.panels:
            found[id(drawing)] = embed_panels(drawing, prefix)
        else:
            found[id(drawing)] = embed(svg(drawing.figure), prefix, drawing.caption)
    return found


def embed_panels(drawing: Drawing, prefix: str) -> Markup:
    made = []
    for number, figure in enumerate(drawing.panels, 1):
        label = f"{drawing.caption}: {figure.axes[0].get_title()}"
        made.append(embed(svg(figure), f"{prefix}-panel-{number}", label))
    return Markup("\n").join(made)


def embed(picture: str, prefix: str, label: str) -> Markup:
    """An SVG that can be in a page with others: its ids begin with a prefix, it is as wide as there is room up to
    its own width, and it has no style for all the page.

    >>> embed('<svg width="9pt" height="9pt"><use id="a" xlink:href="#b"/></svg>', "x", "A use")
    Markup('<svg role="img" aria-label="A use" style="max-width: 9pt"><use id="x-a" xlink:href="#x-b"/></svg>')
    """
    picture = re.sub(r"<(metadata|style)\b.*?</\1>", "", picture, flags=re.DOTALL)
    picture = re.sub(r"<[^>]*>", lambda tag: prefix_ids(tag[0], prefix), picture)
    width = re.search(r'<svg\b[^>]*?\swidth="([^"]*)"', picture)
    head = re.sub(r'\s(width|height)="[^"]*"', "", picture[: picture.index(">")])
    head = head.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
    own = f' style="max-width: {width[1]}"' if width else ""
    return Markup(head + own + picture[picture.index(">") :].rstrip())


def prefix_ids(tag: str, prefix: str) -> str:
    return re.sub(r'(\sid="|href="#|url\(#)', lambda start: f"{start[1]}{prefix}-", tag)


def merges_json(tables: list[MergeTable]) -> Markup:
    """One merge per line, as in a codes file: less than half of what lists of lists take."""
    data = [
        {
            "title": table.title,
            "language": table.language,
            "example": table.example,
            "p": table.p,
            "thing": "phrase" if table.language in PHRASES else "word",
            "merges": "\n".join(map(" ".join, table.pairs)),
        }
        for table in tables
    ]
    # In a script element "<" could end it.
    return Markup(json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"))
