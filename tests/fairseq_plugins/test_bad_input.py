"""What is wrong with a data folder is said in a sentence that names the file and what to do, before training starts."""

import re
import shutil

import pytest
import sentencepiece

from bpe_dropout import Codes, InputError
from tests.conftest import write_codes
from tests.fairseq_plugins.conftest import MODEL, OURS, run_both
from tests.fairseq_plugins.test_options import make_task


def remove_codes(folder):
    (folder / "codes.en").unlink()


def remove_dictionary(folder):
    (folder / "dict.xx.txt").unlink()


def swap_dictionaries(folder):
    shutil.copy(folder / "dict.xx.txt", folder / "dict.en.txt")


def shorten(folder):
    path = folder / "train.en-xx.xx"
    path.write_text(path.read_text().split("\n", 1)[1])


def break_utf8(folder):
    path = folder / "train.en-xx.en"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n\xff", 1))


def empty(folder):
    (folder / "train.en-xx.en").write_text("")


def blank(folder):
    path = folder / "train.en-xx.en"
    path.write_text("\n" * path.read_text().count("\n"))


def remove_text(folder):
    (folder / "train.en-xx.en").unlink()


def put_model(folder):
    (folder / "text").write_text((folder / "train.en-xx.en").read_text())
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / "spm"), vocab_size=100, minloglevel=2
    )
    (folder / "spm.model").rename(folder / "codes.en")


def break_codes(folder):
    with (folder / "codes.en").open("a") as file:
        file.write("three symbols here\n")


def special_merge(folder):
    codes = Codes.read(folder / "codes.en")
    write_codes(folder / "codes.en", Codes((*codes.pairs, ("</", "s>"), ("<un", "k></w>"))))


def special_piece(folder):
    with (folder / "dict.en.txt").open("a") as file:
        file.write("<unk> 12\n")


def special_count(folder):
    with (folder / "dict.en.txt").open("a") as file:
        file.write("piece\n")


CASES = {
    remove_codes: "there is no DATA/codes.en: the merges of the source side. Put the file there, or name it with "
    "--bpe-dropout-src-codes",
    remove_dictionary: "there is no DATA/dict.xx.txt: the dictionary of pieces. Make it: bpe-dropout dictionary",
    swap_dictionaries: "% of the pieces of DATA/train.en-xx.en, segmented without dropout, are not in dict.en.txt; the "
    "most frequent such word is",
    shorten: "DATA/train.en-xx.en has 600 lines and DATA/train.en-xx.xx has 599: line n of the one must be",
    break_utf8: "DATA/train.en-xx.en, line 2: not valid UTF-8, at byte 1 of the line",
    empty: "DATA/train.en-xx.en holds no words",
    blank: "DATA/train.en-xx.en holds no words",
    remove_text: "there is no DATA/train.en-xx.en: the words of 'train'. Make the folder again",
    put_model: "DATA/codes.en is a model of sentencepiece, not a codes file of subword-nmt. Learn codes with",
    break_codes: "DATA/codes.en, line 302: 'three symbols here' is not a merge",
    special_merge: "DATA/codes.en, line 303: this merge makes the piece '<unk>', which fairseq takes for a symbol",
    special_piece: "'<unk>' is in the dictionary already",
    special_count: "expected a piece, a space and its count, not 'piece'",
}


@pytest.mark.parametrize("spoil", CASES, ids=lambda spoil: spoil.__name__)
def test_before_training(data, tmp_path, spoil, monkeypatch):
    shutil.copytree(data, tmp_path / "DATA")
    for index in (tmp_path / "DATA").glob("*.words"):
        index.unlink()
    spoil(tmp_path / "DATA")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=re.escape(CASES[spoil])):
        make_task("DATA").load_dataset("train")


def test_the_command_ends_with_the_sentence(data, binarized, tmp_path):
    """And with exit code 1, without a traceback and without a checkpoint."""
    shutil.copytree(data, tmp_path / "DATA")
    swap_dictionaries(tmp_path / "DATA")
    train = [*OURS, *MODEL, "--max-tokens", "400"]
    fit, stock, nowhere, allowed = run_both(
        ("fairseq-train", tmp_path / "DATA", *train, "--save-dir", tmp_path / "a", {"check": False}),
        ("fairseq-train", binarized / "BIN", *train, "--save-dir", tmp_path / "b", {"check": False}),
        ("fairseq-train", tmp_path / "nowhere", *train, "--save-dir", tmp_path / "c", {"check": False}),
        ("fairseq-train", tmp_path / "DATA", *train, "--save-dir", tmp_path / "d",
         "--resegment-max-unk", "1", "--max-update", "1"),
    )  # fmt: skip
    assert fit.sentence.endswith(
        "make the dictionary again (bpe-dropout dictionary --help), or allow it with --resegment-max-unk"
    )
    assert stock.sentence.startswith(
        f"error: {binarized}/BIN was binarized by fairseq-preprocess, so its segmentation is fixed"
    )
    assert nowhere.sentence.startswith(f"error: there is no folder {tmp_path}/nowhere; make one")
    for done, save in ((fit, "a"), (stock, "b"), (nowhere, "c")):
        assert done.code == 1
        assert "Traceback" not in done.out
        assert not list((tmp_path / save).glob("*.pt"))
    assert "are not in dict.en.txt" in allowed.out


def test_a_missing_target(data, tmp_path):
    """Translating needs none; training and its validation do, and say so at once."""
    shutil.copytree(data, tmp_path / "DATA")
    (tmp_path / "DATA" / "valid.en-xx.xx").unlink()
    task = make_task(tmp_path / "DATA")
    with pytest.raises(InputError, match=r"no .*valid\.en-xx\.xx: the words of 'valid'.* say --disable-validation"):
        task.load_dataset("valid", combine=False, epoch=1)
    task.load_dataset("valid", task_cfg=task.cfg)  # as fairseq-generate does
    (batch, *_) = task.get_batch_iterator(task.dataset("valid"), max_tokens=400).next_epoch_itr(shuffle=False)
    assert batch["target"] is None


def test_codes_from_elsewhere(data, tmp_path):
    """Where they are not in the folder, they are named."""
    shutil.copytree(data, tmp_path / "DATA")
    for language in ("en", "xx"):
        (tmp_path / "DATA" / f"codes.{language}").rename(tmp_path / f"merges.{language}")
    named = ["--bpe-dropout-src-codes", tmp_path / "merges.en", "--bpe-dropout-tgt-codes", tmp_path / "merges.xx"]
    there, elsewhere = make_task(data), make_task(tmp_path / "DATA", *named)
    for task in (there, elsewhere):
        task.load_dataset("train")
    assert all(
        (there.dataset("train")[i]["target"] == elsewhere.dataset("train")[i]["target"]).all() for i in range(50)
    )
