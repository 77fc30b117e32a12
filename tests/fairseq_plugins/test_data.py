"""The commands that make data folders and dictionaries."""

import filecmp
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bpe_dropout import Codes, InputError, Segmenter
from bpe_dropout.data import making
from bpe_dropout.data.folder import DataFolder
from bpe_dropout.data.preparation import Preparation, read_preparation, write_preparation
from bpe_dropout.data.vocabulary import possible_pieces
from bpe_dropout.methods import METHODS
from tests.conftest import as_version_1, learn
from tests.fairseq_plugins.conftest import load_symbols, plugin


def test_a_folder(data, corpus):
    assert sorted(path.name for path in data.iterdir() if path.suffix != ".words") == [
        "codes.en", "codes.xx", "dict.en.txt", "dict.xx.txt", "preparation.json",
        "train.en-xx.en", "train.en-xx.xx", "valid.en-xx.en", "valid.en-xx.xx",
    ]  # fmt: skip
    assert filecmp.cmp(data / "train.en-xx.xx", corpus.folder / "train.xx", shallow=False)
    assert not re.search(rb"/", (data / "preparation.json").read_bytes())  # it can be moved


def test_from_segmented_text(corpus, binarized, data, tmp_path):
    """What you have if you have trained with fairseq before gives the folder that plain text gives."""
    arguments = [
        "--source-lang", "en", "--target-lang", "xx", "--trainpref", binarized / "train.bpe", "--validpref",
        binarized / "valid.bpe", "--srcdict", binarized / "BIN/dict.en.txt", "--tgtdict", binarized / "BIN/dict.xx.txt",
    ]  # fmt: skip
    swapped = ["--src-codes", corpus.codes["xx"], "--tgt-codes", corpus.codes["en"]]
    plain = [*arguments[:4], "--trainpref", corpus.folder / "train", "--destdir", tmp_path / "C"]
    done = plugin("convert", *arguments, *corpus.code_arguments, "--destdir", tmp_path / "A")
    wrong = plugin("convert", *arguments, *swapped, "--destdir", tmp_path / "B", code=1)
    unsegmented = plugin("convert", *plain, *corpus.code_arguments, code=1)
    assert "train: 600 pairs" in done.out
    for path in data.iterdir():
        if path.suffix != ".words":
            assert filecmp.cmp(path, tmp_path / "A" / path.name, shallow=False), path.name
    assert re.search(
        r"error: .*train\.bpe\.en: \d+ of 600 lines are not what .*codes\.xx makes of their words", wrong.out
    )
    assert wrong.sentence == "Name the codes that the text was segmented with"
    assert "train.en holds no @@, so it is not segmented: use" in unsegmented.sentence
    assert not (tmp_path / "B").exists()
    assert not list(tmp_path.glob("*.part"))


def test_bad_texts(corpus, tmp_path):
    """Nothing is left behind but a sentence."""
    for name in ("short", "bad", "empty", "special"):
        shutil.copy(corpus.folder / "train.en", tmp_path / f"{name}.en")
        shutil.copy(corpus.folder / "train.xx", tmp_path / f"{name}.xx")
    (tmp_path / "short.xx").write_text("eno\n")
    (tmp_path / "bad.xx").write_bytes(b"eno\n\xffowt\n")
    (tmp_path / "empty.en").write_text("")
    (tmp_path / "empty.xx").write_text("")
    (tmp_path / "special.en").write_text("a word with </s> in it\n" * 2)
    (tmp_path / "special.xx").write_text("a@@ b\n" * 2)

    def arguments(name, *more):
        return ["-s", "en", "-t", "xx", "--trainpref", tmp_path / name, "--destdir", tmp_path / "OUT", *more]

    results = [
        *(
            plugin("data", *arguments(name), *corpus.code_arguments, code=1)
            for name in ("short", "bad", "empty", "missing")
        ),
        plugin("convert", *arguments("special"), *corpus.code_arguments, code=1),
        plugin("data", *arguments("short"), code=1),
        plugin("data", *arguments("short", "--destdir", corpus.folder), *corpus.code_arguments, code=1),
        plugin("data", *arguments("bad", "--lowercase"), *corpus.code_arguments, code=1),
        plugin("convert", *arguments("short"), code=1),
        plugin("data", *arguments("short", "--destdir", tmp_path, "--overwrite"), *corpus.code_arguments, code=1),
        plugin("data", *arguments("short", "--codes", tmp_path / "none"), code=1),
    ]
    sentences = [done.sentence.replace(str(tmp_path), "T") for done in results]
    assert sentences == [
        "error: T/short.en and T/short.xx have 600 and 1 lines: they must be translations, line by line",
        "error: T/bad.xx, line 2: not valid UTF-8, at byte 1 of the line",
        "error: T/empty.en is empty",
        "error: there is no T/missing.en: --trainpref names what comes before .en",
        "error: T/special.en, line 1: the piece '</s>' is a symbol of fairseq's own: write the word differently",
        "error: say what segments en: --codes or --src-codes, or --unigram or --src-unigram, or --merges",
        f"error: {corpus.folder} exists already. To replace it, add --overwrite",
        "error: T/bad.xx, line 2: not valid UTF-8, at byte 1 of the line",
        "error: say what segments en: --codes or --src-codes",
        "error: T is not a data folder, so it is not overwritten",
        "error: there is no T/none: --codes names a file of merges",
    ]
    assert (tmp_path / "short.en").exists()
    assert not (tmp_path / "OUT").exists()
    assert not list(tmp_path.glob("*.part"))


