"""What importing the plugin changes, and what it leaves alone; and a user dir of one's own beside it."""

import pytest
from fairseq.data.iterators import BufferedIterator

from bpe_dropout.errors import LineError
from fairseq_plugins import patches
from fairseq_plugins.errors import sentence_of
from tests.fairseq_plugins.conftest import TRAIN, run, run_both

SCRIPT = """
import sys
def hook(kind, error, trace):
    print("my own hook:", error)
sys.excepthook = hook
import torch
load = torch.load
import fairseq_plugins
from bpe_dropout import InputError
assert sys.excepthook is hook
assert eval("1 + len('ab')") == 3
raise InputError("something is wrong")
"""


def test_every_patch_says_why():
    assert all(patch.why and patch.version for patch in patches.PATCHES)
    names = [(getattr(patch.owner, "__name__", "registry"), patch.name) for patch in patches.PATCHES]
    assert len(set(names)) == len(names)


def test_a_script_keeps_its_own_hook(tmp_path):
    (tmp_path / "fairseq_experiment.py").write_text(SCRIPT)
    by_itself, plain = run_both(
        ("python", tmp_path / "fairseq_experiment.py", {"check": False}),
        ("python", "-c", "import sys, fairseq_plugins; assert sys.excepthook is sys.__excepthook__"),
    )
    assert by_itself.sentence == "my own hook: something is wrong"
    assert by_itself.code == 1
    assert plain.code == 0


READING_AHEAD = """
import itertools, threading, torch, fairseq_plugins
from fairseq.data.iterators import BufferedIterator

class Batches:
    def __len__(self):
        return 10**9

    def __iter__(self):
        ones = torch.ones(200, 200)
        return (ones @ ones for _ in itertools.count())

for size in (0, 2):  # of the buffer: without a limit, it reads until the end; with 2, it waits for room
    next(iter(BufferedIterator(size, Batches())))
print(threading.active_count(), "threads")
"""


def test_reading_ahead_ends_before_python():
    """Without the patch the process is aborted, after its last line."""
    assert run("python", "-c", READING_AHEAD).sentence == "3 threads"


def test_an_error_of_the_loader_is_passed_on():
    """Where the loader cannot start, as where there is no memory for its workers, and where it fails later on."""

    class Broken:
        def __len__(self):
            return 2

        def __iter__(self):
            raise OSError("no memory")

    class BreaksLater(Broken):
        def __iter__(self):
            yield 1
            raise OSError("no memory")

    with pytest.raises(OSError, match="no memory"):
        next(BufferedIterator(2, Broken()))
    later = BufferedIterator(2, BreaksLater())
    assert next(later) == 1
    with pytest.raises(OSError, match="no memory"):
        next(later)


class ProcessRaisedException(Exception):
    """As torch.multiprocessing has it: the traceback of another process, as text."""


def test_sentences_of_other_processes():
    trace = "-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n  ...\n"
    for kind in ("bpe_dropout.errors.InputError", "fairseq_plugins.literals.NotALiteral"):
        assert sentence_of(ProcessRaisedException(f"{trace}{kind}: a file is missing\n")) == "a file is missing"
    assert sentence_of(ProcessRaisedException(f"{trace}ValueError: something else\n")) is None
    assert sentence_of(LineError("line 3 is empty")) == "line 3 is empty"
    assert sentence_of(ValueError("bpe_dropout.errors.InputError: no")) is None


MINE = """
import fairseq_plugins
from fairseq.models import register_model_architecture
from fairseq.models.transformer import base_architecture

@register_model_architecture("transformer", "my_transformer")
def my_transformer(args):
    args.encoder_layers = getattr(args, "encoder_layers", 1)
    base_architecture(args)
"""


def test_a_user_dir_of_ones_own(data, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "__init__.py").write_text(MINE)
    ours = ["--user-dir", mine, "--bpe", "bpe_dropout"]
    model = [argument for argument in TRAIN if argument != "--arch"]
    model.remove("transformer")
    done = run("fairseq-train", data, *ours, *model, "--arch", "my_transformer", "--max-update", "2", "--save-dir",
               tmp_path / "save")  # fmt: skip
    assert "BPE-dropout, p = 0.1 (source) and 0.1 (target), seed 7" in done.out
    path = tmp_path / "save" / "checkpoint_last.pt"
    done = run("fairseq-generate", data, *ours, "--cpu", "--path", path, "--gen-subset", "valid", "--max-len-b", "3",
               "--quiet")  # fmt: skip
    assert "Translated 53 sentences" in done.out
    missing = run("fairseq-train", tmp_path / "nowhere", *ours, *TRAIN, check=False)
    assert missing.sentence.startswith("error: "), "sentences are said here, too"
