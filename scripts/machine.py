"""What a run ran on: versions of what it depends on, the machine, and which model it is."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from .corpora import ROOT

# What a result depends on. Results, reports and texts about them may change at any time.
CODE = (
    *("bpe_dropout", "fairseq_plugins", "scripts", "configs", "experiments/Snakefile", "experiments/analysis"),
    *("setup.py", "pyproject.toml"),
)
ONE_NUMBER = 8  # bytes, at most
PACKAGES = ("bpe-dropout", "fairseq-fixed", "torch", "numpy", "regex", "sentencepiece", "sacremoses", "sacrebleu")


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return {**found, "commit": commit()}


def commit(root: Path = ROOT) -> str:
    """The commit that is checked out, and whether code or configuration is changed in it."""
    try:
        name = git(root, "rev-parse", "--short", "HEAD")
        changes = git(root, "status", "--porcelain", "--untracked-files=no", "--", *CODE)
    except OSError:  # no git
        return "unknown"
    return name + ("-dirty" if changes else "") if name else "unknown"


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True).stdout.strip()


def machine() -> dict[str, Any]:
    import torch

    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    found = {"system": platform.system(), "processor": processor(), "cores": os.cpu_count(), "gpus": gpus}
    return {**found, "cuda": torch.version.cuda, "driver": driver()}


def driver(said: Path = Path("/proc/driver/nvidia/version")) -> str | None:
    """The version of NVIDIA's driver, if there is one."""
    found = re.search(r"\b\d+\.\d+(\.\d+)?\b", said.read_text()) if said.exists() else None
    return found[0] if found else None


def processor() -> str:
    """The name of the processor; of a virtual one, what it says of itself."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().split("\n") if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def weights_of(checkpoint: Path) -> str:
    """A checksum of the weights of a model, which says whether two files are of the same training: the rest of a
    checkpoint says where and when it was made. Found without torch, which takes seconds to import: its file is an
    archive with a member for each tensor, and tensors of one number are fairseq's meters."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(checkpoint) as archive:
        tensors = {
            int(match[1]): one
            for one in archive.infolist()
            if (match := re.fullmatch(r"[^/]+/data/(\d+)", one.filename)) and one.file_size > ONE_NUMBER
        }
        for number in sorted(tensors):
            digest.update(archive.read(tensors[number]))
    return digest.hexdigest()
