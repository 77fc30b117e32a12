"""docs/pytorch.md and examples/pytorch run as they are."""

import itertools
import re
import runpy
import sys

import pytest

pytest.importorskip("torch", reason="the front for PyTorch needs torch")

import torch

from tests.test_readme import ROOT, blocks, commands, run, run_block

EXAMPLE = ROOT / "examples" / "pytorch" / "translate.py"


def test_the_page(tmp_path):
    """All of its code, one block after the other, with warnings as errors."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    for block in commands("docs/pytorch.md"):
        run_block(block, tmp_path)
    code = "\n".join(blocks("docs/pytorch.md", "python"))
    code += "\nprint(batch.epoch, batch.step + 1 == len(batches), len(pairs))\n"
    assert run([sys.executable, "-W", "error::UserWarning", "-c", code], tmp_path) == "3 True 500\n"


def test_the_example_is_short():
    assert len(EXAMPLE.read_text().splitlines()) <= 150


@pytest.fixture
def train(english, tmp_path, monkeypatch, capsys):
    """Runs the example on English, and the same in capital letters and spelled backwards."""
    pytest.importorskip("sacrebleu", reason="the example needs sacrebleu")
    for language, lines in {"en": english[:200], "xx": [line[::-1].upper() for line in english[:200]]}.items():
        (tmp_path / f"all.{language}").write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several wait for each other where other work is done, too

    def run_it(work: str, updates: int = 10, source: str = "all.en") -> str:
        command = f"translate.py {source} all.xx {work} --updates {updates} --save-every 3"
        monkeypatch.setattr(sys, "argv", command.split())
        capsys.readouterr()
        runpy.run_path(str(EXAMPLE), run_name="__main__")
        return capsys.readouterr().out

    yield run_it
    torch.set_num_threads(threads)


def losses(out: str) -> dict[int, tuple[int, float]]:
    """update: epoch, loss"""
    found = re.findall(r"^epoch (\d+), update (\d+): loss ([\d.]+)$", out, re.MULTILINE)
    return {int(update): (int(epoch), float(loss)) for epoch, update, loss in found}


@pytest.mark.filterwarnings("error")
def test_the_example(train, monkeypatch):
    """It learns, prints a score, and when it is stopped in mid-epoch it goes on as if nothing had happened."""
    out = train("whole")
    seen = losses(out)
    assert list(seen) == [3, 6, 9, 10]
    assert seen[10][0] >= 2
    assert seen[10][1] < seen[3][1]
    assert out.splitlines()[-1].startswith("BLEU = ")

    steps, step = itertools.count(1), torch.optim.Adam.step

    def stop_at_8(*arguments, **options):
        if next(steps) == 8:
            raise KeyboardInterrupt
        return step(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", stop_at_8)
        with pytest.raises(KeyboardInterrupt):
            train("broken")
    again = train("broken")
    assert losses(again) == {update: seen[update] for update in (9, 10)}
    assert again.splitlines()[-1] == out.splitlines()[-1]
    # A finished training goes on, too, and is not trained on if it is long enough already.
    assert list(losses(train("whole", updates=13))) == [12, 13]
    assert losses(train("whole", updates=11)) == {}


def test_the_example_refuses_other_texts(train, tmp_path):
    """A work folder is of its texts."""
    train("work", updates=1)
    lines = (tmp_path / "all.en").read_text().splitlines(keepends=True)
    (tmp_path / "other.en").write_text("".join(["changed\n", *lines[1:]]))
    for source, message in (("other.en", "work was made of other texts than other.en"), ("none.en", "none.en")):
        with pytest.raises(SystemExit, match=rf"^translate\.py: .*{message}"):
            train("work", source=source)
    (tmp_path / "short.en").write_text("".join(lines[:50]))
    with pytest.raises(SystemExit, match=r"^1$"):  # bpe-dropout data has said why
        train("new", source="short.en")


def test_the_help_of_the_example():
    shown = run([sys.executable, str(EXAMPLE), "--help"], ROOT)
    for words in (
        "p of BPE-dropout; 0 is plain BPE (0.1)",
        "how long to train (1000)",
        "updates between checkpoints (100)",
    ):
        assert words in " ".join(shown.split())
