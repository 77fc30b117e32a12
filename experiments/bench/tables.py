"""What was measured, as docs/speed.md and README.md show it.

Each row is kept as JSON in experiments/bench/measured, with the machine and the commit, and the pages are written from
all of them: one row can be measured again alone. Both pages have marks (scripts/marks.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bpe_dropout.files import whole
from scripts.marks import write_between_marks

from .rows import NAMES, SCALING, TOOLS, TRAINING
from .turns import Ratios

ROOT = Path(__file__).parents[2]
MEASURED = Path(__file__).parent / "measured"
# What README.md shows: a line for each work, with all of its texts.
SHORT = (
    ("resegment-en", "resegment-en-news", "resegment-en-tatoeba"),
    ("resegment-de", "resegment-de-news", "resegment-de-software"),
    ("training",),
)
Measured = Mapping[str, Mapping[str, Any]]


def write_pages(folder: Path = MEASURED, root: Path = ROOT) -> None:
    measured = read_measured(folder)
    write_between_marks(root / "docs" / "speed.md", tables_of(measured))
    write_between_marks(root / "README.md", {"bench rows": short_table(measured)})


def read_measured(folder: Path = MEASURED) -> dict[str, dict[str, Any]]:
    paths = {name: folder / f"{name}.json" for name in NAMES}
    return {name: json.loads(path.read_text("utf-8")) for name, path in paths.items() if path.is_file()}


def write_measured(name: str, content: Mapping[str, Any], folder: Path = MEASURED) -> None:
    folder.mkdir(exist_ok=True)
    with whole(folder / f"{name}.json") as part:
        part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def tables_of(measured: Measured) -> dict[str, str]:
    """The parts of docs/speed.md."""
    segmenter = {name: one for name, one in measured.items() if name not in TRAINING}
    training = {name: one for name, one in measured.items() if name in TRAINING}
    results = [result for one in segmenter.values() for result in one.get("results", ())]
    grown = [[str(cell) for cell in row] for row in measured.get(SCALING, {}).get("scaling", ())]
    tools = [row for name in TOOLS for row in tool_rows(measured.get(name, {}).get("tools", ()))]
    parts = [
        said_of(segmenter),
        table_of(result for result in results if not result["made"]),
        *section(
            "Text that is made for scale: the lines of Multi30k over and over, with words put together from two now "
            "and then. Real text has other words, so these rows say how the time grows, and no more.",
            table_of(result for result in results if result["made"]),
        ),
        *section(
            "How the time grows with such text:",
            markdown(["times the text", "times the time to load", "times the time of an epoch"], grown),
        ),
        *section(
            "Every tool by itself, on the first 3000 lines, the best of three times: not the speeds of the rows above, "
            "which take turns on the whole text. The length ratio is what a tool really gives: pieces with dropout p, "
            "relative to its own without. With the same merges, another ratio is another distribution.",
            markdown(["text", "dropout", "tool", "million words a second", "length ratio", "merges"], tools),
        ),
    ]
    notes = [one["note"] for one in training.values() if one.get("note")]
    of_training = [table_of(result for one in training.values() for result in one["results"]), *notes]
    return {"bench segmenter": "\n\n".join(parts), "bench training": "\n\n".join([said_of(training), *of_training])}


def section(text: str, table: str) -> list[str]:
    """What is said of a table, and the table, unless it has no rows.

    >>> section("Fast:", markdown(["work"], [])), section("Fast:", "| a |\\n| --- |\\n| b |")
    ([], ['Fast:', '| a |\\n| --- |\\n| b |'])
    """
    return [text, table] if table.count("\n") > 1 else []


def said_of(measured: Measured) -> str:
    """On what it was measured."""
    machines = list(dict.fromkeys(f"{one['machine']}; {one['versions']}" for one in measured.values()))
    return f"Measured by `make bench` on {' and on '.join(machines)}." if machines else "Not measured yet."


def table_of(results: Iterable[Mapping[str, Any]]) -> str:
    header = ["work", "text", "against", "measured", "turns", "the other time", "at least", "aim"]
    return markdown(header, [row_of(result) for result in results])


def row_of(result: Mapping[str, Any]) -> list[str]:
    """The time that counts, its spread, and the other one: wall time, or CPU time where threads are measured."""
    counts, other = ("wall", "cpu") if result["counts"] == "wall" else ("cpu", "wall")
    ratios = Ratios(tuple(result[counts]))
    shown = f"**{number(ratios.median)}** {result.get('unit', 'times')}"
    spread = f"{number(ratios.spread[0])} to {number(ratios.spread[1])}" if len(ratios.turns) > 1 else ""
    beside = f"{number(Ratios(tuple(result[other])).median)} ({other})" if result[other] else ""
    bounds = [f"{bound:g}" if isinstance(bound, int | float) else bound for bound in (result["least"], result["aim"])]
    return [result["work"], describe_text(result), result["against"], f"{shown}", spread, beside, *bounds]


def describe_text(result: Mapping[str, Any]) -> str:
    """
    >>> facts = {"lines": 6003, "words": 130000, "types": 15214, "once": 0.571}
    >>> describe_text({"text": "news", "facts": facts, "learned on": "Multi30k"})
    'news, merges of Multi30k; 15.2k types, 57% of them once'
    """
    if not result.get("facts"):
        return str(result["text"])
    learned = f", merges of {result['learned on']}" if result.get("learned on") else ""
    facts = result["facts"]
    return f"{result['text']}{learned}; {thousands(facts['types'])} types, {facts['once']:.0%} of them once"


def thousands(count: int) -> str:
    """
    >>> thousands(950), thousands(15214), thousands(996976)
    ('950', '15.2k', '997k')
    """
    return str(count) if count < 1000 else f"{count / 1000:.1f}k" if count < 100_000 else f"{count / 1000:.0f}k"


def number(ratio: float) -> str:
    """
    >>> number(0.894), number(3.27), number(23.14), number(314.2)
    ('0.89', '3.3', '23.1', '314')
    """
    return f"{ratio:.2f}" if ratio < 3 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"


def tool_rows(tools: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """The fastest first."""
    return [
        [
            one["text"],
            f"p = {one['p']:g}",
            one["tool"],
            f"{one['words'] / 1e6:.2f}",
            f"{one['ratio']:.3f}",
            one["merges"],
        ]
        for one in sorted(tools, key=lambda one: -one["words"])
    ]


def short_table(measured: Measured) -> str:
    """README.md's: what is shown together is of one work against one tool, on several texts."""
    rows = []
    for names in SHORT:
        results = [result for name in names for result in measured.get(name, {}).get("results", ())]
        together: dict[tuple[str, str], list[str]] = {}
        for result in results:
            middle = number(Ratios(tuple(result[result["counts"]])).median)
            together.setdefault((result["work"], result["against"]), []).append(f"**{middle}** ({short_text(result)})")
        rows += [[work, against, ", ".join(shown)] for (work, against), shown in together.items()]
    return markdown(["work", "against", "times as fast, by text"], rows)


def short_text(result: Mapping[str, Any]) -> str:
    """
    >>> short_text({"text": "newstest 2013 and 2014 (news)"}), short_text({"text": "Multi30k (captions)"})
    ('newstest 2013 and 2014', 'Multi30k')
    """
    return str(result["text"]).partition(" (")[0]


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """
    >>> print(markdown(["work", "measured"], [["learn", "2 times"]]))
    | work | measured |
    | --- | --- |
    | learn | 2 times |
    """
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows])
