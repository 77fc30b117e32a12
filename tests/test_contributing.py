"""The recipes of CONTRIBUTING.md are complete. The two files of its method, and nothing else, make it a method of data
folders, of fairseq and of the reproduction; the one file of its test set makes it a test set."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODEL = "--arch transformer_tiny --optimizer adam --lr 0.001 --max-tokens 2000 --max-update 4 --cpu --log-format json"


class Project:
    """A copy of the project, with what CONTRIBUTING.md adds to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("bpe_dropout", "fairseq_plugins", "scripts", "configs"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
        blocks = re.findall(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        self.added = [path for path, _ in blocks]
        for path, text in blocks:
            assert not (folder / path).exists()
            (folder / path).write_text(text, "utf-8")

    def run(self, *command: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def python(self, *arguments: str) -> str:
        return self.run(sys.executable, *arguments)


@pytest.fixture(scope="module")
def project(tmp_path_factory, english) -> Project:
    made = Project(tmp_path_factory.mktemp("contributing"))
    for name, lines in {"train": english[:300], "valid": english[300:330]}.items():
        for language, words in {"en": lines, "xx": [line[::-1] for line in lines]}.items():
            (made.folder / f"{name}.{language}").write_text("".join(f"{line}\n" for line in words))
    for language in ("en", "xx"):
        made.python(
            "-m", "scripts.learn", f"train.{language}", "--kind", "spelling", "--vocabulary", "300", "--output",
            f"words.{language}",
        )  # fmt: skip
    made.python(
        "-m", "bpe_dropout", "data", "--source-lang", "en", "--target-lang", "xx", "--trainpref", "train",
        "--validpref", "valid", "--src-spelling", "words.en", "--tgt-spelling", "words.xx", "--destdir", "DATA",
    )  # fmt: skip
    return made


def test_nothing_else_is_added(project):
    assert project.added == [
        "bpe_dropout/methods/spelling.py",
        "configs/methods/spelling.yaml",
        "configs/testsets/misspelled-twice.yaml",
    ]


def test_the_data_folder(project):
    entries = (project.folder / "DATA" / "dict.en.txt").read_text().splitlines()
    assert len(entries) <= 300 + 1
    assert {entry.split()[0] for entry in entries} >= {"the", "t@@", "e"}


def test_draws(project):
    """As often as p says."""
    code = """
from pathlib import Path
from bpe_dropout import Dictionary
from bpe_dropout.methods import METHODS, Drawing
method = METHODS["spelling"]
model = method.load(Path("DATA/spelling.en"), "src")
dictionary = Dictionary.load("DATA/dict.en.txt")
text = method.text(Path("DATA/train.en-xx.en"), model, dictionary, "src", Drawing(method.options(spelling_src=0.25)))
drawn = sum((text.draw(1, epoch, 0).tokens([0, 1, 2]).ids == dictionary["the"]).sum() for epoch in range(2000))
print(drawn / (text.plain().tokens([0, 1, 2]).ids == dictionary["the"]).sum() / 2000)
"""
    assert 0.7 < float(project.python("-c", code)) < 0.8


def test_the_reproduction_plans_it(project):
    code = (
        "from scripts.runs import Run, plan_run\n"
        "plan = plan_run(Run.parse('demo.en-fr.spelling-p30.small.seed1'))\n"
        "print(plan.method.fairseq_options(plan.dropout), plan.folder)"
    )
    out = project.python("-c", code)
    assert "{'bpe': 'spelling', 'spelling_src': 0.3, 'spelling_tgt': 0.3} demo.en-fr.spelling." in out


def test_the_reproduction_knows_the_test_set(project):
    code = (
        "from scripts.corpora import CONFIGS\n"
        "from scripts.kept import products\nfrom scripts.reproduce import resolve\n"
        "print(*products(resolve('misspelled-twice.demo.en-fr.bpe.small.seed1', [], CONFIGS, 1)))"
    )
    assert "demo.en-fr.bpe.small.seed1/misspelled-twice/result.json" in project.python("-c", code)


def test_fairseq_trains_with_it(project):
    pytest.importorskip("fairseq")
    plugin = str(project.folder / "fairseq_plugins")
    out = project.python(
        "-m", "fairseq_cli.train", "DATA", "--user-dir", plugin, "--bpe", "spelling", "--spelling-src", "1",
        "--spelling-tgt", "0", *MODEL.split(),
    )  # fmt: skip
    assert "words or characters, p = 1 (source) and 0 (target)" in out
    epochs = [json.loads(found) for found in re.findall(r"train \| (\{\".*\})", out)]
    assert float(epochs[-1]["train_src_ratio"]) > 1.4
    assert float(epochs[-1]["train_tgt_ratio"]) == 1
    assert (project.folder / "checkpoints" / "checkpoint_last.pt").is_file()
