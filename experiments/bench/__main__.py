"""How fast this is, against every public tool that has BPE-dropout and against stock fairseq: `make bench`.

    python -m experiments.bench [ROW ...] [--list] [--quick] [--base REV]

Without a ROW, all rows are measured; --list shows their names. Each tool works in a process of its own, on one core
unless a row says otherwise, and they take turns. --base REV measures this commit against another one instead, and
writes nothing: rows of training are left out.

Reads    real text: what configs/corpora names, and files of DATA_MIRROR (texts.py)
Makes    data/bench/                           prepared text, merges, models of the others, text for scale
Writes   experiments/bench/measured/ROW.json   and from these the tables of docs/speed.md and README.md
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bpe_dropout import InputError
from scripts.machine import commit, processor

from .base import build
from .rows import BY_NAME, NAMES, OURS, SCALING, TOOLS, TRAINING, Row
from .tables import markdown, number, row_of, tool_rows, write_measured, write_pages
from .texts import FOLDER, codes_path, facts_of, lines_of, make, say, text_path, title_of, tokenizer_path
from .turns import Turn, compare, take_turns
from .work import Job

PEERS = ("subword-nmt", "YouTokenToMe", "tokenizers", "sentencepiece", "pyonmttok")
FEW = 3000  # lines of which the slow tools make a turn
THREADS = {"threads": 2}
ONCE = ("learn", "load")  # what a user waits for once: of large text, its seconds and memory are shown, too


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--list", action="store_true", help="the names of the rows")
    parser.add_argument("--quick", action="store_true", help="two turns, a tenth of what is made; writes nothing")
    parser.add_argument("--base", metavar="REV", help="another commit to compare with; writes nothing")
    options = parser.parse_args()
    if options.list:
        return print("\n".join(NAMES))
    if unknown := [name for name in options.rows if name not in NAMES]:
        sys.exit(f"bench: there is no row {unknown[0]}; there are {', '.join(NAMES)}")
    left_out = measure_all(options.rows or list(NAMES), options)
    for sentence in left_out:
        say(f"left out: {sentence}")


def measure_all(names: list[str], options: argparse.Namespace) -> list[str]:
    """Measures rows, one after the other; returns what could not be measured, and why."""
    tree = build(options.base) if options.base else None
    if tree:
        names = [name for name in names if name in BY_NAME and BY_NAME[name].work != "threads"]
    left_out, compared = [], []
    for name in names:
        say(name)
        try:
            if tree:
                compared.append(against_base(BY_NAME[name], tree, options.quick))
                continue
            content = {**measure(name, options.quick), "commit": commit(), "machine": machine(), "versions": versions()}
        except InputError as error:
            left_out.append(f"{name}: {error}")
            continue
        show(content)
        if not options.quick:
            write_measured(name, content)
            write_pages()
    if tree:
        header = ["row", f"CPU time of {options.base}, relative to this commit", "turns", "wall time"]
        print(markdown(header, compared))
    return left_out


def measure(name: str, quick: bool) -> dict[str, Any]:
    if name in TOOLS:
        return {"tools": measure_tools(*TOOLS[name], quick)}
    if name == SCALING:
        return {"scaling": measure_scaling(quick)}
    if name in TRAINING:
        from . import training

        return training.measure(name, quick)
    return {"results": measure_row(BY_NAME[name], quick)}


def job_of(row: Row, tool: str, quick: bool, **changes: Any) -> Job:
    text, learned_on = text_path(row.text, quick), text_path(row.source, quick)
    codes = (tokenizer_path if row.work == "tokenizer" else codes_path)(row.source, row.merges)
    job = Job(tool, row.work, str(text), str(learned_on), str(codes), row.merges, row.p)
    return replace(job, **changes)


def measure_row(row: Row, quick: bool) -> list[dict[str, Any]]:
    """The row's work by this package and by each of the tools, in turns."""
    ours = job_of(row, OURS, quick, threads=THREADS.get(row.work, 1))
    jobs = {"ours": ours, **{tool: job_of(row, tool, quick) for tool in row.against}}
    taken = take_turns(jobs, min(row.turns, 2) if quick else row.turns)
    facts = asdict(facts_of(row.text, quick))
    results = []
    for place, tool in enumerate(row.against):
        ratios = {time: compare(taken["ours"], taken[tool], time).turns for time in ("cpu", "wall")}
        results.append(
            {
                "work": row.title,
                "against": row.opponent(tool),
                "text": title_of(row.text),
                "learned on": title_of(row.learned_on) if row.learned_on else "",
                "made": row.is_made,
                "facts": facts,
                **{time: [round(ratio, 4) for ratio in turns] for time, turns in ratios.items()},
                "counts": "wall" if row.work == "threads" else "cpu",
                "unit": f"times, {costs(taken['ours'][-1])}" if row.is_made and row.work in ONCE else "times",
                "least": row.least[place],
                "aim": row.aim[place],
                "seconds": {who: [round(turn.cpu, 6) for turn in taken[who]] for who in ("ours", tool)},
            }
        )
    return results


