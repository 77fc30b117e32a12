"""Lines of UTF-8 text: they end at \\n and nowhere else, whatever other line breaks they hold."""

from __future__ import annotations

import select
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import InputError

BLOCK = 8 << 20


def read_lines(path: str | Path, expected: str) -> list[str]:
    """The lines of a small file; `expected` says what it should be, in case it is not even text."""
    data = Path(path).read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: not valid UTF-8; is this {expected}?") from None
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def decode_lines(file: Iterable[bytes], path: str | Path) -> Iterator[str]:
    """The lines of a file, without their \\n; what is not UTF-8 is an error with its line."""
    for number, line in enumerate(file, 1):
        try:
            yield line.removesuffix(b"\n").decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{path}, line {number}: not valid UTF-8, at byte {error.start + 1} of the line") from None


def blocks_of_lines(source: BinaryIO) -> Iterator[bytes]:
    """A file in blocks of whole lines. What a pipe has is passed on without waiting for more.

    The last line may lack its \\n.
    """
    rest: list[bytes] = []
    while block := _read_what_is_there(source):
        end = block.rfind(b"\n") + 1
        if end == 0:
            rest.append(block)
            continue
        yield b"".join([*rest, block[:end]])
        rest = [block[end:]]
    if last := b"".join(rest):
        yield last


def _read_what_is_there(source: BinaryIO) -> bytes:
    """Up to BLOCK bytes. A pipe gives little at a time, so more is read as long as it follows at once."""
    parts = [source.read1(BLOCK)]  # type: ignore[attr-defined]
    size = len(parts[0])
    while parts[-1] and size < BLOCK and not source.isatty() and select.select([source], [], [], 0.001)[0]:
        parts.append(source.read1(BLOCK - size))  # type: ignore[attr-defined]
        size += len(parts[-1])
    return b"".join(parts)
