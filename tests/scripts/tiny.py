"""The tiny graph: a user's own two files, with the YAML of docs/reproduction.md, and a model that learns nothing."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.corpora import CONFIGS, ROOT
from tests.patience import PATIENCE

HERE = Path(__file__).parent
METHODS = ("unigram", "bpe-dropout")
RUNS = [f"mine.en-de.{method}.tiny.seed1" for method in METHODS]
TRAIN, HELD = 500, 30


def own_corpus() -> str:
    """The YAML of the corpus of one's own in docs/reproduction.md."""
    page = (ROOT / "docs" / "reproduction.md").read_text()
    (text,) = re.findall(r"```yaml\n# configs/corpora/mine\.en-de\.yaml\n(.*?)```", page, re.S)
    for old, new in (
        ("vocabulary: 4000", "vocabulary: 300"),
        ("1000", str(HELD)),
        ("model: small", "model: tiny"),
        ("[bpe, unigram, bpe-dropout]", "[unigram, bpe-dropout]"),
    ):
        assert old in text
        text = text.replace(old, new)
    return text


def german(line: str) -> str:
    return " ".join(word[::-1] for word in line.split())


class Work:
    """A folder of configs, and one where everything is made."""

    def __init__(self, folder: Path, english: list[str]) -> None:
        self.configs, self.made = folder / "configs", folder / "made"
        for kind in ("methods", "paper", "testsets"):
            shutil.copytree(CONFIGS / kind, self.configs / kind)
        for kind in ("corpora", "models"):
            (self.configs / kind).mkdir()
        (self.configs / "corpora" / "mine.en-de.yaml").write_text(own_corpus())
        shutil.copyfile(HERE / "tiny.yaml", self.configs / "models" / "tiny.yaml")
        mine = self.made / "data" / "downloads" / "mine"
        mine.mkdir(parents=True)
        lines = [" ".join(line.split()[: 4 + number % 6]).capitalize() for number, line in enumerate(english)]
        self.lines = list(dict.fromkeys(lines))[: TRAIN + 2 * HELD]
        (mine / "text.en").write_text("".join(f"{line}.\n" for line in self.lines))
        (mine / "text.de").write_text("".join(f"{german(line)}.\n" for line in self.lines))

    def start(self, command: str, target: str = "mine-en-de", *more: str, **environment: str) -> subprocess.Popen:
        arguments = ["--configs", str(self.configs), "--directory", str(self.made), *more]
        return subprocess.Popen(
            [sys.executable, "-m", "scripts.reproduce", command, target, *arguments],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "KEEP_CHECKPOINTS": "1", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def call(self, *arguments: str, code: int = 0, **environment: str) -> str:
        process = self.start(*arguments, **environment)
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, out
        return out

    def run(self, name: str) -> Path:
        return self.made / "experiments" / "runs" / name
