"""Translating with several segmentations of the source: beyond the paper, which leaves it for later (section 4.6).

The test set, as it is and misspelled, is translated from the K most probable segmentations of each sentence, for K = 1
(plain BPE; of Kudo's method the best segmentation), 4 and 16: the translation with the best score is taken, or the next
token's probabilities are averaged. BLEU, with a paired bootstrap against K = 1, chrF, and the seconds that it takes,
finding the segmentations included: of a GPU, or CPU time, which changes little with what else a machine does.
python -m experiments.analysis.several RUN --folder DATA --checkpoint FILE --references FILE --output FILE
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bpe_dropout.data.folder import DataFolder
from bpe_dropout.data.preparation import read_preparation
from bpe_dropout.lines import read_lines
from scripts.arguments import common_arguments
from scripts.compare import compare
from scripts.devices import Devices, environment_of, one_device
from scripts.generate import SUBSET
from scripts.machine import machine
from scripts.paper import Claim, Item
from scripts.runs import BEAM, LENPEN, Plan, Run
from scripts.score import bleu_of, score
from scripts.testsets import TEST, read_testset

from .claims import Test, Tests, decide, sign_of, span, verdict_of, without_all_runs
from .document import Cell, Finding, ReportPart, Row, Table
from .grid import at_the_limit, finding_of, other_models
from .labels import group_title, system_title
from .measurement import begin, record, sides_of
from .results import Results

if TYPE_CHECKING:
    from fairseq_plugins.translation import Combine

TESTSETS = (TEST, "misspelled")
PLAIN = "1"
WAYS: dict[
    str, tuple[int, Combine]
] = {  # by the name that a result has: how many segmentations, and what is made of them
    PLAIN: (1, "score"),
    "4 by score": (4, "score"),
    "16 by score": (16, "score"),
    "4 averaged": (4, "average"),
    "16 averaged": (16, "average"),
}
TITLES = {
    PLAIN: "K = 1",
    "4 by score": "K = 4, best score",
    "16 by score": "K = 16, best score",
    "4 averaged": "K = 4, averaged",
    "16 averaged": "K = 16, averaged",
}
WARMING = 50  # sentences that are translated before the clock starts
MORE = 8  # times the tokens at once on a CPU, which has the room: 16 readings of a sentence make small batches
Translate = Callable[[list[str], int, "Combine"], list[str]]


def main() -> None:
    references = {"type": Path, "required": True, "metavar": "FILE", "help": "the untokenized test text"}
    plan, options = begin("several", __doc__, (("--references", references),))
    p = sides_of(plan, options.folder)["src"].p if plan.method.kind == "bpe" else None
    devices = one_device()
    translate = load(plan, options.folder, options.checkpoint, p, devices)
    source = DataFolder(options.folder, plan.run.source, plan.run.target).text(SUBSET, plan.run.source)
    lines, wanted = read_lines(source, "text"), read_lines(options.references, "text")
    clock = time.perf_counter if devices.gpus else time.process_time
    found = measure(plan, lines, wanted, translate, options.configs, clock)
    probabilities = {} if p is None else {"p": p}
    record("several", plan, options, {**probabilities, "beam": BEAM, "lenpen": LENPEN, **found, "machine": machine()})


def measure(
    plan: Plan,
    lines: list[str],
    references: list[str],
    translate: Translate,
    configs: Path,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, Any]:
    """`translate` takes lines of words, how many segmentations, and what is made of them."""
    found: dict[str, Any] = {}
    plain: list[str] = []  # the translations with K = 1, the first of the ways
    translate(lines[:WARMING], 1, "score")
    for name, (way, (count, combine)) in itertools.product(TESTSETS, WAYS.items()):
        changed, _ = read_testset(name, configs).apply(lines)
        begin = clock()
        texts = translate(changed, count, combine)
        seconds = clock() - begin
        one = {**score(plan, texts, references), "seconds": round(seconds, 2)}
        found.setdefault(name, {})[way] = one
        told = f"BLEU {one['bleu']:.2f}, chrF {one['chrf']:.2f}, {seconds:.0f} s"
        if way == PLAIN:
            plain = texts
        else:
            scores = {each: found[name][each]["bleu"] for each in (PLAIN, way)}
            (pair,) = compare({PLAIN: plain, way: texts}, references, bleu_of(plan), scores)["pairs"]
            one["against plain"] = {key: pair[key] for key in ("difference", "p", "significant")}
            told += f", {pair['difference']:+.2f} against K = 1 (p = {pair['p']:.3f})"
        print(f"{plan.run.name}, {name}: {TITLES[way]}: {told}", flush=True)
    return found


def load(plan: Plan, folder: Path, checkpoint: Path, p: float | None, devices: Devices) -> Translate:
    import torch

    from fairseq_plugins.translation import Reading, Translator, be_quiet

    be_quiet()
    if threads := environment_of(plan, devices).get("OMP_NUM_THREADS"):
        torch.set_num_threads(int(threads))  # as many as fairseq-generate has
    translator = Translator(
        [
            *common_arguments(plan, folder),
            *("--path", str(checkpoint), "--beam", str(BEAM), "--lenpen", str(LENPEN)),
            *("--max-tokens", str(plan.model.tokens_at_once * (1 if devices.gpus else MORE))),
            "--fp16" if devices.gpus else "--cpu",
        ]
    )
    preparation = read_preparation(folder, plan.run.target)

    def translate(lines: list[str], count: int, combine: Combine) -> list[str]:
        reads = translator.reading_as(Reading(count, combine, dropout=p, is_words=True))
        return [preparation.restore(one.text) for one in reads(lines)]

    return translate


def build(item: Item, results: Results, configs: Path, own: list[str]) -> ReportPart:
    """A row for each system and test set that was measured, on so many seeds; or for runs of one's own."""
    part = ReportPart(item.name, item.title, item.section, item.text.strip(), is_study=item.is_study)
    rows: list[Row] = []
    shown = [(row.title, runs) for row, _, runs in item.cells(configs)]
    if own:
        shown = [(group_title(run, configs), [run]) for run in map(Run.parse, own)]
    for title_of_group, runs in shown:
        found = [results.get(run.name, "several") for run in runs]
        there = [one for one in found if one is not None]
        missing = [f"make several.{run.name}" for run, one in zip(runs, found, strict=True) if one is None]
        for testset in TESTSETS if there else ():
            seeds = f" ({len(there)} of {len(found)} seeds)" if missing else ""
            title = f"{system_title(runs[0], configs)}, {read_testset(testset, configs).title}{seeds}"
            rows.append(Row([Cell(title), *cells_of([one[testset] for one in there])], title_of_group))
            rows[-1].cells[1].commands = missing
        if missing:
            part.fill = f"make fill-{item.name}" + (f' RUNS="{" ".join(own)}"' if own else "")
    if rows:
        read = [(run.name, "several") for _, runs in shown for run in runs]
        notes = [*at_the_limit(read, results), *other_models(read, results)]
        part.blocks.append(Table(item.name, item.title, ["", *TITLES.values()], rows, notes))
    if not own:
        part.findings = [answer(claim, item, results, configs) for claim in item.claims]
    return part