def test_overwriting(corpus, data, tmp_path):
    shutil.copytree(data, tmp_path / "DATA")
    done = plugin("data", *corpus.arguments(tmp_path / "DATA"), "--merges", "50", "--overwrite")
    there = ["--trainpref", data / "train.en-xx", "--destdir", data]
    own = plugin("data", "-s", "en", "-t", "xx", *there, "--merges", "50", "--overwrite", code=1)
    assert "learning 50 merges of xx" in done.out
    assert len(Codes.read(tmp_path / "DATA" / "codes.en").pairs) == 50
    assert own.sentence == f"error: {data} holds the text that it would be made from"
    assert [path.name for path in tmp_path.iterdir()] == ["DATA"]


@pytest.mark.parametrize("name", ["rates.en", "checkpoints", "train1.en-xx.en"])
def test_overwriting_loses_nothing_else(corpus, data, tmp_path, name):
    shutil.copytree(data, tmp_path / "DATA")
    (tmp_path / "DATA" / name).mkdir()
    done = plugin("data", *corpus.arguments(tmp_path / "DATA"), "--merges", "50", "--overwrite", code=1)
    assert done.sentence == (
        f"error: {tmp_path}/DATA also holds {name}, which would be lost: move that elsewhere, or choose another folder"
    )
    assert filecmp.cmp(tmp_path / "DATA" / "codes.en", data / "codes.en", shallow=False)


def test_what_a_killed_command_has_left_is_removed(corpus, data, tmp_path):
    """A whole copy of the corpus, under a temporary name, and within the folder half of an index."""
    shutil.copytree(data, tmp_path / "DATA")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    mark = f"{socket.gethostname()}.{dead.pid}-0.part"
    (tmp_path / f"DATA.{mark}").mkdir()
    (tmp_path / f"DATA.{mark}" / "train.en-xx.en").write_text("half of it")
    (tmp_path / "DATA" / f"train.en-xx.en.words.{mark}").write_text("half of it")
    plugin("data", *corpus.arguments(tmp_path / "DATA"), "--merges", "50", "--overwrite")
    assert [path.name for path in tmp_path.rglob("*.part")] == []


