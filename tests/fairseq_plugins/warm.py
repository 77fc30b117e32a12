"""Runs fairseq's commands in forks of a process that has imported fairseq: the import takes longer than most of what
the tests do with it.

    code, out = Warm().run(command, stdin, cwd, environment)

Each fork is a process of its own. It runs the command, a script of Python's or `python -m fairseq_plugins`, with its
own arguments, folder, environment and streams, and ends as Python does. What differs from a new process is only that
modules of fairseq and torch are imported already: commands whose environment matters to an import must be started
otherwise.
"""

from __future__ import annotations

import json
import logging
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from tests.patience import wait_until

READY = "ready\n"


class Warm:
    """The process that imports fairseq, and is forked. It begins with the first command, and ends with the tests."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None

    def run(self, command: Sequence[str], stdin: str, cwd: Path, environment: Mapping[str, str]) -> tuple[int, str]:
        """The exit code of a command, and what it printed."""
        with tempfile.TemporaryDirectory() as folder:
            streams = Path(folder)
            code, out = streams / "code", streams / "stdout"
            (streams / "stdin").write_text(stdin)
            call = {"command": command, "cwd": str(cwd), "environment": dict(environment)}
            process = self._send(json.dumps({**call, "streams": folder}), environment)

            def has_ended() -> bool:
                assert process.poll() is None, "the process that is forked has ended"
                return code.exists()

            wait_until(has_ended, lambda: out.read_text())
            return int(code.read_text()), out.read_text()

    def _send(self, call: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        with self._lock:  # tests run two commands at a time
            if self._process is None:
                command = [sys.executable, __file__]
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
                self._process = subprocess.Popen(command, env=environment, text=True, **pipes)
                assert self._process.stdout
                assert READY in iter(self._process.stdout.readline, ""), "fairseq cannot be imported"
            assert self._process.stdin
            self._process.stdin.write(call + "\n")
            self._process.stdin.flush()
            return self._process


def wait_for_call() -> dict[str, Any]:
    """The next call, in a process of its own; the forked one goes on waiting, and ends without a word."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks are not waited for
    for line in iter(sys.stdin.readline, ""):
        if os.fork():
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        call: dict[str, Any] = json.loads(line)
        command = os.fork()
        if not command:
            return call
        _, status = os.waitpid(command, 0)
        streams = Path(call["streams"])
        (streams / "ended").write_text(str(os.waitstatus_to_exitcode(status)))
        (streams / "ended").rename(streams / "code")
        os._exit(0)
    os._exit(0)


def take_over(call: dict[str, Any]) -> None:
    """Arguments, folder, environment and streams are those of the call."""
    streams = Path(call["streams"])
    for name, numbers, mode in (("stdin", (0,), os.O_RDONLY), ("stdout", (1, 2), os.O_WRONLY | os.O_CREAT)):
        opened = os.open(streams / name, mode, 0o600)
        for number in numbers:
            os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115, the other has read ahead
    os.environ.clear()
    os.environ.update(call["environment"])
    os.chdir(call["cwd"])


def execute(command: Sequence[str]) -> None:
    """As Python begins with a script, or with `-m` and a module."""
    if command[1] == "-m":
        sys.argv, sys.path[0] = list(command[2:]), os.getcwd()
        runpy.run_module(command[2], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = list(command), str(Path(command[0]).parent)
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    import fairseq.trainer  # noqa: F401

    # Which has set up logging on its way. The commands do so themselves, before they import it.
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    sys.stdout.write(READY)
    sys.stdout.flush()
    call = wait_for_call()
    take_over(call)
    execute(call["command"])
