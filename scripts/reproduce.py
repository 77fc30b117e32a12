"""The command line of the reproduction: make calls this.

    python -m scripts.reproduce list               every target, and what it needs
    python -m scripts.reproduce plan TARGET        what would be done
    python -m scripts.reproduce run TARGET         does it; what is finished is not done again

TARGET is one of the list, the name of a run, MEASURE.RUN for a measurement of it (lengths.RUN ...), TESTSET.RUN for its
scores on another test set (misspelled.RUN ...), fill-NAME for all that a table or figure needs (fill-table-main,
fill-report ...), or `study` for the paper's claims tried on small models. The work itself is in experiments/Snakefile
and scripts/; everything after `--` goes to Snakemake as it is.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from bpe_dropout import InputError
from bpe_dropout.data.folder import DataFolder
from bpe_dropout.errors import check_number

from .commands import die_with_parent, locked
from .corpora import ROOT, Download, read_corpora, read_downloads
from .devices import count_gpus, read_numbers, runs_at_once
from .download import fetch
from .kept import (
    RESULTS,
    RUNS,
    comparison_of,
    finished,
    keep_results,
    measured_of,
    products,
    records,
    result_of,
)
from .measures import MEASURES, check_measure
from .paper import fill, merge, study
from .runs import Group, Plan, Run, Target, find_target, find_targets, plan_run
from .slurm import partition_minutes, wait_for_jobs
from .stage import Stage, describe_time, read_json
from .testsets import TEST, find_testsets, read_testset

PROFILES = ROOT / "experiments" / "profiles"


def main(arguments: list[str] | None = None) -> int:
    stage = Stage(__doc__)
    stage.add_argument("command", choices=("list", "plan", "run"), help="see above")
    stage.add_argument("target", nargs="?", metavar="TARGET", help="what to do")
    stage.add_argument("--profile", default="local", metavar="NAME", help="local or slurm, or a folder (%(default)s)")
    stage.add_argument("--seed", type=int, nargs="+", default=[1], metavar="N", help="of the runs, one or more (1)")
    stage.add_argument("--runs", nargs="*", default=[], metavar="RUN", help="for fill-NAME: of these, not the paper's")
    stage.add_configs()
    stage.add_argument("--directory", type=Path, default=Path(), metavar="FOLDER", help="where data and runs are kept")
    given = sys.argv[1:] if arguments is None else arguments
    mine, more = list(given), list[str]()
    if "--" in mine:
        cut = mine.index("--")
        mine, more = mine[:cut], mine[cut + 1 :]
    options = stage.parse_args(mine)
    options.configs = options.configs.resolve()
    if options.command == "list":
        print(show_list(options.configs))
        return 0
    if not options.target:
        raise InputError("name a target: `make list` shows them")
    read_numbers(os.environ)  # so that a mistake is reported here, and not by Snakemake
    seeds = dict.fromkeys(check_number("SEED", seed, 2**32) for seed in options.seed)
    target = merge([resolve(options.target, options.runs, options.configs, seed) for seed in seeds])
    return run_target(target, options, more)


def resolve(name: str, runs: list[str], configs: Path, seed: int) -> Target:
    """What a name means: a table or figure to fill, a measurement, a test set, or whatever find_target knows."""
    if name == "study":
        return study(configs)
    if name.startswith("fill-"):
        return fill(name.removeprefix("fill-"), runs, configs, seed)
    kind, _, run_name = name.partition(".")
    if kind in (*MEASURES, *find_testsets(configs)) and ".seed" in run_name:
        run = Run.parse(run_name)
        plan = plan_run(run, configs)
        if kind not in MEASURES:
            return Target(name, f"one run on {read_testset(kind, configs).text}", (Group((run,), kind),))
        check_measure(kind, plan)
        return Target(name, MEASURES[kind].title, (), ((kind, run),))
    return find_target(name, configs, seed)


def run_target(target: Target, options: argparse.Namespace, more: list[str]) -> int:
    options.directory.mkdir(parents=True, exist_ok=True)
    downloads = options.directory / "data" / "downloads"
    done = finished(target, options.directory, options.configs)
    plans = [plan_run(run, options.configs) for run in runs_left(target, done)]
    there = len(target.runs_and_measured) - len(plans)
    missing = missing_files(plans, downloads, read_downloads(options.configs))
    slurm = is_slurm(options.profile)
    if options.command == "plan":
        print(show_plan(target, plans, there), flush=True)
        for name, download in missing.items():
            print(f"first, put {name} in place, as {downloads / name}: {download.local}")
        possible, _ = split(target, plans, set(missing))
        return show_steps(snakemake(possible, options, more, done), slurm)
    reasons = dict[str, InputError]()
    for name, download in missing.items():
        try:
            fetch(name, download, downloads / name, os.environ.get("DATA_MIRROR"))
        except InputError as error:
            reasons[name] = error
    whole = target
    target, left = split(whole, plans, set(reasons))
    if reasons and not goals(target, done):
        raise next(iter(reasons.values()))
    command = snakemake(target, options, more, done)
    os.chdir(options.directory)
    busy = f"a reproduction is running in {Path().resolve()} already; wait for it, or end it"
    code = 0
    with locked(Path(".reproduction.lock"), busy) as lock:
        print(show_plan(target, [plan for plan in plans if plan.run not in left], there), flush=True)
        if slurm:
            wait_for_jobs(Path().resolve())
        if goals(target, done):
            code = run_quietly(command, lock, after_step=partial(keep_results, target, options.configs))
    keep_results(target, options.configs)
    if shown := show_results(target, options.configs):
        print("\n" + shown)
    for measure, run in target.measures:
        if (RESULTS / measure / f"{run.name}.json").is_file():
            print(f"{MEASURES[measure].title}: {RESULTS / measure / run.name}.json")
    if code:
        print(
            f"\n{target.name} is not finished: a stage has failed, see above. The logs are in "
            f"{Path('experiments/logs').resolve()}; the next `make {target.name}` resumes from here.",
            file=sys.stderr,
        )
    if left:
        print("\n" + show_left(whole, left, list(reasons.values())), file=sys.stderr)
    return 1 if code or left else 0


def runs_left(target: Target, done: Collection[Path]) -> list[Run]:
    """The runs of which something is still to be made: those that lack a result, on any test set, then those that only
    lack a measurement, for which a model that was trained on another machine is trained again."""
    lacking = [(record, run) for path, (record, run) in records(target).items() if path not in done]
    waiting, unscored = {run for _, run in lacking}, {run for record, run in lacking if record not in MEASURES}
    left = [run for run in target.runs_and_measured if run in waiting]
    return sorted(left, key=lambda run: run not in unscored)


def plans_of(target: Target, configs: Path) -> list[Plan]:
    return [plan_run(run, configs) for run in target.runs_and_measured]


def split(target: Target, plans: list[Plan], missing: set[str]) -> tuple[Target, list[Run]]:
    """What of a target can be done without the files that are missing, and the runs that cannot."""
    left = [plan.run for plan in plans if missing & set(plan.corpus.downloads)]
    possible = replace(
        target,
        groups=tuple(group for group in target.groups if not set(group.runs) & set(left)),
        measures=tuple((measure, run) for measure, run in target.measures if run not in left),
    )
    return possible, left


def show_left(target: Target, left: list[Run], reasons: list[InputError]) -> str:
    lines = [f"Left out for missing files, {len(left)} of the {len(target.runs_and_measured)} runs of {target.name}:"]
    lines += [f"  {run.name}" for run in left]
    return "\n".join([*lines, *map(str, reasons), f"With them in place, `make {target.name}` does the rest."])


# What Snakemake says of itself. What stages say, errors, and how many steps are done, is left.
NOISE = (
    r"Using profile |Assuming unrestricted |Building DAG|Using shell: |Provided cores: |Provided resources: |"
    r"Rules claiming more|Resources before job selection|Select jobs to|Execute \d+ jobs?\.|"
    r"\[\w{3} \w{3} +\d+ [\d:]+ \d{4}\]$|Finished jobid: |Complete log|Nothing to be done|Elapsed time: |host: |"
    r"This was a dry-run |The order of jobs does not reflect |\s*$"
)
COUNTS = r"Job stats:|job +count|-+  -+|[a-z_]+ +\d+$"  # of steps to do: what a plan shows


STEP = r"\d+ of \d+ steps"


def run_quietly(command: list[str], lock: int, after_step: Callable[[], None]) -> int:
    """Runs Snakemake, and shows what of its output is of use. Ctrl-C reaches it, too: it ends its stages first."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent,
        pass_fds=(lock,),  # held for as long as Snakemake lives
    )
    assert process.stdout
    while True:
        try:
            for line in process.stdout:
                text = line.decode(errors="replace")
                if not re.match(f"{NOISE}|{COUNTS}", text):
                    sys.stdout.buffer.write(line)
                    sys.stdout.flush()
                if re.match(STEP, text):
                    after_step()
            return process.wait()
        except KeyboardInterrupt:
            continue