def test_a_folder_that_was_being_replaced_when_the_command_was_killed(corpus, data, tmp_path):
    """It comes back where it is missing, and is removed where the new one is there."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    old = tmp_path / f"DATA.{socket.gethostname()}.{dead.pid}-0.old"
    shutil.copytree(data, old)
    there = plugin("data", *corpus.arguments(tmp_path / "DATA"), "--merges", "50", code=1)
    assert there.sentence == f"error: {tmp_path}/DATA exists already. To replace it, add --overwrite"
    assert filecmp.cmp(tmp_path / "DATA" / "codes.en", data / "codes.en", shallow=False)
    shutil.copytree(data, old)
    plugin("data", *corpus.arguments(tmp_path / "DATA"), "--merges", "50", "--overwrite")
    assert [path.name for path in tmp_path.iterdir()] == ["DATA"]
    assert len(Codes.read(tmp_path / "DATA" / "codes.en").pairs) == 50


def test_a_file_that_comes_while_the_folder_is_made_is_not_lost(corpus, data, tmp_path, monkeypatch):
    shutil.copytree(data, tmp_path / "DATA")
    monkeypatch.setattr(making, "write_pieces", lambda *_: (tmp_path / "DATA" / "rates.en").touch())
    done = plugin("data", *corpus.arguments(tmp_path / "DATA"), "--merges", "50", "--overwrite", code=1)
    assert "DATA also holds rates.en" in done.sentence
    assert (tmp_path / "DATA" / "rates.en").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["DATA"]


def test_a_link_to_a_folder_stays_a_link(corpus, data, tmp_path):
    shutil.copytree(data, tmp_path / "real")
    (tmp_path / "DATA").symlink_to("real")
    (tmp_path / "new").symlink_to("made")
    plugin("data", *corpus.arguments(tmp_path / "DATA"), "--merges", "50", "--overwrite")
    plugin("data", *corpus.arguments(tmp_path / "new"), "--merges", "50")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_symlink()) == ["DATA", "new"]
    for name in ("real", "made"):
        assert len(Codes.read(tmp_path / name / "codes.en").pairs) == 50


def test_both_vocabularies(data, tmp_path):
    """With the vocabulary of dropout, no piece of the training text is ever unknown."""
    folder = tmp_path / "DATA"
    shutil.copytree(data, folder)
    refused = plugin("dictionary", folder, "--vocabulary", "dropout", code=1)
    assert refused.sentence == f"error: {folder}/dict.en.txt exists already. To replace it, add --overwrite"
    plugin("dictionary", folder, "--vocabulary", "dropout", "--overwrite")
    for language in ("en", "xx"):
        plain, full = (set(load_symbols(where / f"dict.{language}.txt")) for where in (data, folder))
        assert {piece for piece in plain if not piece.startswith("madeup")} <= full
        assert len(load_symbols(folder / f"dict.{language}.txt")) % 8 == 0
        segmenter = Segmenter.from_codes(folder / f"codes.{language}")
        stream = segmenter.stream(0.5)
        text = (folder / f"train.en-xx.{language}").read_bytes()
        drawn = {piece for seed in range(20) for piece in stream.text(text, seed).decode().split()}
        assert drawn - plain
        assert drawn <= full


def test_joined(data, tmp_path):
    folder = tmp_path / "DATA"
    shutil.copytree(data, folder)
    plugin("dictionary", folder, "--joined-dictionary", "--vocabulary", "dropout", "--overwrite")
    assert filecmp.cmp(folder / "dict.en.txt", folder / "dict.xx.txt", shallow=False)
    joined = set(load_symbols(folder / "dict.en.txt"))
    for language in ("en", "xx"):
        segmenter = Segmenter.from_codes(folder / f"codes.{language}")
        words = (folder / f"train.en-xx.{language}").read_text().split()
        assert possible_pieces(segmenter, words).keys() <= joined


@pytest.mark.parametrize("version", [1, 2])
def test_possible_pieces_are_those_of_the_exact_distribution(codes, words, version):
    """Every piece of every segmentation; and, for codes that were learned from the words, no others."""
    segmenter = Segmenter(codes if version == 2 else as_version_1(codes))
    short = [word for word in words if len(word) <= 8][:600]
    exact = {piece for word in short for pieces in segmenter.distribution(word, 0.5) for piece in pieces}
    possible = possible_pieces(segmenter, short).keys()
    assert exact <= possible
    if version == 2:
        made = {left + right for left, right in segmenter.codes.pairs}
        text = {
            word[i:j] + ("</w>" if j == len(word) else "")
            for word in short
            for i, j in itertools.combinations(range(len(word) + 1), 2)
        }
        # What is possible but in no word stands in none of them.
        assert {
            piece
            for piece in possible - exact
            if (piece.removesuffix("@@") if piece.endswith("@@") else piece + "</w>") in text & made
        } == set()


def test_preparation_by_example():
    steps = Preparation("en", normalize=True, tokenize=True, lowercase=True)
    line = "“It’s done”, he said… A well-known (bad) one & more."
    words = steps.prepare(line)
    assert words == '" it \'s done , " he said ... a well-known ( bad ) one & more .'
    assert steps.restore(words) == '"it\'s done," he said... a well-known (bad) one & more.'
    nothing = Preparation("en")
    assert nothing.prepare(line) == nothing.restore(line) == line


def test_a_folder_from_before_escapes_were_recorded_is_escaped(tmp_path):
    (tmp_path / "preparation.json").write_text(json.dumps({"en": {"tokenize": True}, "xx": {"lowercase": True}}))
    steps = read_preparation(tmp_path, "en")
    assert steps.prepare("It's [so]") == "It &apos;s &#91; so &#93;"
    assert steps.restore("It &apos;s &#91; so &#93;") == "It's [so]"
    assert read_preparation(tmp_path, "xx").prepare("It's") == "it's"
    write_preparation(tmp_path, Preparation("en", tokenize=True))
    assert read_preparation(tmp_path, "en").prepare("It's [so]") == "It 's [ so ]"


def test_escaped_text_is_noticed_and_unescaped_if_asked(tmp_path):
    for language in ("en", "xx"):
        (tmp_path / f"train.{language}").write_text("it is\nit &apos;s &quot; so &quot;\n" * 20)
    data = ["data", "-s", "en", "-t", "xx", "--trainpref", tmp_path / "train", "--merges", 10]
    done = plugin(*data, "--destdir", tmp_path / "escaped")
    assert "train.en, line 2: &apos; is an escape of Moses, and dropout breaks it" in done.out
    plugin(*data, "--tokenize", "--already-prepared", "--destdir", tmp_path / "recorded")
    assert read_preparation(tmp_path / "recorded", "en").prepare('"It') == "&quot; It"
    done = plugin(*data, "--unescape", "--destdir", tmp_path / "unescaped")
    assert "warning" not in done.out
    assert (tmp_path / "unescaped" / "train.en-xx.en").read_text().splitlines()[:2] == ["it is", 'it \'s " so "']
    assert read_preparation(tmp_path / "unescaped", "en").prepare("it &apos;s") == "it 's"


def test_no_escape_is_broken_or_unknown(tmp_path):
    """Raw text in, dropout on: apostrophes, quotes and brackets are pieces of the dictionary, or parts of them."""
    line = "It's a \"good\" [one] & more, isn't it?"
    for language in ("en", "xx"):
        (tmp_path / f"train.{language}").write_text(f"{line}\n" * 20)
    data = ["data", "-s", "en", "-t", "xx", "--trainpref", tmp_path / "train", "--merges", 40]
    plugin(*data, "--tokenize", "--lowercase", "--vocabulary", "dropout", "--destdir", tmp_path / "DATA")
    segmenter = Segmenter.from_codes(tmp_path / "DATA" / "codes.en")
    words = (tmp_path / "DATA" / "train.en-xx.en").read_text().splitlines()[0]
    drawn = {piece for seed in range(500) for piece in segmenter.segment(words, 0.5, seed)}
    assert drawn <= set(load_symbols(tmp_path / "DATA" / "dict.en.txt"))
    assert {piece for piece in drawn if set(piece) & set("'\"[]&;")} == {"'@@", "'s", "'t", '"', "[", "]", "&"}


def test_a_broken_record(tmp_path):
    assert read_preparation(tmp_path, "en") == Preparation("en")
    (tmp_path / "preparation.json").write_text("{")
    with pytest.raises(InputError, match=r"preparation\.json is not JSON"):
        read_preparation(tmp_path, "en")
    (tmp_path / "preparation.json").write_text(json.dumps({"en": {"stem": True}}))
    with pytest.raises(InputError, match="expected"):
        read_preparation(tmp_path, "en")


def test_languages_of_a_folder(data, tmp_path):
    folder = DataFolder(data)
    assert (folder.source, folder.target) == ("en", "xx")
    assert folder.text("train", "en") == data / "train.en-xx.en"
    assert DataFolder(data, "xx", "en").text("train", "en") == data / "train.en-xx.en"
    for given in (("en", None), (None, "xx"), ("en", "xx"), (None, None)):
        assert DataFolder(data, *given).source == "en"
    for given in (("xx", None), (None, "en")):
        assert (DataFolder(data, *given).source, DataFolder(data, *given).target) == ("xx", "en")
    with pytest.raises(InputError, match="holds en-xx, and de was asked for"):
        DataFolder(data, "de")
    with pytest.raises(InputError, match="there is no folder"):
        DataFolder(Path("nowhere"))
    with pytest.raises(InputError, match=r"holds no text such as train\.en-de\.en"):
        DataFolder(tmp_path)
    for name in ("train.en-xx.en", "train.en-yy.en"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"holds en-xx, en-yy: say which"):
        DataFolder(tmp_path)


def test_fewer_merges_than_asked_for(corpus, tmp_path):
    done = plugin("data", *corpus.arguments(tmp_path / "DATA"), "--merges", "100000")
    learned = len(Codes.read(tmp_path / "DATA" / "codes.en").pairs)
    assert f"{learned} merges were learned, and not 100000: no other pair occurs 2 times" in done.out


def test_joint_merges(corpus, tmp_path):
    """--joined-dictionary learns one table of both sides: what subword-nmt learns of the two texts together."""
    folder = tmp_path / "DATA"
    plugin("data", *corpus.arguments(folder), "--merges", "100", "--joined-dictionary")
    both = [line for name in ("en", "xx") for line in (corpus.folder / f"train.{name}").read_text().splitlines()]
    assert filecmp.cmp(folder / "codes.en", folder / "codes.xx", shallow=False)
    assert filecmp.cmp(folder / "dict.en.txt", folder / "dict.xx.txt", shallow=False)
    assert Codes.read(folder / "codes.en").pairs == learn(both, 100).pairs


def test_a_vocabulary_threshold(corpus, tmp_path):
    """Sennrich's recipe: pieces of joint merges that are rare on a side are split there, as subword-nmt does."""
    from subword_nmt.apply_bpe import BPE, read_vocabulary

    folder = tmp_path / "DATA"
    joint = ["--merges", "200", "--joined-dictionary", "--vocabulary-threshold", "20"]
    plugin("data", *corpus.arguments(folder), *joint)
    pieces = {}
    for language in ("en", "xx"):
        text = (corpus.folder / f"train.{language}").read_text().splitlines()
        with (folder / "codes.en").open() as codes:
            counts = Counter(piece for line in text for piece in BPE(codes).process_line(line).split())
        (tmp_path / "vocabulary").write_text("".join(f"{piece} {count}\n" for piece, count in counts.items()))
        with (folder / "codes.en").open() as codes, (tmp_path / "vocabulary").open() as vocabulary:
            bpe = BPE(codes, vocab=read_vocabulary(vocabulary, 20))
        expected = [bpe.process_line(line).split() for line in text]
        model = METHODS["bpe"].load(folder / f"codes.{language}", "src", language)
        assert [model.segment(line) for line in text] == expected
        pieces[language] = {piece for line in expected for piece in line}
        assert pieces[language] <= set(load_symbols(folder / f"dict.{language}.txt"))
    assert pieces["en"] != pieces["xx"]


