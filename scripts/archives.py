"""Reads files inside archives, and archives inside archives, as if an archive were a folder:

    with open_inside(Path("data/downloads/wit3/2015-01.tgz/2015-01/texts/en/vi/en-vi.tgz/en-vi/README")) as file: ...

Nothing is unpacked, so an archive can write nowhere, whatever names it has inside. Gzipped files come out unpacked.
What is compressed is read to its end, beyond the file that was asked for, since that is where its checksum is: a bit
that has flipped is an error, not another text.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from bpe_dropout import InputError

TAR = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
ZIP = (".zip", ".whl")
BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError),
    NotImplementedError,  # of zipfile: another version or compression
)
COMPRESSIONS: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
BLOCK = 1 << 20


@contextlib.contextmanager
def open_inside(path: Path) -> Iterator[IO[bytes]]:
    """A file for reading, wherever it is; errors while it is read name it."""
    outer, inner = split_path(path)
    with contextlib.ExitStack() as stack, damage(outer):
        layers = Layers(stack)
        yield layers.descend(stack.enter_context(outer.open("rb")), outer.name, inner, outer)
        layers.read_to_the_end()


@contextlib.contextmanager
def damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (*BROKEN, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the disk, not of what is read
            raise
        raise InputError(
            f"{path} is damaged, or not what its name says ({error}): remove it, and it is fetched again"
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


class Layers:
    """The archives around a file, opened one in the other."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._compressed: list[IO[bytes]] = []

    def descend(self, file: IO[bytes], name: str, inner: list[str], outer: Path) -> IO[bytes]:
        if not inner:
            return self.add(gzip.GzipFile(fileobj=file)) if name.endswith(".gz") else file
        if name.endswith(ZIP):
            archive = self._stack.enter_context(zipfile.ZipFile(file))
            member = "/".join(inner)
            if member not in archive.namelist():
                raise InputError(f"{outer} holds no {member}")
            return self.descend(self._stack.enter_context(open_member(archive, member, outer)), member, [], outer)
        if not name.endswith(TAR):
            raise InputError(f"{outer}: {name} is not an archive, so there is no {'/'.join(inner)} inside")
        tar = self._stack.enter_context(tarfile.open(fileobj=self.decompressed(file), mode="r|"))  # noqa: SIM115
        for entry in tar:
            parts = [part for part in PurePosixPath(entry.name).parts if part != "."]
            if entry.isfile() and parts == inner[: len(parts)]:
                opened = tar.extractfile(entry)
                assert opened is not None
                file = self.copy(opened) if entry.name.endswith(ZIP) else opened
                return self.descend(file, entry.name, inner[len(parts) :], outer)
        raise InputError(f"{outer} holds no {'/'.join(inner)}")

    def decompressed(self, file: Any) -> IO[bytes]:
        """What a file holds, by its first bytes: tarfile would decompress it, too, and check nothing."""
        begin = file.peek(6)
        for magic, opener in COMPRESSIONS.items():
            if begin.startswith(magic):
                return self.add(opener(file))
        content: IO[bytes] = file
        return content

    def copy(self, file: IO[bytes]) -> IO[bytes]:
        """On the disk: a zip file's names are at its end, and a tar is read as it comes."""
        copied = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        shutil.copyfileobj(file, copied)
        return copied

    def add(self, compressed: Any) -> IO[bytes]:
        self._compressed.append(self._stack.enter_context(compressed))
        return self._compressed[-1]

    def read_to_the_end(self) -> None:
        for file in reversed(self._compressed):
            while file.read(BLOCK):
                pass


def open_member(archive: zipfile.ZipFile, member: str, path: Path) -> IO[bytes]:
    if archive.getinfo(member).flag_bits & 1:
        raise InputError(f"{path}: {member} is encrypted, and only archives without a password are read")
    return archive.open(member)


def check_whole(path: Path, name: str) -> None:
    """Reads all of an archive or gzipped file, which checks the checksums that are in it; raises what BROKEN has."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        if name.endswith(ZIP):
            archive = stack.enter_context(zipfile.ZipFile(file))
            for member in archive.namelist():
                with open_member(archive, member, path) as opened:
                    while opened.read(BLOCK):
                        pass
        else:
            check_compressed(file, name)


def check_compressed(file: IO[bytes], name: str) -> None:
    with contextlib.ExitStack() as stack:
        layers = Layers(stack)
        if name.endswith(TAR):
            content = layers.decompressed(file)
            tar = stack.enter_context(tarfile.open(fileobj=content, mode="r|"))
            for entry in tar:
                if content is file and (opened := tar.extractfile(entry)):  # a tar has no checksum, but what is in it
                    check_compressed(opened, entry.name)
        elif name.endswith(".gz"):
            layers.add(gzip.GzipFile(fileobj=file))
        layers.read_to_the_end()


def members(path: Path) -> list[str]:
    """The names in a zip file or wheel."""
    with damage(path), zipfile.ZipFile(path) as archive:
        return archive.namelist()


def read_inside(path: Path) -> bytes:
    with open_inside(path) as file:
        return file.read()
