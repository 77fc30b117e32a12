"""Parts of a page that a command writes, between the marks <!-- NAME: begin --> and <!-- NAME: end -->."""

from __future__ import annotations

from pathlib import Path

from bpe_dropout.files import whole


def between_marks(page: str, name: str, text: str) -> str:
    """
    >>> between_marks("a <!-- x: begin -->old<!-- x: end --> b", "x", "new")
    'a <!-- x: begin -->\\nnew\\n<!-- x: end --> b'
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"the page has no {begin} and {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def write_between_marks(path: Path, parts: dict[str, str]) -> None:
    """Each part by its name."""
    page = path.read_text("utf-8")
    for name, text in parts.items():
        page = between_marks(page, name, text)
    with whole(path) as part:
        part.write_text(page, "utf-8")
