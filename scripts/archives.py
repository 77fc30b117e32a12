"""Reads files inside archives, and archives inside archives, as if an archive were a folder:

    with open_inside(Path("data/downloads/wit3/2015-01.tgz/2015-01/texts/en/vi/en-vi.tgz/en-vi/README")) as file: ...

Nothing is unpacked, so an archive can write nowhere, whatever names it has inside. Gzipped files come out unpacked.
"""

from __future__ import annotations

import contextlib
import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from bpe_dropout import InputError

TAR = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
ZIP = (".zip", ".whl")
BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError)


@contextlib.contextmanager
def open_inside(path: Path) -> Iterator[IO[bytes]]:
    """A file for reading, wherever it is; errors while it is read name it."""
    outer, inner = split_path(path)
    with contextlib.ExitStack() as stack:
        try:
            file: IO[bytes] = stack.enter_context(outer.open("rb"))
            yield descend(stack, file, outer.name, inner, outer)
        except BROKEN as error:
            raise InputError(
                f"{outer} is damaged, or not what its name says ({error}): remove it, and it is fetched again"
            ) from None


def split_path(path: Path) -> tuple[Path, list[str]]:
    """The file on the disk, and the names inside."""
    outer, inner = path, list[str]()
    while not outer.is_file():
        if outer.is_dir() or outer == outer.parent:
            raise InputError(f"there is no file {path}")
        inner.insert(0, outer.name)
        outer = outer.parent
    return outer, inner


def descend(stack: contextlib.ExitStack, file: IO[bytes], name: str, inner: list[str], outer: Path) -> IO[bytes]:
    if not inner:
        return cast(IO[bytes], stack.enter_context(gzip.open(file))) if name.endswith(".gz") else file
    if name.endswith(ZIP):
        archive = stack.enter_context(zipfile.ZipFile(file))
        member = "/".join(inner)
        if member not in archive.namelist():
            raise InputError(f"{outer} holds no {member}")
        return descend(stack, stack.enter_context(archive.open(member)), member, [], outer)
    if not name.endswith(TAR):
        raise InputError(f"{outer}: {name} is not an archive, so there is no {'/'.join(inner)} inside")
    tar = stack.enter_context(tarfile.open(fileobj=file, mode="r|*"))  # noqa: SIM115
    for entry in tar:
        parts = [part for part in PurePosixPath(entry.name).parts if part != "."]
        if entry.isfile() and parts == inner[: len(parts)]:
            opened = tar.extractfile(entry)
            assert opened is not None
            return descend(stack, opened, entry.name, inner[len(parts) :], outer)
    raise InputError(f"{outer} holds no {'/'.join(inner)}")


def members(path: Path) -> list[str]:
    """The names in a zip file or wheel."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except BROKEN as error:
        raise InputError(f"{path} is damaged ({error}): remove it, and it is fetched again") from None


def read_inside(path: Path) -> bytes:
    with open_inside(path) as file:
        return file.read()
