"""Codes, vocabularies and dictionaries on disk; what is wrong with them is said in a sentence."""

import warnings

import numpy as np
import pytest

from bpe_dropout import Codes, Dictionary, InputError, Segmenter, read_vocabulary


@pytest.fixture
def write(tmp_path):
    def write_file(content: str | bytes, name: str = "file"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def test_versions(write):
    assert Codes.read(write("#version: 0.2\na b\nab c</w>\n")) == Codes((("a", "b"), ("ab", "c</w>")), (0, 2))
    assert Codes.read(write("a b\nb </w>")) == Codes((("a", "b"), ("b", "</w>")), (0, 1))
    assert Codes.read(write("#version: 0.1\na </w>\n")).version == (0, 1)
    assert Codes.read(write("#version: 0.2.0\r\na b</w>\r\n")) == Codes((("a", "b</w>"),), (0, 2))


def test_white_space_that_is_no_space_belongs_to_symbols(write):
    assert Codes.read(write("#version: 0.2\n\u3000 a\n\u2028 \u00a0\n"), end_of_word=True).pairs == (
        ("\u3000", "a"),
        ("\u2028", "\u00a0"),
    )


def test_number_of_merges(write):
    path = write("#version: 0.2\na b\nc d</w>\n")
    assert Codes.read(path, 1).pairs == (("a", "b"),)
    assert Codes.read(path, 0).pairs == ()
    assert len(Codes.read(path, 99).pairs) == 2
    assert Codes.read(write("#version: 0.2\na b\nnot a merge</w>\n"), 1).pairs == (("a", "b"),)
    with pytest.raises(InputError, match=r"-1 \(all of them\) or more"):
        Codes.read(path, -2)


GPT2 = "#version: 0.2\nĠ t\nh e\nĠt he\n"  # as its merges.txt begins


def test_a_table_without_end_of_word_is_not_taken_for_codes(write):
    path = write(GPT2, "merges.txt")
    for read in (Codes.read, Segmenter.from_codes):
        with pytest.raises(InputError, match=r"merges\.txt has no merge that ends a word .* --no-end-of-word"):
            read(path)
    assert Codes.read(path, end_of_word=False) == Codes((("Ġ", "t"), ("h", "e"), ("Ġt", "he")), end_of_word=False)
    assert Codes.read(path, end_of_word=True).end_of_word
    assert Segmenter.from_codes(path, end_of_word=False, separator="").segment("Ġthe he") == ["Ġthe", "he"]
    assert Segmenter.from_codes(path, end_of_word=True).segment("Ġthe") == ["Ġt@@", "h@@", "e"]


def test_a_table_with_end_of_word_is_not_taken_for_one_without(write):
    path = write("#version: 0.2\nt h\nth e</w>\n", "codes")
    with pytest.raises(InputError, match=r"codes, line 3: the merge 'th e</w>' ends a word"):
        Codes.read(path, 1, end_of_word=False)
    assert Codes.read(path, 1).pairs == (("t", "h"),)  # what is left out is looked at, too


def test_a_duplicate_counts_where_it_comes_first(write):
    path = write("#version: 0.2\na b\nc d\na b\n")
    with pytest.warns(UserWarning, match="line 4: the merge 'a b' is already in line 2; the first counts"):
        codes = Codes.read(path, end_of_word=True)
    assert codes.ranks == {("a", "b"): 0, ("c", "d"): 1}


@pytest.mark.parametrize("line", ["a", "a b c", "", "a  b", " "])
def test_a_malformed_line_is_named(write, line):
    path = write(f"#version: 0.2\na b\n{line}\nc d\n", "codes.en")
    with pytest.raises(InputError, match=r"codes\.en, line 3: .* is not a merge; expected two symbols"):
        Segmenter.from_codes(path)


def test_no_merges(write):
    for content in ("", "#version: 0.2\n", "#version: 0.2"):
        with pytest.raises(InputError, match="holds no merges"):
            Codes.read(write(content))


def test_unknown_version(write):
    with pytest.raises(InputError, match=r"line 1: codes of version '0.3'"):
        Codes.read(write("#version: 0.3\na b\n"))


def test_not_text_at_all(write):
    with pytest.raises(InputError, match=r"model, line 2: not valid UTF-8; is this a codes file"):
        Codes.read(write(b"a b\n\x0f\xff\xfe\n", "model"))
    with pytest.raises(FileNotFoundError):
        Codes.read("nowhere")


def test_vocabularies(write):
    assert read_vocabulary(write("the 3\nun@@ 1\n"), 2) == {"the"}
    with pytest.raises(InputError, match="line 2: expected a piece, a space and its count"):
        read_vocabulary(write("the 3\nun@@\n"))
    with pytest.raises(InputError, match="no piece occurs 9 times"):
        read_vocabulary(write("the 3\n"), 9)
    with pytest.raises(InputError, match="threshold needs a vocabulary"):
        Segmenter.from_codes(write("a </w>\n"), vocabulary_threshold=3)


def test_dictionaries(write):
    dictionary = Dictionary.load(write("the 3\nun@@ 1\n\u2028 1\n"))
    assert (dictionary["the"], dictionary["un@@"], dictionary["\u2028"], dictionary["other"]) == (4, 5, 6, 3)
    assert (dictionary.unk, dictionary.eos, len(dictionary)) == (3, 2, 3)
    assert Dictionary.load(write("<unk> 5 #fairseq:overwrite\na 1\n"))["a"] == 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("the\n", "line 1: expected a piece"),
        ("a 1\nthe x\n", "line 2: expected a piece"),
        ("a 1\na 2\n", "line 2: 'a' is in the dictionary already"),
        ("</s> 1\n", "line 1: '</s>' is in the dictionary already"),
        (b"\xff 1\n", "line 1: not valid UTF-8"),
    ],
)
def test_malformed_dictionaries(write, content, message):
    with pytest.raises(InputError, match=message):
        Dictionary.load(write(content))


