"""Runs a long command: its output goes to a log, the log is watched, and nothing outlives the process that started it.

A command that fails ends in an error with the end of its log. A second start of what still runs is refused: the
command holds a lock for as long as it lives, even if the process that started it was killed. One that is about to end,
since its call was killed, is waited for.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from bpe_dropout import InputError

_POLL = 0.2
TAIL = 15
ENDING = 60.0  # seconds in which a stage notices that the call which it was part of was killed, and ends


def run_logged(
    command: Sequence[str],
    log: Path,
    watch: Callable[[str], bool] = lambda line: False,
    environment: Mapping[str, str] | None = None,
    output: Path | None = None,
    tick: Callable[[], None] = lambda: None,
    keep: Sequence[int] = (),
) -> bool:
    """Runs a command; `watch` sees each line of its log, and may say that it is enough. True if it did.

    `tick` is called several times a second, to show progress. Standard error goes to the log, and standard output too,
    or to `output`. Locks to `keep` are held for as long as the command lives.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with held(log) as lock, log.open("ab") as out, log.open("rb") as seen:
        seen.seek(0, os.SEEK_END)
        if ends_in_a_line(log):  # of a process that was killed
            out.write(b"\n")
        out.write(f"$ {' '.join(command)}\n".encode())
        out.flush()
        with contextlib.ExitStack() as stack:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stack.enter_context(output.open("wb")) if output else out,
                stderr=out,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
                preexec_fn=die_with_parent,
                pass_fds=(lock, *keep),
            )
            try:
                enough = follow(process, seen, watch, tick)
            finally:
                stop(process)
    if not enough and process.returncode != 0:
        raise InputError(f"{command[0]} failed with {process.returncode}. The end of {log}:\n{end_of(log)}")
    return enough


def held(log: Path) -> contextlib.AbstractContextManager[int]:
    """The lock of what is done with a log. Nobody else writes to it then."""
    path = log.with_suffix(".lock")
    return locked(path, f"this is being done already, by another process, which holds {path}", ENDING)


def ends_in_a_line(log: Path) -> bool:
    """Whether the last line of a log has no end."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 1))
        return file.read() not in (b"", b"\n")


def follow(
    process: subprocess.Popen[bytes], log: IO[bytes], watch: Callable[[str], bool], tick: Callable[[], None]
) -> bool:
    rest = b""
    while True:
        ended = process.poll() is not None
        rest += log.read()
        *lines, rest = rest.split(b"\n")
        if any([watch(line.decode(errors="replace")) for line in lines]):
            return True
        if ended:
            return False
        tick()
        time.sleep(_POLL)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a command and what it started, if it has not ended."""
    if process.poll() is not None:
        return
    for number, seconds in ((signal.SIGTERM, 15), (signal.SIGKILL, 15)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@contextlib.contextmanager
def locked(path: Path, busy: str, seconds: float = 0.0) -> Iterator[int]:
    """A lock that a kill does not leave behind; what to say where another process holds it for longer than so many
    seconds."""
    deadline = time.monotonic() + seconds
    with path.open("ab") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise InputError(busy) from None
                time.sleep(_POLL)
        yield file.fileno()


def end_of(log: Path, lines: int = TAIL) -> str:
    return "\n".join(log.read_text("utf-8", errors="replace").rstrip().split("\n")[-lines:])