def test_glossaries(corpus, tmp_path):
    """Tags stay whole in the text, in the dictionary, and are nothing that merges are learned from."""
    for language in ("en", "xx"):
        lines = (corpus.folder / f"train.{language}").read_text().splitlines()
        (tmp_path / f"train.{language}").write_text("".join(f"<BT> {line}<2xx>\n" for line in lines))
    arguments = ["-s", "en", "-t", "xx", "--trainpref", tmp_path / "train", "--destdir", tmp_path / "DATA"]
    plugin("data", *arguments, "--merges", "100", "--glossaries", "<BT>", "<2..>")
    model = METHODS["bpe"].load(tmp_path / "DATA" / "codes.en", "src", "en")
    pieces = model.segment("<BT> one<2xx>")
    assert pieces[0] == "<BT>"
    assert pieces[-1] == "<2xx>"
    assert "<BT>" in load_symbols(tmp_path / "DATA" / "dict.en.txt")
    merged = {symbol.removesuffix("</w>") for pair in model.segmenter.codes.pairs for symbol in pair}
    assert not any("<" in symbol or ">" in symbol for symbol in merged)
    refused = plugin("data", *arguments[:-1], tmp_path / "D", "--merges", "100", "--glossaries", "(", code=1)
    assert "the glossary '(' cannot be used" in refused.sentence