def show_steps(command: list[str], slurm: bool) -> int:
    """How many steps of each kind Snakemake would take. It says so twice, and why at length; errors are shown whole.
    A plan is made in this process, which has read the configuration already: that saves a third of the time."""
    if command[-1] == "--":
        print("nothing is left to do")
        return 0
    if not slurm:
        leave_out_slurm()
    from snakemake.cli import main as run_snakemake

    said, code = io.StringIO(), 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            run_snakemake(command[command.index("snakemake") + 1 :])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
    lines = [line for line in said.getvalue().splitlines() if not re.match(NOISE, line)]
    if code == 0:
        lines = list(dict.fromkeys(line for line in lines if re.match(COUNTS, line))) or ["nothing is left to do"]
    print("\n".join(lines), flush=True)
    return code


def leave_out_slurm() -> None:
    """Snakemake imports all its plugins. That for Slurm imports pandas, which takes a quarter of a plan's time."""
    import pkgutil

    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

    find = pkgutil.iter_modules
    pkgutil.iter_modules = lambda *paths: (one for one in find(*paths) if one.name != "snakemake_executor_plugin_slurm")
    try:
        ExecutorPluginRegistry()  # the only one that there will be
    finally:
        pkgutil.iter_modules = find


def missing_files(plans: list[Plan], downloads: Path, known: dict[str, Download]) -> dict[str, Download]:
    """Files that only the user can have, and that are not there. They are none of Snakemake's, which removes what it
    makes again: they are asked for, or taken from the mirror, before it starts."""
    files = dict.fromkeys(name for plan in plans for name in plan.corpus.downloads)
    return {name: known[name] for name in files if known[name].local and not (downloads / name).is_file()}


