"""What all stages share: their command line, errors as sentences, and progress that is seen in a log, too."""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bpe_dropout import InputError
from bpe_dropout.cli import TerminalLine, describe

from .corpora import CONFIGS
from .runs import Plan, Run, plan_run

_EVERY = 15.0  # seconds between lines of progress where there is no terminal


class Stage(argparse.ArgumentParser):
    """A command whose help is its module's docstring; what goes wrong is a sentence."""

    def __init__(self, text: str | None, name: str = "") -> None:
        name = name or f"python -m scripts.{Path(sys.argv[0]).stem}"
        super().__init__(prog=name, description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
        sys.excepthook = explain

    def add_configs(self) -> None:
        self.add_argument("--configs", type=Path, default=CONFIGS, metavar="FOLDER", help="(default: configs)")

    def add_run(self) -> None:
        """A run, by its name; `plan_of` gives its settings."""
        self.add_argument("run", metavar="RUN", help="the name of a run")
        self.add_configs()


def plan_of(options: argparse.Namespace) -> Plan:
    return plan_run(Run.parse(options.run), options.configs)


def explain(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    if isinstance(error, InputError):
        print(f"error: {error}", file=sys.stderr)
    elif isinstance(error, BrokenPipeError):  # `make list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    elif isinstance(error, OSError) and error.filename:
        print(f"error: {describe(error)}", file=sys.stderr)
    elif isinstance(error, KeyboardInterrupt):
        print("\ninterrupted; the next call goes on from here", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


class Reporter(TerminalLine):
    """Progress: a line that is written over on a terminal, and where there is none a line in the log now and then."""

    def __init__(self) -> None:
        super().__init__()
        self._logged = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether what is shown now would be seen."""
        return sys.stderr.isatty() or time.monotonic() - self._logged >= _EVERY

    def show(self, text: str) -> None:
        if sys.stderr.isatty():
            super().show(text)
        elif self.is_due:
            self._logged = time.monotonic()
            print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write under another name, which takes its own when it is whole.

    The other name is this process's own: two that make the same file, on one machine or two, do not write into each
    other's. What a killed process of this machine has left behind is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    host = socket.gethostname()
    for left in path.parent.glob(glob.escape(f"{path.name}.{host}.") + "*.part"):
        number = left.name.split(".")[-2]
        if number.isdigit() and not is_running(int(number)):
            left.unlink(missing_ok=True)
    part = path.with_name(f"{path.name}.{host}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


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