@pytest.mark.parametrize(
    ("line", "data", "convert"),
    [
        ("un@@ related words", "is segmented already: 40 of its 120 words have @@. Use `bpe-dropout convert`", None),
        (
            "▁un related ▁words",
            "is segmented already: 80 of its 120 words have ▁. Join it first, with sentencepiece's spm_decode",
            "was segmented by sentencepiece (▁), and `convert` is for @@. Join it with spm_decode",
        ),
    ],
)
def test_text_that_is_segmented_already(corpus, tmp_path, line, data, convert):
    for language in ("en", "xx"):
        (tmp_path / f"train.{language}").write_text(f"{line}\n" * 40)
    arguments = ["-s", "en", "-t", "xx", "--trainpref", tmp_path / "train", "--destdir", tmp_path / "DATA"]
    assert data in plugin("data", *arguments, "--merges", "10", code=1).sentence
    if convert:
        assert convert in plugin("convert", *arguments, "--codes", corpus.codes["en"], code=1).sentence


def test_segmented_text_is_noticed_before_it_is_tokenized(corpus, tmp_path):
    for language in ("en", "xx"):
        shutil.copy(corpus.folder / f"train.{language}", tmp_path / f"train.{language}")
        (tmp_path / f"valid.{language}").write_text("un@@ related words\n" * 40)
    arguments = ["-s", "en", "-t", "xx", "--merges", "10", "--tokenize", "--destdir", tmp_path / "DATA"]
    for prefixes in (["--trainpref", "valid"], ["--trainpref", "train", "--validpref", "valid"]):
        named = [tmp_path / one if not one.startswith("-") else one for one in prefixes]
        done = plugin("data", *arguments, *named, code=1)
        assert "valid.en is segmented already: 40 of its 120 words have @@" in done.sentence


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--merges", "-30"], "--merges is a whole number from 1 on, not -30"),
        (["--merges", "20", "--codes", "c"], "--codes and --merges are two ways to segment en: leave one of them out"),
        (["--src-codes", "c", "--unigram", "u"], "--src-codes and --unigram are two ways to segment en: leave one"),
        (["--unigram", "nowhere"], "there is no nowhere: --unigram names a file of unigram model"),
        (["--merges", "1"], "1 merges of en are too few: none of them ends a word"),
        (
            ["--merges", "50", "--vocabulary-threshold", "0"],
            "--vocabulary-threshold is a whole number from 1 on, not 0",
        ),
        (["--merges", "50", "--glossaries", ""], "a glossary is a regular expression of one line, not ''"),
        (["--merges", "50", "--glossaries", "a\nb"], "a glossary is a regular expression of one line, not 'a\\nb'"),
        (["--merges", "50", "--glossaries", "<BT>", "--tokenize"], "--glossaries with --tokenize: the tokenizer would"),
        (["--merges", "50", "--threshold", "100000"], "--threshold and --nwords leave no piece of en"),
        (["--merges", "50", "-t", "en"], "source and target are both en"),
    ],
)
def test_options_that_cannot_be(corpus, tmp_path, more, sentence):
    done = plugin("data", *corpus.arguments(tmp_path / "DATA"), *more, code=1)
    assert sentence in done.sentence
    assert not list(tmp_path.iterdir())


