"""Fetches a file that a corpus names, and checks it: python -m scripts.download NAME --output FILE

NAME is one of the `downloads` of configs/corpora/*.yaml, such as multi30k/train.en.gz. The file appears when it is
whole and its checksum is right. An unfinished download stays in FILE.part, and the next call resumes it.

DATA_MIRROR=FOLDER takes what a folder has, by its name, instead of from the net: FOLDER/multi30k/train.en.gz or
FOLDER/train.en.gz. For machines without internet, such as the nodes of a cluster.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path

from bpe_dropout import InputError

from .archives import BROKEN, check_whole
from .corpora import Download, read_downloads
from .stage import Reporter, Stage

BLOCK = 1 << 20
ATTEMPTS = 4


def main() -> None:
    stage = Stage(__doc__)
    stage.add_argument("name", metavar="NAME", help="the download")
    stage.add_argument("--output", required=True, type=Path, metavar="FILE", help="where it goes")
    stage.add_configs()
    options = stage.parse_args()
    downloads = read_downloads(options.configs)
    if options.name not in downloads:
        raise InputError(f"no corpus in {options.configs}/corpora has the download {options.name}")
    fetch(options.name, downloads[options.name], options.output, os.environ.get("DATA_MIRROR"))


def fetch(name: str, download: Download, target: Path, mirror: str | None = None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    if mirror and (copy := find_in_mirror(name, Path(mirror))):
        print(f"{name}: from {copy}")
        shutil.copyfile(copy, part)
    elif download.local:
        nor = f", and is not in {mirror}" if mirror else ""
        raise InputError(f"{name} cannot be downloaded{nor}. {download.local}\nPut it here: {target}")
    elif download.pypi:
        fetch_wheel(name, download.pypi, download.bytes, part)
    else:
        fetch_url(name, download, part)
    check(part, name, download, target)
    os.replace(part, target)
    print(f"{name}: {target.stat().st_size / 1e6:.1f} MB, {'checked' if download.sha256 or download.md5 else 'whole'}")


def find_in_mirror(name: str, mirror: Path) -> Path | None:
    if not mirror.is_dir():
        raise InputError(f"DATA_MIRROR names {mirror}, which is not a folder")
    return next((path for path in (mirror / name, mirror / Path(name).name) if path.is_file()), None)


def fetch_wheel(name: str, release: str, bytes_expected: int | None, part: Path) -> None:
    """By pip, which knows the registry that this machine uses. A wheel is only read here, so any platform's will do.
    It comes whole or not at all: a download that breaks off starts again."""
    wheel = Path(name).name
    size = f", {bytes_expected / 1e6:.0f} MB" if bytes_expected else ""
    print(f"{name}: {release} from the package registry{size}", flush=True)
    with tempfile.TemporaryDirectory(dir=part.parent) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--dest", folder, *platform_of(wheel), release]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        found = [path for path in Path(folder).iterdir() if path.name.lower() == wheel.lower()]
        if done.returncode or not found:
            tail = "\n".join(done.stdout.strip().splitlines()[-5:])
            raise InputError(f"pip could not fetch {wheel}, which is {release}:\n{tail}")
        os.replace(found[0], part)


def platform_of(wheel: str) -> list[str]:
    """What to tell pip, so that it takes this very wheel on any machine.

    >>> platform_of("mercurial-7.2.4-cp311-cp311-manylinux_2_17_x86_64.whl")[:4]
    ['--python-version', '3.11', '--implementation', 'cp']
    >>> platform_of("Trac-1.6-py3-none-any.whl")
    []
    """
    found = re.fullmatch(r".*-cp(\d)(\d+)-(\w+)-(\w+)(?:\.\w+)*\.whl", wheel)
    if not found:
        return []
    major, minor, abi, platform = found.groups()
    version = ["--python-version", f"{major}.{minor}", "--implementation", "cp", "--abi", abi]
    return [*version, "--platform", platform]


def fetch_url(name: str, download: Download, part: Path) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            fetch_rest(name, download, part)
            return
        except (OSError, http.client.HTTPException, ValueError) as error:
            if is_final(error):
                raise InputError(
                    f"{download.url} cannot be fetched: {error}. Fetch it in another way, and put it into a folder "
                    f"that DATA_MIRROR names, as {name}"
                ) from None
            # A connection that breaks: what was received stays.
            if attempt == ATTEMPTS:
                raise InputError(
                    f"{download.url} cannot be fetched: {error}. {size_of(part)} bytes of it are kept, and the next "
                    f"call resumes from there; or put the file into a folder that DATA_MIRROR names, as {name}"
                ) from None
            print(f"{name}: {error}; trying again from byte {size_of(part)}", flush=True)
            time.sleep(attempt)


def is_final(error: Exception) -> bool:
    """Whether it is of no use to ask again: not so of a connection that breaks, and of a server that is busy."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code != HTTPStatus.TOO_MANY_REQUESTS and error.code < HTTPStatus.INTERNAL_SERVER_ERROR
    return isinstance(error, ValueError)


def fetch_rest(name: str, download: Download, part: Path) -> None:
    """What is missing of a file, or all of it if the server cannot resume."""
    begin = size_of(part)
    if download.bytes is not None and begin >= download.bytes:
        return
    request = urllib.request.Request(download.url, headers={"User-Agent": "bpe-dropout"})
    if begin:
        request.add_header("Range", f"bytes={begin}-")
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if begin and error.code == 416:  # there is nothing after what we have
            return
        raise
    with response, part.open("ab" if response.status == 206 else "wb") as out:
        done = out.tell()
        length = response.headers.get("Content-Length")
        size = done + int(length) if length else download.bytes
        report = Reporter()
        while block := response.read(BLOCK):
            out.write(block)
            done += len(block)
            share = f" of {size / 1e6:.0f} MB, {done / size:.0%}" if size else " MB"
            report.show(f"{name}: {done / 1e6:.0f}{share}")
        report.clear()
        if size is not None and done < size:
            raise ConnectionError(f"the connection broke at byte {done} of {size}")


def check(part: Path, name: str, download: Download, target: Path) -> None:
    """A file that is not what was expected is removed: nothing of it could be used."""
    size = size_of(part)
    problem = ""
    if download.bytes is not None and size != download.bytes:
        problem = f"it has {size} bytes, and {download.bytes} were expected"
    for kind in ("sha256", "md5"):
        expected = getattr(download, kind)
        if expected and not problem and (found := checksum(part, kind)) != expected:
            problem = f"its {kind} is {found}, and {expected} was expected"
    if not problem and not download.sha256 and not download.md5:
        problem = look_inside(part, target.name)
    if problem:
        part.unlink()
        raise InputError(f"{name} is not the file that was expected: {problem}. It was removed; try again")


def checksum(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def look_inside(part: Path, name: str) -> str:
    """Without a checksum: whether an archive can be read to its end, where it has its own, and is not a web page."""
    try:
        check_whole(part, name)
    except (*BROKEN, OSError) as error:
        with part.open("rb") as file:
            page = b"<html" in file.read(2000).lower()
        return "a web page came in its place" if page else f"it cannot be read as {name} ({error})"
    except InputError as error:
        return str(error)
    return ""


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


if __name__ == "__main__":
    main()