def snakemake(target: Target, options: argparse.Namespace, more: list[str], done: Collection[Path] = ()) -> list[str]:
    """The command that makes what of a target is not done."""
    profile = find_profile(options.profile)
    settings = [f"configs={options.configs}", f"order={' '.join(run.name for run in runs_left(target, done))}"]
    settings += [f"finished={' '.join(map(str, done))}"] if done else []
    slurm, limit = is_slurm(options.profile), None
    if slurm:
        defaults = read_profile(profile).get("default-resources") or {}
        limit = read_numbers(os.environ)["MAX_MINUTES"] or partition_minutes(defaults.get("slurm_partition"))
        settings += ["slurm=1", *([f"max_minutes={limit}"] if limit else [])]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "experiments" / "Snakefile")]
    command += ["--directory", str(options.directory.resolve()), "--profile", str(profile), "--config", *settings]
    if not slurm:
        slots = runs_at_once(count_gpus(os.environ), read_numbers(os.environ)["GPUS"])
        command += ["--resources", f"device={slots}"]  # so many trainings at once have GPUs of their own
    elif limit and limit < int(defaults.get("runtime", limit)):
        command += ["--default-resources", *(f"{key}={value}" for key, value in {**defaults, "runtime": limit}.items())]
    if options.command == "plan":
        command += ["--dry-run"]
    # Asked for by name, they are measured again.
    asked = [name for name, variable in (("embeddings", "TOKENS"), ("timing", "REPEATS")) if os.environ.get(variable)]
    again = [str(measured_of(name, run)) for name, run in target.measures if name in asked]
    command += ["--forcerun", *again] if again else []
    return [*command, *more, "--", *goals(target, done)]


def is_slurm(profile: str) -> bool:
    return read_profile(find_profile(profile)).get("executor") == "slurm"


def find_profile(name: str) -> Path:
    """The folder of a profile: one of ours, by its name, or any other."""
    profile = PROFILES / name if (PROFILES / name).is_dir() else Path(name).resolve()
    if not (profile / "config.yaml").is_file():
        there = ", ".join(sorted(path.name for path in PROFILES.iterdir()))
        raise InputError(f"there is no profile {name}: it is one of {there}, or a folder with a config.yaml")
    return profile


def read_profile(profile: Path) -> dict[str, Any]:
    return yaml.safe_load((profile / "config.yaml").read_text("utf-8")) or {}


def goals(target: Target, done: Collection[Path] = ()) -> list[str]:
    return [str(path) for path in products(target) if path not in done]


# What is shown.


def show_list(configs: Path) -> str:
    rows = [["target", "what it is", "runs", "download", "disk", "training"]]
    wrong = dict.fromkeys(read_corpora(configs).errors.values())
    targets = find_targets(configs)
    first = [targets.pop(name) for name in ("demo", "paper") if name in targets]
    for name in ("study", "fill-report"):
        try:
            first.append(resolve(name, [], configs, seed=1))
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


if __name__ == "__main__":
    sys.exit(main())
