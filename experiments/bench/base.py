"""The package of another commit, built in data/bench/base, to compare with: `make bench BASE=REV`.

Only the package itself is taken from there: texts, merges and the benchmark are those of this commit.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

from bpe_dropout import InputError

from .texts import FOLDER, ROOT, make

PACKAGE = ("bpe_dropout", "setup.py", "pyproject.toml", "README.md", "LICENSE")


def find_commit(revision: str) -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"{revision} is not a commit of this repository: name a branch, a tag or a commit")
    return done.stdout.strip()


def build(revision: str) -> Path:
    """The folder that has the package of that commit, with its core."""
    commit = find_commit(revision)

    def write(path: Path) -> None:
        archive = ["git", "-C", str(ROOT), "archive", commit, *PACKAGE]
        with tarfile.open(fileobj=io.BytesIO(subprocess.run(archive, check=True, capture_output=True).stdout)) as tar:
            tar.extractall(path, filter="data")
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        done = subprocess.run(command, cwd=path, capture_output=True, text=True)
        if done.returncode:
            raise InputError(f"the core of {revision} cannot be built:\n{done.stderr[-2000:]}")

    return make(FOLDER / "base" / commit, write)