@pytest.mark.parametrize(
    "given",
    [
        {"ids": {"a": -1}},
        {"ids": {"a": 2**31}},
        {"ids": {"a": None}},
        {"ids": {"a": 4.5}},
        {"unk": -1},
        {"unk": None},
        {"eos": 2**40},
        {"eos": "x"},
        {"pad": -2},
    ],
    ids=str,
)
def test_ids_must_be_ids(given):
    with pytest.raises(InputError, match=r"the id of '.*' is a whole number from 0 to 2147483647, not"):
        Dictionary(**{"ids": {"a": 4}, "unk": 3, **given})


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan"), float("inf"), "1.1", None, True])
def test_dropout_is_a_probability(segmenter, p):
    for call in (segmenter.segment, segmenter.process_line, segmenter.distribution):
        with pytest.raises(InputError, match="probability from 0 to 1"):
            call("word", p)
    with pytest.raises(InputError, match="probability from 0 to 1"):
        segmenter.stream(p)


def test_other_arguments(segmenter):
    for name in ("seed", "epoch", "side", "sentence"):
        for wrong in (-1, 2**64, 1.5, True, "1"):
            with pytest.raises(InputError, match=f"the {name} is a whole number"):
                segmenter.segment("word", 0.1, **{name: wrong})
    for word in ("", "two words", "two\nlines"):
        with pytest.raises(InputError, match="is not one word"):
            segmenter.distribution(word, 0.1)
    with pytest.raises(InputError, match="too many to list"):
        segmenter.distribution("statement" * 20, 0.1)
    assert segmenter.distribution("statement" * 20, 0.0)
    with pytest.raises(InputError, match="cannot be written as UTF-8"):
        segmenter.segment("half a pair: \ud800")
    for glossaries, named in ((["a", "["], r"'\['"), (["(?i)usa"], "usa"), (["(?P<x>a)", "(?P<x>b)"], "<x>b")):
        with pytest.raises(InputError, match=f"the glossary .*{named}.* cannot be used"):
            Segmenter(segmenter.codes, glossaries=glossaries)
    with pytest.raises(InputError, match="a list of regular expressions, not 'USA'"):
        Segmenter(segmenter.codes, glossaries="USA")
    with pytest.raises(InputError, match="split at 'spaces' or 'whitespace', not 'x'"):
        segmenter.segment("word", split="x")
    assert segmenter.segment("word", np.float32(1)) == ["w@@", "o@@", "r@@", "d"]
    with pytest.raises(InputError, match="line 3: not valid UTF-8, at byte 2"):
        segmenter.stream().text(b"a\nb\nc\x80\n")


def test_invalid_lines_are_counted_over_blocks_and_threads(segmenter):
    block = b"the words of a line\n" * 20_000 + b"\xed\xa0\x80\n"
    for threads in (1, 2, 4):
        with pytest.raises(InputError, match="line 20101: "):
            segmenter.stream(threads=threads).text(block, first_line=100)


@pytest.mark.parametrize(
    "bad",
    [b"\xff", b"\xc0\x80", b"\xc3", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80"],
)
def test_utf8_is_as_strict_as_pythons(segmenter, bad):
    with pytest.raises(UnicodeDecodeError):
        bad.decode()
    with pytest.raises(InputError):
        segmenter.stream().text(b"fine 8 bytes and more " + bad + b"\n")


def test_every_character_there_is(segmenter):
    everything = " ".join(chr(c) for c in range(1, 0x110000, 7) if not 0xD800 <= c < 0xE000 and chr(c) not in "\r\n ")
    assert segmenter.stream().text(everything.encode()).decode() == everything


def test_reading_warns_of_nothing_else(write):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Segmenter.from_codes(write("#version: 0.2\na b\nb a</w>\n"))


def test_a_byte_order_mark(tmp_path):
    (tmp_path / "codes").write_text("\ufeff#version: 0.2\nt h\nth e</w>\n")
    with pytest.raises(InputError, match="codes, line 1: the file begins with a byte order mark"):
        Codes.read(tmp_path / "codes")
