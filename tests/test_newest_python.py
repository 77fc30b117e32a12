"""`make test-newest` takes the newest Python that runs, and says so if there is none."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def run(tmp_path):
    """Runs the script with a .venv of this Python, where PATH has the commands that are given, and nothing else."""

    def run(**commands: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "path").mkdir()
        for name, body in commands.items():
            command = tmp_path / "path" / name.replace("_", ".")
            command.write_text(f"#!/bin/sh\n{body}\n")
            command.chmod(0o755)
        (tmp_path / "venv" / "bin").mkdir(parents=True)
        (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
        command = ["/bin/sh", str(ROOT / "scripts" / "test_newest_python.sh"), str(tmp_path / "venv")]
        environment = {"PATH": str(tmp_path / "path")}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run


def test_no_newer_python(run):
    shim = "echo 'pyenv: python: command not found' >&2; exit 127"
    older = 'echo "an older one was run" >&2; exit 1'
    done = run(**{"python3_30": shim, "python3_10": older})
    version = ".".join(map(str, sys.version_info[:3]))
    assert done.stdout == f"test-newest: skipped, since there is no Python here that is newer than Python {version}\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_the_newest_that_runs(run):
    def python(version: str) -> str:
        return f'[ "$1" = --version ] && echo Python {version}; exit 0'

    done = run(python3_30="exit 127", python3_29=python("3.29.4"), python3_28=python("3.28.1"))
    assert done.stdout == "test-newest: the segmenter's tests on Python 3.29.4, python3.29\n"
    assert done.returncode != 0  # there is no more on this PATH: what fails, fails the command


def test_a_python_of_pyenv(run, tmp_path):
    there = tmp_path / "pyenv" / "versions" / "3.29.4" / "bin" / "python"
    there.parent.mkdir(parents=True)
    there.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.29.4; exit 0\n')
    there.chmod(0o755)
    done = run(pyenv=f"echo {tmp_path / 'pyenv'}", python3_29="exit 127")
    assert done.stdout == f"test-newest: the segmenter's tests on Python 3.29.4, {there}\n"
