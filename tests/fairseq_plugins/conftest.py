"""A small corpus, and the real fairseq commands on it, each in a process of its own.

The source is real English, from the documentation that comes with Python; the target is the same with every word
spelled backwards, which is a language of its own to codes and dictionaries.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("fairseq", reason="the plugin's tests need fairseq, which `make setup` installs")

from fairseq_plugins.__main__ import main
from tests.conftest import learn, write_codes
from tests.fairseq_plugins.warm import Warm
from tests.patience import PATIENCE

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PLUGIN = ROOT / "fairseq_plugins"
RECORDING = HERE / "recording"
BIN = Path(sys.executable).parent

MODEL = [
    "--arch", "transformer", "--encoder-embed-dim", "16", "--decoder-embed-dim", "16", "--encoder-ffn-embed-dim", "16",
    "--decoder-ffn-embed-dim", "16", "--encoder-layers", "1", "--decoder-layers", "1", "--encoder-attention-heads", "2",
    "--decoder-attention-heads", "2", "--dropout", "0", "--optimizer", "adam", "--lr", "0.01", "--seed", "7", "--cpu",
    "--no-progress-bar",
]  # fmt: skip
OURS = ["--user-dir", str(PLUGIN), "--bpe", "bpe_dropout"]
TRAIN = [*MODEL, "--max-tokens", "400", "--log-format", "json", "--log-interval", "1", "--no-epoch-checkpoints"]
RECORD = ["--user-dir", str(RECORDING), "--criterion", "recording"]
WARM = Warm()


def parse(lines: Iterable[str]) -> list[dict]:
    """Lines of JSON. Of a process that was killed, or still runs, the last may be half a line."""
    found = []
    for line in lines:
        with contextlib.suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


class Done:
    """What a command printed."""

    def __init__(self, code: int, out: str) -> None:
        self.code, self.out = code, out

    @property
    def sentence(self) -> str:
        """The last line, where the error is."""
        return self.out.rstrip().splitlines()[-1]

    def logged(self, tag: str) -> list[dict]:
        """The lines that fairseq logged as JSON under a tag: train_inner, train, valid."""
        lines = (line.split(f"| {tag} | ", 1) for line in self.out.splitlines())
        return parse(line[1] for line in lines if len(line) == 2)

    @property
    def losses(self) -> dict[int, float]:
        """The loss of every update."""
        return {int(log["num_updates"]): float(log["loss"]) for log in self.logged("train_inner")}


def environment(**more: str) -> dict[str, str]:
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        **more,
    }


def run(command: str, *arguments: object, check: bool = True, stdin: str = "", cwd: Path = ROOT, **more: str) -> Done:
    """Runs a command of fairseq, or `python`, in a process of its own."""
    full = [str(BIN / command), *map(str, arguments)]
    if is_warm(full, more):
        done = Done(*WARM.run(full, stdin, cwd, environment(**more)))
    else:
        ended = subprocess.run(
            full,
            env=environment(**more),
            cwd=cwd,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        done = Done(ended.returncode, ended.stdout)
    assert not check or done.code == 0, done.out[-4000:]
    return done


def is_warm(command: list[str], more: Iterable[str]) -> bool:
    """Whether a command may run where fairseq is imported already. hydra looks at the script that was started, and
    variables of the environment, but for one of ours, may matter to an import."""
    name = Path(command[0]).name
    is_ours = name.startswith("fairseq-") or command[1:3] == ["-m", "fairseq_plugins"]
    return is_ours and name != "fairseq-hydra-train" and set(more) <= {"RECORD"}


def run_both(*calls: tuple) -> list[Done]:
    """Runs several commands, two at a time: a tuple of arguments each, with a dictionary of options at its end."""
    with ThreadPoolExecutor(2) as pool:
        started = [
            pool.submit(
                run,
                *(call[:-1] if isinstance(call[-1], dict) else call),
                **(call[-1] if isinstance(call[-1], dict) else {}),
            )
            for call in calls
        ]
        return [one.result() for one in started]


def plugin(*arguments: object, code: int = 0) -> Done:
    """A command of the plugin, as `python -m fairseq_plugins` runs it, but in this process, which is faster."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        done = Done(main([str(argument) for argument in arguments]), printed.getvalue())
    assert done.code == code, done.out
    return done


def read_record(folder: Path) -> list[dict]:
    """The batches that a training saw, of all ranks, in their order."""
    return parse(line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines())


def backwards(line: str) -> str:
    return " ".join(word[::-1] for word in line.split())


class Corpus:
    """Plain text, codes, and how many pairs there are."""

    def __init__(self, folder: Path, english: list[str]) -> None:
        self.folder = folder
        lines = [" ".join(line.split()[: 3 + number % 9]) for number, line in enumerate(english[:700])]
        self.train, self.valid = lines[:600], lines[600:653]
        for split, text in (("train", self.train), ("valid", self.valid)):
            (folder / f"{split}.en").write_text("".join(f"{line}\n" for line in text))
            (folder / f"{split}.xx").write_text("".join(f"{backwards(line)}\n" for line in text))
        self.codes = {}
        for language in ("en", "xx"):
            text = (folder / f"train.{language}").read_text().splitlines()
            self.codes[language] = write_codes(folder / f"codes.{language}", learn(text, 300))

    def arguments(self, destination: Path) -> list[object]:
        return [
            "--source-lang", "en", "--target-lang", "xx", "--trainpref", self.folder / "train",
            "--validpref", self.folder / "valid", "--destdir", destination,
        ]  # fmt: skip

    @property
    def code_arguments(self) -> list[object]:
        return ["--src-codes", self.codes["en"], "--tgt-codes", self.codes["xx"]]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, english) -> Corpus:
    return Corpus(tmp_path_factory.mktemp("corpus"), english)


@pytest.fixture(scope="session")
def data(corpus, tmp_path_factory) -> Path:
    """A data folder, made by the command that users make it with."""
    folder = tmp_path_factory.mktemp("data") / "DATA"
    run("python", "-m", "fairseq_plugins", "data", *corpus.arguments(folder), *corpus.code_arguments)
    return folder


@pytest.fixture(scope="session")
def binarized(corpus, tmp_path_factory) -> Path:
    """The same, as users of stock fairseq have it: segmented by subword-nmt and binarized."""
    from subword_nmt.apply_bpe import BPE

    folder = tmp_path_factory.mktemp("binarized")
    for split in ("train", "valid"):
        for language in ("en", "xx"):
            with corpus.codes[language].open(encoding="utf-8") as codes:
                bpe = BPE(codes)
            lines = (corpus.folder / f"{split}.{language}").read_text().splitlines()
            (folder / f"{split}.bpe.{language}").write_text("".join(f"{bpe.process_line(line)}\n" for line in lines))
    run(
        "fairseq-preprocess", "--source-lang", "en", "--target-lang", "xx", "--trainpref", folder / "train.bpe",
        "--validpref", folder / "valid.bpe", "--destdir", folder / "BIN",
    )  # fmt: skip
    return folder


def load_symbols(path: Path) -> list[str]:
    """The pieces of a fairseq dictionary by their ids."""
    return ["<s>", "<pad>", "</s>", "<unk>", *(line.rsplit(" ", 1)[0] for line in path.read_text().splitlines())]
