"""What stages say, and on what they ran."""

import os
import socket
import subprocess
import sys

from scripts.corpora import ROOT
from scripts.machine import commit, driver

LINES = """
import sys
sys.path.insert(0, sys.argv[1])
from scripts.stage import Reporter, Stage
Stage("a stage")
print("a line")
report = Reporter()
report._every = 0
report.show("progress")
"""


def test_a_line_is_written_at_once():
    """Else lines of stages that share a terminal run into each other. A socket keeps apart what is written apart."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-c", LINES, str(ROOT)]
        subprocess.run(command, stdout=theirs, stderr=theirs, env=environment, check=True)
        theirs.close()
        ours.setblocking(False)
        written = []
        while True:
            try:
                written.append(ours.recv(10_000))
            except BlockingIOError:
                break
    assert written == [b"a line\n", b"progress\n"]


def git(folder, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_new_results_and_texts_do_not_make_a_commit_dirty(tmp_path):
    files = {name: tmp_path / name for name in ("scripts/train.py", "experiments/results/a.json", "README.md")}
    for path in files.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old")
    git(tmp_path, "init")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "all")
    clean = commit(tmp_path)
    assert clean.isalnum()
    for name in ("experiments/results/a.json", "README.md"):
        files[name].write_text("new")
    assert commit(tmp_path) == clean
    files["scripts/train.py"].write_text("new")
    assert commit(tmp_path) == f"{clean}-dirty"


def test_the_version_of_the_driver(tmp_path):
    said = tmp_path / "version"
    assert driver(said) is None
    said.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n")
    assert driver(said) == "535.104.05"
