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
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from bpe_dropout import InputError
from bpe_dropout.errors import check_number

from .commands import die_with_parent, locked
from .corpora import ROOT, Download, read_downloads
from .devices import count_gpus, read_numbers, runs_at_once
from .download import fetch
from .kept import RESULTS, finished, keep_results, measured_of, products, records
from .measures import MEASURES, check_measure
from .paper import fill, merge, study
from .runs import Group, Plan, Run, Target, find_target, plan_run
from .showing import show_left, show_list, show_plan, show_results
from .slurm import partition_minutes, wait_for_jobs
from .stage import Stage
from .testsets import find_testsets, read_testset

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


def split(target: Target, plans: list[Plan], missing: set[str]) -> tuple[Target, list[Run]]:
    """What of a target can be done without the files that are missing, and the runs that cannot."""
    left = [plan.run for plan in plans if missing & set(plan.corpus.downloads)]
    possible = replace(
        target,
        groups=tuple(group for group in target.groups if not set(group.runs) & set(left)),
        measures=tuple((measure, run) for measure, run in target.measures if run not in left),
    )
    return possible, left


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


if __name__ == "__main__":
    sys.exit(main())
