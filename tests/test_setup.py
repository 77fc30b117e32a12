"""Setting up: what is missing is said in a sentence, before anything is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def setup(tmp_path: Path, **environment: str) -> str:
    """Runs the setup script where it must stop, and returns what it said."""
    command = ["/bin/sh", str(ROOT / "scripts" / "setup.sh"), str(tmp_path / "venv")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert not (tmp_path / "venv").exists()
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_no_python(tmp_path):
    message = setup(tmp_path, PATH=os.environ["PATH"], PYTHON="python3.999")
    assert message.startswith("setup: there is no python3.999 here. Install Python 3.11 or newer")


def test_an_old_python(tmp_path):
    old = tmp_path / "old-python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.8.1 && exit 0\nexit 1\n')
    old.chmod(0o755)
    message = setup(tmp_path, PATH=os.environ["PATH"], PYTHON=str(old))
    assert message.startswith("setup: Python 3.8.1 is too old. Python 3.11 or newer is needed")


def test_no_compiler(tmp_path):
    message = setup(tmp_path, PATH=str(tmp_path), PYTHON=sys.executable)
    assert message.startswith("setup: there is no C++ compiler here")


def test_building_without_a_compiler(tmp_path):
    """Installed by pip itself: the sentence is at the end, after the output of the build."""
    pytest.importorskip("pybind11", reason="needs what the build needs, which pip installs apart from the rest")
    subprocess.run(["/bin/sh", str(ROOT / "scripts" / "copy_package.sh"), str(tmp_path)], check=True)
    environment = {**os.environ, "CC": "no-such-compiler", "CXX": "no-such-compiler"}
    command = [sys.executable, "setup.py", "build_ext"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "bpe-dropout needs a C++17 compiler" in done.stderr
    assert "Traceback" not in done.stderr
