"""At p = 0 every byte is subword-nmt's: its own library is the oracle."""

import io
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subword_nmt.apply_bpe import BPE
from subword_nmt.apply_bpe import read_vocabulary as subword_nmt_vocabulary

from bpe_dropout import Codes, Segmenter, read_vocabulary
from tests.conftest import SHARED, as_version_1, learn, read_gz, write_codes

ODD_LINES = [
    "",
    " ",
    "   ",
    "\r",
    " \r ",
    "a",
    "a b c",
    "  the  words   here ",
    "\tthe\twords\t",
    "no-break\u00a0space and\u3000ideographic",
    "line\u2028separator next\u0085line",
    "the@@ words @@ @@the @@",
    "the</w> </w> a</w>b </w></w> <w>",
    "ends with cr\r",
    "cr\rwithin the \r words",
    "naïve café ﬁ ½ 日本語のテキスト 🙂🙂 e\u0301",
    "\x00 nul \x00\x00",
    "x" * 300,
    "the" * 100,
]


def oracle(codes: Codes, **options) -> BPE:
    head = "#version: 0.2\n" if codes.version == (0, 2) else ""
    text = head + "".join(f"{left} {right}\n" for left, right in codes.pairs)
    return BPE(io.StringIO(text), **options)


def assert_same(codes: Codes, lines: list[str], *, vocabulary=None, glossaries=None, separator="@@") -> None:
    theirs = oracle(codes, vocab=vocabulary, glossaries=glossaries, separator=separator)
    ours = Segmenter(codes, vocabulary=vocabulary, glossaries=glossaries, separator=separator)
    expected = [theirs.process_line(line) for line in lines]
    assert [ours.process_line(line) for line in lines] == expected
    block = "".join(line + "\n" for line in lines if "\n" not in line).encode()
    assert ours.stream().text(block).decode() == "".join(e + "\n" for e, line in zip(expected, lines, strict=True))


@pytest.mark.parametrize("version", [(0, 1), (0, 2)])
def test_odd_lines(codes, english, version):
    codes = codes if version == (0, 2) else as_version_1(codes)
    assert_same(codes, [*ODD_LINES, *english[:500]])


def test_hand_made_table():
    codes = Codes((("ab", "a"), ("a", "b")))
    assert_same(codes, ["ababx", "abab", "ababab", "xababx"])
    assert Segmenter(codes).segment("ababx") == ["ab@@", "ab@@", "x"]


@pytest.mark.parametrize("version", [(0, 1), (0, 2)])
def test_end_mark_in_the_text(version):
    """Merges that build "</w>" out of characters, and words that hold it."""
    pairs = (("<", "/"), ("</", "w"), ("</w", ">"), ("a", "</w>"), ("a</w>", "b"), ("a", "b</w>"), (">", "</w>"))
    lines = ["a</w>", "a</w>b", "</w>", "</w></w>", "ab</w> a b</w>", "aa</w>bb</w>a"]
    assert_same(Codes(pairs, version), lines)


def test_duplicate_pairs_count_once():
    codes = Codes((("a", "b"), ("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc"), ("ab", "c")))
    assert_same(codes, ["abc", "abcabc", "aabbcc"])
    assert_same(codes, ["abcx", "abcabcx", "abc"], vocabulary={"a@@", "b@@", "bc", "c@@", "x"})


@pytest.mark.parametrize("version", [(0, 1), (0, 2)])
@pytest.mark.parametrize("keep", [1, 2, 3, 7])
def test_vocabulary(codes, english, version, keep):
    codes = codes if version == (0, 2) else as_version_1(codes)
    segmented = " ".join(oracle(codes).process_line(line) for line in english[:2000]).split()
    vocabulary = set(sorted(set(segmented))[::keep])
    assert_same(codes, [*ODD_LINES, *english[:1000]], vocabulary=vocabulary)


def test_vocabulary_file_and_threshold(tmp_path):
    path = tmp_path / "vocabulary"
    path.write_text("the 10\nun@@ 5\nwords 2\n")
    for threshold in (None, 1, 5, 10):
        with path.open() as file:
            assert read_vocabulary(path, threshold) == subword_nmt_vocabulary(file, threshold)


@pytest.mark.parametrize(
    "glossaries",
    [["USA"], ["USA", "the"], [r"[0-9]+"], [r"<.*?>", "@"], ["a|b"], ["(in)?deed", r"\d+"], ["<date>", "."]],
)
def test_glossaries(codes, english, glossaries):
    lines = ["1934USABUSA the USA", "<date>12</date> 12x34", "indeed deed USA", "aUSAb thethe", *english[:300]]
    assert_same(codes, lines, glossaries=glossaries)


@pytest.mark.parametrize("separator", ["@@", "￭", "@", "</w>", "#-#"])
def test_separators(codes, english, separator):
    assert_same(codes, [*ODD_LINES, *english[:200]], separator=separator)


@pytest.mark.parametrize("merges", [0, 1, 100, 5000, -1])
def test_number_of_merges(codes, english, tmp_path, merges):
    path = write_codes(tmp_path / "codes", codes)
    with path.open(encoding="utf-8") as file:
        theirs = BPE(file, merges=merges)
    ours = Segmenter.from_codes(path, merges=merges)
    for line in english[:200]:
        assert ours.process_line(line) == theirs.process_line(line)


symbols = st.text(alphabet="ab</w>@ß", min_size=1, max_size=3)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(symbols, symbols), min_size=1, max_size=25),
    st.sampled_from([(0, 1), (0, 2)]),
    st.lists(st.text(alphabet="ab</w>@ß \r\t", max_size=20), max_size=5),
)
def test_any_table_any_text(pairs, version, lines):
    assert_same(Codes(tuple(pairs), version), lines)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(*[st.text(alphabet="abß", min_size=1, max_size=3)] * 2), min_size=1, max_size=25),
    st.sets(st.text(alphabet="abß@", min_size=1, max_size=5), min_size=1),
    st.lists(st.text(alphabet="abß ", max_size=20), max_size=5),
)
def test_any_table_any_vocabulary(pairs, vocabulary, lines):
    assert_same(Codes(tuple(pairs)), lines, vocabulary=vocabulary)


def moses(path: Path) -> list[str]:
    from sacremoses import MosesTokenizer

    language = next(part for part in reversed(path.name.split(".")) if part in {"en", "de", "fr", "ja", "zh", "vi"})
    tokenizer = MosesTokenizer(language)
    return [tokenizer.tokenize(line, return_str=True).lower() for line in read_gz(path)]


FOLDERS = sorted(path.name for path in SHARED.iterdir() if path.is_dir()) if SHARED.is_dir() else ["none"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_line_of_the_real_text(shared, folder):
    """As it is, and Moses-tokenized and lowercased, all languages, one table a folder."""
    paths = sorted((shared / folder).glob("*.gz"))
    raw = {path: read_gz(path) for path in paths}
    with ProcessPoolExecutor(2) as pool:
        tokenized = dict(zip(paths, pool.map(moses, paths), strict=True))
    sample = [line for lines in tokenized.values() for line in lines[:400]]
    sample += [line for lines in raw.values() for line in lines[:200]]
    codes = learn(sample, 1500)
    theirs, ours = oracle(codes), Segmenter(codes).stream(threads=2)
    for lines in [*raw.values(), *tokenized.values()]:
        expected = "".join(theirs.process_line(line) + "\n" for line in lines)
        assert ours.text("".join(line + "\n" for line in lines).encode()) == expected.encode()
