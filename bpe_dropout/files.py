"""Files in and out: read as bytes, written whole or not at all.

with whole(Path("codes")) as part:
    part.write_bytes(...)           # "codes" appears, or is replaced, when the block ends
"""

from __future__ import annotations

import contextlib
import errno
import glob
import io
import os
import secrets
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import InputError


@contextlib.contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A temporary path to write a file to; the file gets its own name when it is whole."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = part_of(path)
    try:
        yield part
        os.replace(part, path)
    except OSError as error:
        if error.filename in (part, str(part)):
            error.filename = str(path)  # the name that the user knows
        raise
    finally:
        with contextlib.suppress(OSError):  # what could not be written, cannot always be removed
            part.unlink(missing_ok=True)


def part_of(path: Path) -> Path:
    """The temporary name of a file or folder that is being made.

    It belongs to this call alone, so two processes that make the same, on one machine or two, do not write into each
    other's. Leftovers of killed processes of this machine are removed.
    """
    for left in left_by_the_killed(path, ".part"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)
    # Not the number of the process alone: in a container it may be that of the one before, or of the one beside it.
    return path.with_name(f"{path.name}.{socket.gethostname()}.{os.getpid()}-{secrets.token_hex(4)}.part")


def left_by_the_killed(path: Path, ending: str) -> list[Path]:
    """What processes of this machine that run no longer have left under temporary names."""
    found = []
    for left in path.parent.glob(glob.escape(f"{path.name}.{socket.gethostname()}.") + f"*{ending}"):
        number = left.name.split(".")[-2].partition("-")[0]
        if number.isdigit() and not is_running(int(number)):
            found.append(left)
    return found


def clean_up_on_sigterm() -> None:
    """SIGTERM ends the process as an error does, with exit code 143, so that unfinished files are removed."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@contextlib.contextmanager
def open_input(path: str | None) -> Iterator[BinaryIO]:
    """A file, or standard input if none is named."""
    if path is None or path == "-":
        yield sys.stdin.buffer
    else:
        with open(path, "rb") as source:
            yield source


@contextlib.contextmanager
def open_output(path: str | None, *inputs: str | Path) -> Iterator[io.FileIO]:
    """A file that appears when it is whole, or standard output if none is named.

    It must not be one of the inputs, the files that are read meanwhile ("-": standard input). A link stays one: the
    file that it points to is written. A file that is there already keeps its mode.
    """
    if path is None or path == "-":
        with io.FileIO(sys.stdout.fileno(), "w", closefd=False) as out:
            yield out
    elif Path(path).exists() and not Path(path).is_file():  # /dev/null, a pipe
        with io.FileIO(path, "w") as out:
            yield out
    else:
        check_output(path, *inputs)
        with whole(os.path.realpath(path)) as part, io.FileIO(part, "w") as out:
            if os.path.exists(path):
                os.fchmod(out.fileno(), os.stat(path).st_mode & 0o777)
            yield out


def check_output(path: str | Path, *inputs: str | Path) -> None:
    """An error if a file cannot be written, or is one of the inputs: no command writes over what it reads."""
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {Path(path).parent}")
    if not os.path.exists(path):
        return
    if not os.access(path, os.W_OK):
        raise InputError(f"{path} cannot be written: the file is there, and may only be read. Name another output")
    there = os.stat(path)
    for one in inputs:
        with contextlib.suppress(OSError):  # one that is not there is not this one
            if os.path.samestat(there, os.fstat(sys.stdin.fileno()) if one == "-" else os.stat(one)):
                raise InputError(f"{path} is read by this command, and would be lost: name another output")


def write(out: io.FileIO, data: bytes) -> None:
    """Writes all of it: without a buffer, so that a full disk shows here and not at the end."""
    view = memoryview(data)
    while view:
        view = view[out.write(view) :]


def describe(error: OSError) -> str:
    """What went wrong with a file, in a sentence."""
    what = f"{error.filename}: " if error.filename else ""
    advice = "; free some space and run it again" if error.errno == errno.ENOSPC else ""
    return f"{what}{error.strerror or error}{advice}"