def answer(claim: Claim, item: Item, results: Results, configs: Path) -> Finding:
    """Whether a way (`where`) is better than K = 1 for the models of a column, in all rows and on both test sets: a
    question of the study's own."""
    tests, done, wanted = Tests(), list[int](), list[int]()  # how many seeds each cell has, and should have
    for row, column, runs in item.cells(configs):
        if column not in claim.of:
            continue
        found = {run.seed: results.get(run.name, "several") for run in runs}
        there = {seed: one for seed, one in found.items() if one is not None}
        done.append(len(there))
        wanted.append(len(found))
        for testset in TESTSETS if there else ():
            name = f"{row.title}, {read_testset(testset, configs).title}"
            tests[name] = [compared(one[testset][claim.where], seed) for seed, one in there.items()]
    verdict = without_all_runs(sum(done), sum(wanted)) or verdict_of(decide(tests), min(wanted))
    if not tests:
        return finding_of(claim, verdict)
    gains = [fmean(test.difference for test in found) for found in tests.values()]
    better, worse = (sum(sign_of(found) * sign > 0 for found in tests.values()) for sign in (1, -1))
    numbers = f"{span(gains, 2)}; significantly higher in {better} of {len(gains)}, lower in {worse}"
    return finding_of(claim, verdict, numbers)


def cells_of(measured: list[dict[str, Any]]) -> list[Cell]:
    """BLEU, its mean over seeds; chrF; how many times as long it takes as K = 1 (×3); whether each seed is worse."""
    numbers = ("bleu", "chrf", "seconds")
    means = {way: {number: fmean(one[way][number] for one in measured) for number in numbers} for way in WAYS}
    cells = []
    for way, mean in means.items():
        times = mean["seconds"] / means[PLAIN]["seconds"]
        sign = sign_of([compared(one[way]) for one in measured])
        more = [f"chrF {mean['chrf']:.2f}"]
        more += [f"×{times:.0f}"] if way != PLAIN else []
        more += ["worse"] if sign < 0 else []
        cells.append(Cell(f"{mean['bleu']:.2f}", mean["bleu"], ", ".join(more), best=sign > 0))
    return cells


def compared(way: dict[str, Any], seed: int = 0) -> Test:
    """How far a way is above K = 1, which is not compared with itself."""
    pair = way.get("against plain", {"difference": 0.0, "p": 1.0})
    return Test(seed, pair["difference"], pair["p"])


if __name__ == "__main__":
    main()
