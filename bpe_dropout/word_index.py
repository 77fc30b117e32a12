"""The .words file beside a text: its words as numbers, made once and mapped into memory.

A header, then the sections, each an array. The header identifies the text by its size, its modification time and its
digest: when the text changes, the file is rebuilt. No process ever reads half of one (files.py), and it is checked when
it is opened, since its source may not be trusted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _core
from .errors import InputError
from .files import whole
from .lines import BLOCK, blocks_of_lines
from .segmenter import invalid_line

Progress = Callable[[int, int], None]


class Reader(Protocol):
    """What makes words of a text, other than its white space."""

    @property
    def name(self) -> str:
        """Part of the name of the index; another one for every other way to make words."""

    def lines(self, block: bytes) -> bytes:
        """Lines of text as lines of words with spaces between them."""


_MAGIC = b"BPE-dropout words 1\n"
_HEADER = 4096
_SECTIONS = {
    "words": np.uint32,
    "sentence_ends": np.uint64,
    "type_ends": np.uint64,
    "counts": np.uint64,
    "types": np.uint8,
}


def open_index(
    text: Path, progress: Progress | None, reader: Reader | None = None
) -> tuple[dict[str, NDArray[Any]], str]:
    """The arrays of the index of a text (words, sentence_ends, type_ends, counts and types), and the text's digest."""
    mapped, header = _open_index(text, progress, reader)
    return _sections(mapped, header), header["digest"]


