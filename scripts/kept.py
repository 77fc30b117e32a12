"""Results are small, and may be published: they are kept in experiments/results, where git sees them.

    RUN.json, translations/RUN.txt     the scores of a run, and its translations of the test set
    comparisons/GROUP.METHODS.json     of runs with each other
    TESTSET/...                        the same for a test set other than `test`
    MEASURE/RUN.json                   measurements

`make study` and `make fill-NAME` do what is missing there: a run that was finished on another machine is not trained
again, and what is still to be trained is compared with its translations. A result counts as long as its run and its
test set have the settings that they had then, for what is left to do as for the report; to have one made again, remove
its file.
"""

from __future__ import annotations

import filecmp
import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from bpe_dropout.files import whole

from .measures import MEASURES, is_of_model
from .runs import AT_THE_LIMIT, Group, Plan, Run, Target, plan_run
from .stage import read_json
from .testsets import TEST, place

RUNS, COMPARISONS, MEASURED, RESULTS = (
    Path("experiments") / name for name in ("runs", "comparisons", "measures", "results")
)


def result_of(run: Run, testset: str = TEST) -> Path:
    return place(RUNS / run.name, testset) / "result.json"


def kept_result_of(run: Run, testset: str = TEST) -> Path:
    return place(RESULTS, testset) / f"{run.name}.json"


def comparison_of(group: Group) -> Path:
    return place(COMPARISONS / group.name, group.testset) / f"{group.systems}.json"


def measured_of(measure: str, run: Run) -> Path:
    return MEASURED / measure / f"{run.name}.json"


def translations_of(result: Path) -> Path:
    """The translations that a result is of.

    >>> str(translations_of(Path("experiments/runs/RUN/misspelled/result.json")))
    'experiments/runs/RUN/misspelled/test.txt'
    >>> str(translations_of(Path("experiments/results/misspelled/RUN.json")))
    'experiments/results/misspelled/translations/RUN.txt'
    """
    if result.name == "result.json":
        return result.with_name("test.txt")
    return result.parent / "translations" / f"{result.name.removesuffix('.json')}.txt"


def products(target: Target) -> dict[Path, Path]:
    """The files that a target is made of, and where each is kept."""
    made = {}
    for group in target.groups:
        for run in group.runs:
            made[result_of(run, group.testset)] = kept_result_of(run, group.testset)
    for measure, run in target.measures:
        made[measured_of(measure, run)] = RESULTS / measure / f"{run.name}.json"
    for group in target.groups:
        if len(group.runs) > 1:
            kept = place(RESULTS, group.testset) / "comparisons" / f"{group.name}.{group.systems}.json"
            made[comparison_of(group)] = kept
    return made


def records(target: Target) -> dict[Path, tuple[str, Run]]:
    """Its products that are of one run, by the test set or the measurement that they are of."""
    made = {result_of(run, group.testset): (group.testset, run) for group in target.groups for run in group.runs}
    return made | {measured_of(measure, run): (measure, run) for measure, run in target.measures}


def is_current(content: Any, plan: Plan, record: str, configs: Path) -> bool:
    """Whether a result on a test set, or a measurement, is one of the settings that its run has now. More updates would
    have changed nothing, if it did not stop at the limit."""
    if not isinstance(content, dict):
        return False
    then, now = content.get("configuration", {}), plan.settings()
    if content.get("training", {}).get("stopped") != AT_THE_LIMIT:
        now["updates at most"] = then.get("updates at most")
    scoring = None if record in MEASURES else plan.scoring(record, configs)
    return bool(json.loads(json.dumps([now, scoring])) == [then, content.get("scoring")])


def counts(content: Any, result: Any, plan: Plan, record: str, configs: Path) -> bool:
    """Whether a record of a run is one of the settings that the run has now. What was measured of a model is worth as
    much as the model's own `result`, if there is one."""
    is_worth_it = result is None or not is_of_model(record) or is_current(result, plan, TEST, configs)
    return is_worth_it and is_current(content, plan, record, configs)


def keep_results(target: Target, configs: Path) -> None:
    """Copies what is not kept yet, or was made since; not what an earlier call has left here, of other settings, or
    before the kept one came from elsewhere."""
    of = records(target)
    for made, kept in products(target).items():  # results first, and then comparisons
        if not made.is_file():
            continue
        if made in of:
            record, run = of[made]
            plan = plan_run(run, configs)
            if not is_current(read_json(made), plan, record, configs):
                continue
            is_older = kept.is_file() and made.stat().st_mtime_ns < kept.stat().st_mtime_ns
            if is_older and is_current(read_kept(kept), plan, record, configs):
                continue
        elif not compares_kept(read_json(made), kept.parent.parent):
            continue
        copies = {made: kept}
        if made.name == "result.json":
            copies = {translations_of(made): translations_of(kept), **copies}
        for source, copy in copies.items():
            if not copy.is_file() or not filecmp.cmp(source, copy, shallow=False):
                with whole(copy) as part:
                    shutil.copyfile(source, part)


def compares_kept(comparison: Any, folder: Path) -> bool:
    """Whether a comparison is of the scores that the results of a folder have."""
    kept = {run: read_kept(folder / f"{run}.json") or {} for run in comparison.get("bleu", {})}
    return all(kept[run].get("bleu") == score for run, score in comparison.get("bleu", {}).items())


def finished(target: Target, directory: Path, configs: Path) -> list[Path]:
    """Those products of a target that are kept already, and still of the settings that their run has; none of a
    target that does not ask for what is missing. What was made here is left to Snakemake, which knows more: whether
    the text is still the same."""
    if not target.fills:
        return []
    plans = {run: plan_run(run, configs) for run in target.runs_and_measured}
    kept, of = products(target), records(target)

    @cache
    def read(path: Path) -> dict[str, Any] | None:
        return read_kept(directory / path)

    @cache
    def is_there(made: Path) -> bool:
        record, run = of[made]
        return counts(read(kept[made]), read(kept_result_of(run)), plans[run], record, configs)

    found = [made for made in of if is_there(made)]
    for group in target.groups:
        results = {run.name: result_of(run, group.testset) for run in group.runs}
        if len(results) > 1 and all(map(is_there, results.values())):
            scores = {name: (read(kept[result]) or {})["bleu"] for name, result in results.items()}
            comparison = read(kept[comparison_of(group)]) or {}
            found += [comparison_of(group)] if comparison.get("bleu") == scores else []
    return [path for path in dict.fromkeys(found) if not (directory / path).exists()]


def read_kept(path: Path) -> dict[str, Any] | None:
    """A result without its translations is of no use: nothing can be compared with it."""
    if not path.is_file():
        return None
    content = read_json(path)
    is_result = isinstance(content, dict) and "bleu signature" in content
    return None if not isinstance(content, dict) or (is_result and not translations_of(path).is_file()) else content
