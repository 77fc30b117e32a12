"""Tables as LaTeX, for a paper of one's own: booktabs, the best in bold; in brackets what a number rests on, such as
its spread over seeds, and the paper's; notes below. Of a table of which nothing was run, the paper's numbers."""

from __future__ import annotations

import re

from .document import Cell, Table

LONG = 50  # characters of a cell
SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "↔": r"$\leftrightarrow$",
    "×": r"$\times$",
    "−": r"$-$",
    "–": "--",
    "“": "``",
    "”": "''",
}


def render_table(table: Table) -> str:
    beside = " In brackets: the numbers of Provilkov et al. (2020)." if table.has_papers else ""
    theirs = " The numbers are those of Provilkov et al. (2020)." if table.is_papers_alone else beside
    lines = [
        rf"% Made by `make report`; needs \usepackage{{booktabs}}.{theirs}",
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{{columns_of(table)}}}",
        r"\toprule",
        row_of(list(map(escape, table.columns))),
        r"\midrule",
    ]
    for number, (group, rows) in enumerate(table.groups):
        lines += [r"\midrule"] if number else []
        heading = rf"\multicolumn{{{len(table.columns)}}}{{l}}{{\textbf{{{escape(group)}}}}} \\"
        lines += [heading] if group else []
        lines += [row_of([render_cell(cell, table.is_papers_alone) for cell in row.cells]) for row in rows]
    label = table.name.replace("_", "-")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip{{\footnotesize {escape(note)}\par}}" for note in table.notes]
    lines += [rf"\caption{{{escape(table.caption)}}}", rf"\label{{{label}}}"]
    return "\n".join([*lines, r"\end{table}", ""])


def columns_of(table: Table) -> str:
    """The first to the left, numbers in the middle; long text is broken into lines."""
    places = range(len(table.columns))
    longest = [max((len(row.cells[place].plain) for row in table.rows), default=0) for place in places]
    width = 0.8 / max(1, sum(one > LONG for one in longest))
    short = ["l", *["c"] * (len(table.columns) - 1)]
    long = rf"p{{{width:.2f}\textwidth}}"
    return "".join(long if size > LONG else place for size, place in zip(longest, short, strict=True))


def row_of(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def render_cell(cell: Cell, papers_alone: bool = False) -> str:
    r"""
    >>> render_cell(Cell("33.10", best=True, paper="33.27"))
    '\\textbf{33.10} (33.27)'
    >>> render_cell(Cell("33.10", spread="32.90 to 33.40")), render_cell(Cell(spread="one seed", verdict="undecided"))
    ('33.10 (32.90 to 33.40)', 'undecided (one seed)')
    >>> render_cell(Cell(paper="33.27", verdict="not run")), render_cell(Cell(paper="33.27", verdict="not run"), True)
    ('-- (33.27)', '33.27')
    """
    ours = escape(cell.text) or ("--" if cell.verdict == "not run" else cell.verdict)
    ours = rf"\textbf{{{ours}}}" if cell.best and cell.text else ours
    paper = rf"\textbf{{{escape(cell.paper)}}}" if cell.paper_best else escape(cell.paper)
    if papers_alone and paper:
        return paper
    inside = "; ".join(one for one in (escape(cell.spread), paper) if one)
    return f"{ours} ({inside})".strip() if inside else ours


def escape(text: str) -> str:
    r"""
    >>> escape("`make p_x` runs 50%")
    '\\texttt{make p\\_x} runs 50\\%'
    """
    parts = ["".join(SPECIAL.get(character, character) for character in part) for part in re.split("`([^`]+)`", text)]
    parts[1::2] = [rf"\texttt{{{code}}}" for code in parts[1::2]]
    return "".join(parts)
