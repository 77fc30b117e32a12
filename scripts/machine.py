"""What a run ran on: versions of what it depends on, and the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from .corpora import ROOT

MADE = ("experiments/results", "experiments/report")
PACKAGES = ("bpe-dropout", "fairseq-fixed", "torch", "numpy", "subword-nmt", "sentencepiece", "sacremoses", "sacrebleu")


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return {**found, "commit": commit()}


def commit() -> str:
    """The commit that is checked out, and whether something is changed in it; new results are no change."""
    try:
        name = git("rev-parse", "--short", "HEAD")
        changes = git("status", "--porcelain", "--untracked-files=no", "--", ".", *(f":!{path}" for path in MADE))
    except OSError:  # no git
        return "unknown"
    return name + ("-dirty" if changes else "") if name else "unknown"


def git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True).stdout.strip()


def machine() -> dict[str, Any]:
    import torch

    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return {"system": platform.system(), "processor": processor(), "cores": os.cpu_count(), "gpus": gpus}


def processor() -> str:
    """The name of the processor; of a virtual one, what it says of itself."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().split("\n") if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
