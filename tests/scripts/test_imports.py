"""What needs no fairseq does not import it: that takes longer than most stages work."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIGHT = ("reproduce", "download", "extract", "subset", "prepare", "learn", "train", "generate", "score", "compare")


@pytest.mark.parametrize("name", [*LIGHT, "average"])
def test_a_stage_starts_light(name):
    code = (
        f"import sys, scripts.{name}; print([one for one in ('torch', 'fairseq', 'snakemake') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == ("['torch']\n" if name == "average" else "[]\n"), done.stderr
