"""What all stages share: their command line, errors as sentences, and progress that is seen in a log, too."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from bpe_dropout import InputError
from bpe_dropout.files import describe, whole
from bpe_dropout.progress import Progress

from .corpora import CONFIGS
from .runs import Plan, Run, plan_run
from .testsets import TEST, TestSet, read_testset


class Stage(argparse.ArgumentParser):
    """A command whose help is its module's docstring; what goes wrong is a sentence."""

    def __init__(self, text: str | None, name: str = "") -> None:
        name = name or f"python -m scripts.{Path(sys.argv[0]).stem}"
        super().__init__(prog=name, description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
        sys.excepthook = explain
        write_whole_lines()

    def add_configs(self) -> None:
        self.add_argument("--configs", type=Path, default=CONFIGS, metavar="FOLDER", help="(default: configs)")

    def add_run(self) -> None:
        """A run, by its name; `plan_of` gives its settings."""
        self.add_argument("run", metavar="RUN", help="the name of a run")
        self.add_configs()

    def add_testset(self) -> None:
        """A test set, by its name; `testset_of` gives its settings."""
        self.add_argument("--test-set", default=TEST, metavar="NAME", help="of configs/testsets (default: %(default)s)")


def plan_of(options: argparse.Namespace) -> Plan:
    return plan_run(Run.parse(options.run), options.configs)


def testset_of(options: argparse.Namespace) -> TestSet:
    return read_testset(options.test_set, options.configs)


def write_whole_lines() -> None:
    """Each line is written at once, so that the lines of stages that share a terminal do not run into each other. With
    PYTHONUNBUFFERED, print would write a line and its end one after the other."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)


def explain(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    if isinstance(error, InputError):
        print(f"error: {error}", file=sys.stderr)
    elif isinstance(error, BrokenPipeError):  # `make list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    elif isinstance(error, OSError) and error.filename:
        print(f"error: {describe(error)}", file=sys.stderr)
    elif isinstance(error, KeyboardInterrupt):
        print("\ninterrupted; the next call resumes from here", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


class Reporter(Progress):
    """Progress of a stage: on a terminal, or, without one, a line in its log now and then."""

    def __init__(self) -> None:
        super().__init__(every=15)


def write_json(path: Path, content: Any) -> None:
    with whole(path) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}): remove it, and it is made again") from None


def describe_time(seconds: float) -> str:
    """
    >>> describe_time(50), describe_time(3000), describe_time(90000)
    ('1 min', '50 min', '25.0 h')
    """
    return f"{max(1, round(seconds / 60))} min" if seconds < 2 * 3600 else f"{seconds / 3600:.1f} h"
