"""What a run ran on: versions of what it depends on, and the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from .corpora import ROOT

PACKAGES = ("bpe-dropout", "fairseq-fixed", "torch", "numpy", "subword-nmt", "sentencepiece", "sacremoses", "sacrebleu")


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:  # no git
        commit = ""
    return {**found, "commit": commit or "unknown"}


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