def _sections(mapped: mmap.mmap, header: dict[str, Any]) -> dict[str, NDArray[Any]]:
    arrays = {}
    for name, dtype in _SECTIONS.items():
        begin, size = header["sections"][name]
        itemsize = np.dtype(dtype).itemsize
        if begin < _HEADER or begin % 8 or size < 0 or size % itemsize or begin + size > len(mapped):
            raise ValueError(f"the section {name} is not within the file")
        arrays[name] = np.frombuffer(mapped, dtype, size // itemsize, begin)
    return arrays


def index_path(text: Path, reader: Reader | None = None) -> Path:
    """train.en -> train.en.words, or train.en.NAME.words of a reader"""
    return text.with_name(f"{text.name}.{reader.name}.words" if reader else f"{text.name}.words")


def _open_index(text: Path, progress: Progress | None, reader: Reader | None) -> tuple[mmap.mmap, dict[str, Any]]:
    stat = text.stat()
    path = index_path(text, reader)
    found = _read_index(path)
    if found is not None and _is_of(found[1], text, stat, path):
        return found
    is_open = False
    try:
        with whole(path) as part, part.open("w+b") as file:
            is_open = True
            mapped = _map_index(file, _write_index(file, text, progress, reader))
            os.fchmod(file.fileno(), stat.st_mode & 0o666)
        return mapped
    except OSError as error:
        if is_open:
            raise
        warnings.warn(
            f"{path} cannot be written ({error.strerror}); the text is read again each time it is loaded",
            stacklevel=3,
        )
    with tempfile.TemporaryFile() as file:
        return _map_index(file, _write_index(file, text, progress, reader))


def _read_index(path: Path) -> tuple[mmap.mmap, dict[str, Any]] | None:
    """The index at `path`, if there is one and it is whole."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    with file:
        start = file.read(_HEADER)
        if start and not start.startswith(_MAGIC):
            raise InputError(f"{path} is where the words of {path.stem} are kept, but it is something else: move it")
        try:
            header = json.loads(start[len(_MAGIC) :].rstrip(b"\0 \n"))
            if os.fstat(file.fileno()).st_size != header["size"]:
                return None
            mapped = _map_index(file, header)
            return mapped if _is_sound(*mapped) else None
        except (ValueError, KeyError, TypeError, IndexError):
            return None


def _is_of(header: dict[str, Any], text: Path, stat: os.stat_result, path: Path) -> bool:
    """Whether the text is still the one that the index was made from."""
    if header["text_size"] != stat.st_size:
        return False
    # A text that was changed within the tick of the clock in which it was read would look unchanged.
    if header["text_time"] == stat.st_mtime_ns and header["made"] - stat.st_mtime_ns > 2_000_000_000:
        return True
    if digest_of(text) != header["digest"]:
        return False
    _note_time(path, header, stat)
    return True


def digest_of(text: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with text.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _note_time(path: Path, header: dict[str, Any], stat: os.stat_result) -> None:
    """The same text with another time: noted, so that it is not compared again the next time."""
    noted = {**header, "text_time": stat.st_mtime_ns, "made": time.time_ns()}
    with contextlib.suppress(OSError), path.open("r+b") as file:
        if file.read(_HEADER) == _header_bytes(header):  # else another process has rebuilt it meanwhile
            file.seek(0)
            file.write(_header_bytes(noted))


def _header_bytes(header: dict[str, Any]) -> bytes:
    return (_MAGIC + json.dumps(header).encode()).ljust(_HEADER)


def _is_sound(mapped: mmap.mmap, header: dict[str, Any]) -> bool:
    """Whether every number in the index points to something: its source may not be trusted."""
    if not all(isinstance(header[name], int) for name in ("text_size", "text_time", "made")) or not header["digest"]:
        return False
    arrays = _sections(mapped, header)
    types = len(arrays["type_ends"]) - 1
    for ends, items in (("type_ends", "types"), ("sentence_ends", "words")):
        bounds = arrays[ends]
        if not len(bounds) or bounds[0] != 0 or bounds[-1] != len(arrays[items]) or np.any(bounds[1:] < bounds[:-1]):
            return False
    if len(arrays["counts"]) != types or (len(arrays["words"]) and int(arrays["words"].max()) >= types):
        return False
    # Every type is at least a character, and the characters are whole.
    starts = arrays["type_ends"][:-1]
    if np.any(starts == arrays["type_ends"][1:]) or np.any((arrays["types"][starts] & 0xC0) == 0x80):
        return False
    found = arrays["types"].tobytes()
    found.decode()
    return b" " not in found and b"\n" not in found  # which end words and lines


def _write_index(file: IO[bytes], text: Path, progress: Progress | None, reader: Reader | None) -> dict[str, Any]:
    index = _core.Index(_core.Split.SPACES if reader else _core.Split.WHITESPACE)
    digest = hashlib.blake2b(digest_size=16)
    sections: dict[str, tuple[int, int]] = {}

    def section(name: str, array: NDArray[Any]) -> None:
        file.write(b"\0" * (-file.tell() % 64))
        sections[name] = (file.tell(), array.nbytes)
        file.write(array.data if len(array) else b"")

    file.write(b"\0" * _HEADER)
    lines, words, done = 0, 0, 0
    ends: list[NDArray[np.uint64]] = [np.zeros(1, np.uint64)]
    with text.open("rb") as source:
        stat = os.fstat(source.fileno())
        for block in blocks_of_lines(source):
            digest.update(block)
            try:
                ids, line_ends = index.add(reader.lines(block) if reader else block)
            except _core.InvalidText as error:
                raise InputError(f"{text}, {invalid_line(error, lines)}") from None
            file.write(ids.data if len(ids) else b"")
            ends.append(line_ends + np.uint64(words))
            words += len(ids)
            lines += len(line_ends)
            done += len(block)
            if progress:
                progress(done, stat.st_size)
    sections["words"] = (_HEADER, 4 * words)
    section("sentence_ends", np.concatenate(ends))
    section("type_ends", index.ends())
    section("counts", index.counts())
    section("types", np.frombuffer(index.bytes(), np.uint8))
    header = {
        "size": file.tell(),
        "sections": sections,
        "text_size": done,
        "text_time": stat.st_mtime_ns,
        "made": time.time_ns(),
        "digest": digest.hexdigest(),
    }
    file.seek(0)
    file.write(_header_bytes(header))
    file.flush()
    return header


def _map_index(file: IO[bytes], header: dict[str, Any]) -> tuple[mmap.mmap, dict[str, Any]]:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), header
