"""Puts the tables of the benchmarks where they are read: all of them into docs/speed.md, a few rows into README.md.

Both have marks, <!-- bench NAME: begin --> and <!-- bench NAME: end -->. README.md chooses its rows by their first two
cells, and shows their first three.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLES = Path(__file__).parent
NAMES = ("segmenter", "training")


def write_table(name: str, table: str) -> None:
    (TABLES / f"{name}.md").write_text(table + "\n")
    speed, readme = ROOT / "docs" / "speed.md", ROOT / "README.md"
    speed.write_text(between_marks(speed.read_text(), name, table))
    readme.write_text(update_rows(readme.read_text(), read_tables()))
    print(f"written to {TABLES.relative_to(ROOT)}/{name}.md, docs/speed.md and README.md", flush=True)


def read_tables() -> str:
    return "".join((TABLES / f"{name}.md").read_text() for name in NAMES)


def between_marks(page: str, name: str, text: str) -> str:
    begin, end = f"<!-- bench {name}: begin -->", f"<!-- bench {name}: end -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{text}\n{end}{after}"


def update_rows(page: str, tables: str) -> str:
    """The page with the rows between its marks as the tables have them.

    >>> page = "<!-- bench rows: begin -->\\n| a | b | 1 |\\n<!-- bench rows: end -->"
    >>> print(update_rows(page, "| a | b | **2** times | 3 |"))
    <!-- bench rows: begin -->
    | a | b | **2** times |
    <!-- bench rows: end -->
    """
    measured = {tuple(cells[:2]): cells[2] for cells in map(cells_of, tables.splitlines()) if len(cells) > 2}
    _, _, rest = page.partition("<!-- bench rows: begin -->\n")
    rows, _, _ = rest.partition("\n<!-- bench rows: end -->")
    updated = []
    for row in rows.splitlines():
        work, against, now = cells_of(row)
        updated.append(f"| {work} | {against} | {measured.get((work, against), now)} |")
    return between_marks(page, "rows", "\n".join(updated))


def cells_of(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]
