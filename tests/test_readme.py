"""The README is true: its commands and its Python run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("readme")
    (path / "README.md").write_text(README)
    return path


def run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands(folder: Path, number: int) -> str:
    """The output of one of the blocks that are to be run, which are two."""
    found = [block for block in blocks("sh") if not re.match(r"make|git|mkdir -p data", block)]
    assert len(found) == 2
    return run(["bash", "-euo", "pipefail", "-c", found[number]], folder)


def test_commands(folder):
    out = commands(folder, 0)
    assert out.startswith("# b")
    assert re.search(r"^segmentation  \(p = 0.1: \d+ segmentations", out, re.MULTILINE)
    assert re.search(r"^p = 0\.\d+ makes this text 1\.2[45]\d+ times longer", out, re.MULTILINE)


def test_fairseq(folder):
    pytest.importorskip("fairseq")
    out = commands(folder, 1)
    assert "train: 900 pairs" in out
    assert out.count("takes checkpoints/checkpoint") == 3
    assert re.search(r"^Generate valid with beam=4: .*BLEU", out, re.MULTILINE)
    assert re.search(r"^D-0\t-?[\d.]+\t\S", out, re.MULTILINE)


def test_hydra(folder):
    pytest.importorskip("fairseq")
    if not (folder / "DATA").exists():
        test_fairseq(folder)
    (config,) = (block for block in blocks("yaml") if block.startswith("# train.yaml"))
    (folder / "train.yaml").write_text(config)
    (command,) = re.findall(r"`(fairseq-hydra-train --config-dir [^`]*)`", README)
    run(["bash", "-euc", command], folder)
    assert (folder / "hydra" / "checkpoint_last.pt").exists()


def test_python(folder):
    if not (folder / "codes").exists():
        test_commands(folder)
    code = "\n".join(block for block in blocks("python") if "fairseq" not in block.split("\n")[0])
    out = run(
        [sys.executable, "-c", code + "\nprint(len(ids), offsets[-1], segmenter.desegment(['seg@@', 'ment']))"], folder
    )
    count, end, word = out.split()
    assert int(count) == int(end) > 1000
    assert word == "segment"


def test_python_with_fairseq(folder):
    pytest.importorskip("fairseq")
    if not (folder / "checkpoints").exists():
        test_fairseq(folder)
    (code,) = (block for block in blocks("python") if "fairseq" in block.split("\n")[0])
    run([sys.executable, "-c", f"{code}\nassert model.translate('This is a value.')"], folder)


def test_targets_exist():
    from scripts.corpora import CONFIGS
    from scripts.paper import read_items
    from scripts.reproduce import resolve

    named = set(re.findall(r"`make ([\w.-]+)[^`]*`", README)) | set(
        re.findall(r"^make ([\w.-]+)", README, re.MULTILINE)
    )
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "iwslt15-en-vi", "iwslt15", "iwslt17", "wmt14", "aspec"} <= named
    assert {"table-main", "figure-p", "fill-report"} <= named
    for name in named - targets - {"mine-en-de"}:  # the README's own corpus: tests/scripts/test_system.py runs it
        assert name in read_items() or resolve(name, [], CONFIGS, seed=1)


MADE = ("experiments/runs/", "experiments/logs/")  # by the reproduction


def test_files_named_exist():
    for path in re.findall(r"`((?:bpe_dropout|fairseq_plugins|configs|scripts|experiments|tests)/[\w/.*]*)`", README):
        assert list(ROOT.glob(path)) or path in MADE, path


def test_speeds_are_those_of_the_benchmark():
    for name in ("segmenter", "training"):
        table = (ROOT / "experiments" / "bench" / f"{name}.md").read_text().strip()
        assert table in README


def test_the_demo_is_what_it_printed():
    """Between the marks stands the end of what `make demo` printed, and the committed results say the same."""
    import json

    from scripts.runs import Run, plan_run

    (shown,) = re.findall(r"<!-- demo: begin -->\n(.*?)<!-- demo: end -->", README, re.DOTALL)
    for method in ("bpe", "bpe-dropout"):
        result = json.loads((ROOT / "experiments" / "results" / f"demo.en-de.{method}.small.seed1.json").read_text())
        assert re.search(rf"{method} +{result['bleu']:.2f} +{result['chrf']:.2f} +{result['updates']} ", shown)
        assert result["bleu signature"] in shown
        assert result["configuration"] == json.loads(json.dumps(plan_run(Run.parse(result["run"])).settings()))
