"""What the reproduction shows of itself: its targets and what they cost, what will be done, and what came out."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bpe_dropout import InputError
from bpe_dropout.data.folder import DataFolder

from .corpora import read_corpora
from .kept import RESULTS, RUNS, comparison_of, products, result_of
from .measures import MEASURES
from .paper import fill, study
from .runs import Group, Plan, Run, Target, find_targets, plan_run
from .stage import describe_time, read_json
from .testsets import TEST, read_testset


def show_list(configs: Path) -> str:
    rows = [["target", "what it is", "runs", "download", "disk", "training"]]
    wrong = dict.fromkeys(read_corpora(configs).errors.values())
    targets = find_targets(configs)
    first = [targets.pop(name) for name in ("demo", "paper") if name in targets]
    for find in (study, partial(fill, "report", [])):
        try:
            first.append(find(configs))
        except InputError as error:
            wrong[str(error)] = None
    for target in [*first, *(targets[name] for name in sorted(targets))]:
        try:
            plans = [plan for plan in plans_of(target, configs) if is_trained(target, plan.run)]
        except InputError as error:
            wrong[str(error)] = None
            continue
        times = describe_time(sum(plan.usual_seconds for plan in plans))
        device = "GPU" if any(plan.model.gpu for plan in plans) else "core"
        sizes = [size(bytes_of(plans)), size(disk_of(plans))]
        row = [target.name, target.title, str(len(plans)), *sizes, f"{times} of a {device}"]
        rows.append(row)
    return "\n".join(
        [
            align(rows),
            "",
            "`make plan TARGET=iwslt15-en-vi` shows what would be done, `make iwslt15-en-vi` does it. Training is what",
            "the most updates would take on one device, or those that a model usually takes, at the speed in",
            "configs/models (of GPUs a guess, not measured).",
            "Each run has one GPU (GPUS=N: N of them), and as many runs go at once as there are GPUs, so that 8 GPUs",
            "divide the time by about 8. Disk is what is needed while one run trains; checkpoints are removed when a",
            "run is finished (KEEP_CHECKPOINTS=1 keeps them). + ?: some sizes are not known.",
            "`make report` shows the paper's tables and figures, as far as they were run; fill-report runs the rest.",
            *(f"left out: {error}" for error in wrong),
        ]
    )


def is_trained(target: Target, run: Run) -> bool:
    """Whether a target needs a model of a run, and not only its text."""
    return run in target.runs or any(MEASURES[name].model for name, one in target.measures if one == run)


def bytes_of(plans: list[Plan]) -> tuple[float, bool]:
    """What is downloaded, and whether all of it is known."""
    files = {name: download for plan in plans for name, download in plan.corpus.downloads.items()}
    return sum(one.bytes or 0 for one in files.values()), all(one.bytes for one in files.values())


def disk_of(plans: list[Plan]) -> tuple[float, bool]:
    """Downloads, texts (about three times their packed size, three times over), the average of each run, and while one
    trains its checkpoints, with the state of the optimizer."""
    downloads, known = bytes_of(plans)
    averages = sum(plan.model.parameters * 4e6 for plan in plans)
    checkpoints = max(((plan.checkpoints + 2) * plan.model.parameters * 12e6 for plan in plans), default=0)
    return 6 * downloads + averages + checkpoints, known


def size(found: tuple[float, bool]) -> str:
    number, known = found
    text = f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"
    return text if known else f"{text} + ?"


def plans_of(target: Target, configs: Path) -> list[Plan]:
    return [plan_run(run, configs) for run in target.runs_and_measured]


def show_left(target: Target, left: list[Run], reasons: list[InputError]) -> str:
    lines = [f"Left out for missing files, {len(left)} of the {len(target.runs_and_measured)} runs of {target.name}:"]
    lines += [f"  {run.name}" for run in left]
    return "\n".join([*lines, *map(str, reasons), f"With them in place, `make {target.name}` does the rest."])


def show_plan(target: Target, plans: list[Plan], there: int = 0) -> str:
    lines = [f"{target.name}: {target.title}"]
    if there:
        lines.append(f"  {there} runs are finished: {RESULTS} has all that is asked of them")
    for plan in plans:
        lines.append(
            f"  {plan.run.name}: vocabulary {' / '.join(f'{name} {v}' for name, v in plan.vocabularies.items())}, "
            f"{describe_method(plan)}, batches of {plan.batch} source tokens, at most {plan.updates} updates"
        )
    return "\n".join(lines)


def describe_method(plan: Plan) -> str:
    if not plan.method.draws:
        return plan.method.title
    method = plan.method.method
    options = method.options_of(plan.method.options, plan.method.draws, plan.dropout)
    return method.describe(method.options(**options))


def show_results(target: Target, configs: Path) -> str:
    """A table of each group, of which anything is finished, and what else there is to see."""
    kept = products(target)
    found = Found(lambda path: kept[path] if target.fills else path)
    same_runs: dict[tuple[Run, ...], list[Group]] = {}
    for group in target.groups:
        if any(found.result(run, group) for run in group.runs):
            same_runs.setdefault(group.runs, []).append(group)
    if not same_runs:
        return ""
    blocks = [show_groups(groups, found, configs) for groups in same_runs.values()]
    blocks += [shown] if (shown := show_segmentation(target, configs)) else []
    blocks += [textwrap.fill(target.note, 120)] if target.note else []
    where = [f"translations, checkpoints, logs: {RUNS.resolve()}/RUN", f"results: {RESULTS.resolve()}"]
    return "\n\n".join([*blocks, "\n".join(where)])


@dataclass(frozen=True)
class Found:
    """Results and comparisons, by where each is read from: where it was made, or where it is kept."""

    place: Callable[[Path], Path]

    def result(self, run: Run, group: Group) -> dict[str, Any] | None:
        return self._read(result_of(run, group.testset))

    def comparison(self, group: Group) -> dict[str, Any] | None:
        return self._read(comparison_of(group)) if len(group.runs) > 1 else None

    def _read(self, path: Path) -> dict[str, Any] | None:
        return read_json(self.place(path)) if self.place(path).is_file() else None


def show_groups(groups: list[Group], found: Found, configs: Path) -> str:
    """A table of runs, on one test set or on several; which ones is said unless it is the test set as it is."""
    names = [group.testset for group in groups]
    rows = [["", "test set", "method", "BLEU", "chrF", "updates", "src ratio", "tgt ratio", "against the first"]]
    for group in groups:
        rows += rows_of(group, found, read_testset(group.testset, configs).title)
    if names == [TEST]:
        rows = [[row[0], *row[2:]] for row in rows]
    lines = [groups[0].name, align(rows)]
    results = [found.result(run, group) for group in groups for run in group.runs]
    lines += dict.fromkeys(result["bleu signature"] for result in results if result)
    if any(found.comparison(group) for group in groups):
        lines.append("* the best, and those whose difference from it is not significant (paired bootstrap, p < 0.05)")
    return "\n".join(lines)


def rows_of(group: Group, found: Found, testset: str) -> list[list[str]]:
    comparison = found.comparison(group)
    rows = []
    first = group.runs[0].name
    for run in group.runs:
        result = found.result(run, group)
        if result is None:
            rows.append(["", testset, run.system, "not finished", "", "", "", "", ""])
            continue
        against = "" if run.name == first else significance(comparison, first, run.name)
        marked = "*" if comparison and run.name in comparison["best"] else ""
        ratios = [f"{ratio:.3f}" if ratio else "" for ratio in result["length ratios"].values()]
        row = [marked, testset, run.system, f"{result['bleu']:.2f}", f"{result['chrf']:.2f}", str(result["updates"])]
        rows.append([*row, *ratios, against])
    return rows


def significance(comparison: dict[str, Any] | None, first: str, second: str) -> str:
    for pair in comparison["pairs"] if comparison else ():
        if pair["systems"] == [first, second]:
            mark = "significant" if pair["significant"] else "not significant"
            return f"{signed(pair['difference'])}, p = {pair['p']:.3f}, {mark}"
    return ""


def signed(difference: float) -> str:
    """With two decimals, or as many as it takes to see that there is a difference.

    >>> signed(1.234), signed(-0.0042), signed(0.0)
    ('+1.23', '-0.004', '0.00')
    """
    shown = (f"{difference:+.{digits}f}" for digits in range(2, 10))
    return next((text for text in shown if float(text)), "0.00")


def show_segmentation(target: Target, configs: Path) -> str:
    """One sentence of the training text, as a run with dropout saw it in its first three epochs."""
    for run in target.runs:
        plan = plan_run(run, configs)
        folder = Path("data/folders") / plan.folder
        if plan.dropout["src"] and not plan.method.has_rule and folder.is_dir():
            return segmentation(plan, folder)
    return ""


def segmentation(plan: Plan, folder: Path) -> str:
    """The first readable sentence that each of the epochs segments in another way."""
    source = plan.run.source
    method, data = plan.method.method, DataFolder(folder, source, plan.run.target)
    segmenter = method.load(method.file_of(folder, source), "src", source).segmenter
    with data.text("train", source).open(encoding="utf-8") as file:
        for number, line in enumerate(map(str.strip, file)):
            if not is_readable(line):
                continue
            rows = [["plain BPE", " ".join(segmenter.segment(line))]]
            for epoch in (1, 2, 3):
                drawn = segmenter.segment(
                    line, dropout=plan.dropout["src"], seed=plan.run.seed, epoch=epoch, sentence=number
                )
                rows.append([f"epoch {epoch}", " ".join(drawn)])
            if len({shown for _, shown in rows}) == len(rows):
                title = f"Sentence {number + 1} of the training text in three epochs of {plan.run.name}"
                return f"{title}:\n{align(rows)}"
    return ""


def is_readable(line: str) -> bool:
    words = line.split()
    return 8 <= len(words) <= 14 and all(word.isalpha() for word in words[:-1])


def align(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