def test_an_interrupt_between_the_renames_loses_nothing(corpus, data, tmp_path, monkeypatch):
    """The old folder is renamed, then the new one takes its place: a signal may come in between."""
    shutil.copytree(data, tmp_path / "DATA")
    rename, calls = os.rename, []

    def interrupted(source, target):
        calls.append(source)
        if len(calls) == 2:
            raise SystemExit(143)
        rename(source, target)

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(SystemExit):
        plugin("data", *corpus.arguments(tmp_path / "DATA"), "--merges", "50", "--overwrite")
    # The third call gives the old folder its name back.
    assert len(calls) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["DATA"]
    assert filecmp.cmp(tmp_path / "DATA" / "codes.en", data / "codes.en", shallow=False)


def test_pieces_of_dropout_beside_glossaries():
    segmenter = Segmenter(Codes((("f", "o"), ("fo", "o</w>"))), glossaries=["<BT>"])
    words = ["foo<BT>", "<BT>foo", "oof"]
    made = {piece for word in words for pieces in segmenter.distribution(word, 0.3) for piece in pieces}
    assert made <= set(possible_pieces(segmenter, words))


def test_merges_are_learned_of_the_words_that_training_reads(corpus, tmp_path):
    """Which end at any white space, and not at spaces alone."""
    for language in ("en", "xx"):
        text = (corpus.folder / f"train.{language}").read_text()
        (tmp_path / f"train.{language}").write_text(text.replace(" ", "\u00a0").replace("e\u00a0", "e\u3000"))
    arguments = ["-s", "en", "-t", "xx", "--merges", "100"]
    for prefix, folder in ((corpus.folder / "train", "SPACES"), (tmp_path / "train", "OTHERS")):
        plugin("data", *arguments, "--trainpref", prefix, "--destdir", tmp_path / folder)
    for name in ("codes.en", "codes.xx", "dict.en.txt", "dict.xx.txt"):
        assert filecmp.cmp(tmp_path / "SPACES" / name, tmp_path / "OTHERS" / name, shallow=False)
    text = (corpus.folder / "train.en").read_text().splitlines()
    assert Codes.read(tmp_path / "SPACES" / "codes.en").pairs == learn(text, 100).pairs