def costs(turn: Turn) -> str:
    return f"in {turn.cpu:.1f} s and {turn.memory / 1e9:.2f} GB"


def against_base(row: Row, tree: Path, quick: bool) -> list[str]:
    """The same work by the package of another commit."""
    job = job_of(row, OURS, quick)
    taken = take_turns({"here": job, "base": job}, min(row.turns, 2) if quick else row.turns, {"base": tree})
    cpu, wall = (compare(taken["here"], taken["base"], time) for time in ("cpu", "wall"))
    spread = " to ".join(map(number, cpu.spread))
    say(f"{row.name}: {cpu.median:.3f} ({spread})")
    return [row.name, f"**{number(cpu.median)}** times", spread, number(wall.median)]


def measure_tools(row: Row, tools: tuple[str, ...], quick: bool) -> list[dict[str, Any]]:
    """The speed of every tool, and how much longer dropout makes the text."""
    lines = lines_of(text_path(row.text))[:FEW]
    words = sum(len(line.split()) for line in lines)
    found = []
    said = f", byte-level, {row.merges} merges" if row.work == "tokenizer" else ""
    for tool in (OURS, *tools):
        job = job_of(row, tool, quick, lines=FEW)
        drawn = take_turns({tool: job}, 2 if quick else 3)[tool]
        plain = take_turns({tool: replace(job, p=0.0)}, 1)[tool]
        found.append(
            {
                "text": f"{title_of(row.text)}, {row.language}{said}",
                "p": row.p,
                "tool": f"**{tool}**" if tool == OURS else tool,
                "words": words / min(turn.cpu for turn in drawn),
                "ratio": drawn[-1].made / plain[-1].made,
                "merges": "merges of its own" if tool in ("YouTokenToMe", "sentencepiece") else "the same merges",
            }
        )
    return found


def measure_scaling(quick: bool) -> list[list[str]]:
    """Times of 1, 2 and 4 times the text, relative to the first."""
    row = BY_NAME["load-million"]
    source = text_path(row.text, quick)
    rows: list[list[str]] = []
    first: list[float] = []
    for factor in (1, 2, 4):
        path = make(FOLDER / f"scaling.{source.name}.{factor}", partial(write_part, source, factor / 4))
        jobs = {
            work: replace(job_of(row, OURS, quick), text=str(path), work=work) for work in ("only load", "resegment")
        }
        times = [min(turn.cpu for turn in take_turns({work: job}, 2)[work]) for work, job in jobs.items()]
        first = first or times
        rows.append([str(factor), *(f"{time / one:.2f}" for time, one in zip(times, first, strict=True))])
    return rows


def write_part(source: Path, share: float, path: Path) -> None:
    lines = source.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: int(len(lines) * share)]))


def show(content: dict[str, Any]) -> None:
    for result in content.get("results", ()):
        work, text, against, measured, spread, other, *_ = row_of(result)
        turns = f", turns {spread}" if spread else ""
        say(f"{work}: {measured} ({against}{turns}{f'; {other}' if other else ''}); {text}")
    for row in [*tool_rows(content.get("tools", ())), *content.get("scaling", ())]:
        say("  ".join(row))
    if content.get("note"):
        say(content["note"])


def machine() -> str:
    return f"{os.cpu_count()} cores of {processor()} with Python {platform.python_version()}"


def versions() -> str:
    found = []
    for name in (*PEERS, "fairseq-fixed"):
        try:
            found.append(f"{name} {version(name)}")
        except Exception:
            continue
    return ", ".join(found)


if __name__ == "__main__":
    main()
