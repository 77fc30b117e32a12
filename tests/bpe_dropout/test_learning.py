"""Merges are those of subword-nmt's own learner, byte for byte."""

import contextlib
import io
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from subword_nmt import learn_bpe as subword_nmt

from bpe_dropout import InputError
from bpe_dropout.learning import count_words, learn
from tests.conftest import SHARED, read_gz

SPACES = "\u00a0\u3000\u2028\u0085\t\x1c"


def count(lines: Iterable[str]) -> dict[str, int]:
    """The words of some lines, as subword-nmt counts them."""
    return Counter(word for line in lines for word in line.strip("\r\n ").split(" ") if word)


def oracle(counts: Mapping[str, int], merges: int, **options) -> str:
    """What subword-nmt writes for these counts."""
    learned = io.StringIO()
    with (
        mock.patch.object(subword_nmt, "get_vocabulary", return_value=counts),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        subword_nmt.learn_bpe(None, learned, merges, **options)
    return learned.getvalue()


def assert_same(counts: Mapping[str, int], merges: int, **options) -> None:
    ours, theirs = learn(counts, merges, **options).text(), oracle(counts, merges, **options)
    lines = enumerate(zip_longest(ours.split("\n"), theirs.split("\n")), 1)
    assert next((line for line in lines if line[1][0] != line[1][1]), None) is None


def repeats(alphabet: str, most: int = 12) -> st.SearchStrategy[str]:
    """Words of few characters, and of parts that recur in them."""
    part = st.text(alphabet, min_size=1, max_size=4)
    return st.one_of(
        st.text(alphabet, min_size=1, max_size=most),
        st.builds(
            lambda parts, times: "".join(parts) * times, st.lists(part, min_size=1, max_size=4), st.integers(1, 4)
        ),
    )


def dictionaries(words: st.SearchStrategy[str], counts: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, int]]:
    return st.dictionaries(words, counts, min_size=1, max_size=30).filter(lambda them: any(map(is_long, them)))


def is_long(word: str) -> bool:
    return len(word) > 1


few = st.integers(1, 4)  # so that there are ties
wide = st.one_of(few, st.integers(1, 1000))  # so that there are rare pairs, which subword-nmt sets aside
many = st.sampled_from([1, 7, 40, 400])  # of merges: mostly until there are no more
least = st.integers(1, 5)


@settings(max_examples=200, deadline=None)
@given(dictionaries(repeats("abc"), wide), many, least, st.booleans())
@example({"aaaaa": 3, "aaaab": 2, "baaa": 1}, 40, 1, False)
def test_repeated_letters(counts, merges, min_frequency, total_symbols):
    assert_same(counts, merges, min_frequency=min_frequency, total_symbols=total_symbols)


@settings(max_examples=300, deadline=None)
@given(dictionaries(repeats("ab" + SPACES, 20), wide), many, least)
@example({"a\u3000a": 2, "aa\u3000aa": 3, "\u3000aa": 1, "a\u3000ab": 5}, 40, 1)
@example({"\u3000\u3000\u3000": 2, "a\u00a0": 2}, 40, 1)
def test_white_space_within_words(counts, merges, min_frequency):
    """Where subword-nmt's regular expression ends symbols, and its counts are not those of the text."""
    assert_same(counts, merges, min_frequency=min_frequency)


@settings(max_examples=200, deadline=None)
@given(
    dictionaries(repeats("ab</w>", 20) | st.sampled_from(["a</w>", "a</w>b", "</w>", "ab</w>ab", "</w"]), wide), many
)
@example({"ab</w>ab": 3, "ab": 5, "xab": 2, "xab</w>c": 9}, 40)
def test_the_end_mark_within_words(counts, merges):
    """Symbols of one string that are merged from different ones."""
    assert_same(counts, merges, min_frequency=1)


@settings(max_examples=200, deadline=None)
@given(dictionaries(repeats("ab\u3000</w>", 20), few), many, st.integers(-3, 1))
def test_pairs_that_do_not_occur_are_merged_if_asked_for(counts, merges, min_frequency):
    assert_same(counts, merges, min_frequency=min_frequency)


@settings(max_examples=100, deadline=None)
@given(dictionaries(repeats("ab\u3000", 20), st.integers(-3, 3)), many, st.integers(-3, 2))
def test_counts_that_are_not_positive(counts, merges, min_frequency):
    assert_same(counts, merges, min_frequency=min_frequency)


@settings(max_examples=150, deadline=None)
@given(
    dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \r"), min_size=1, max_size=8), few
    ),
    many,
)
def test_any_characters(counts, merges):
    assert_same(counts, merges, min_frequency=1)


def test_symbols_are_replaced_as_they_are():
    """Not as patterns, and in the order of code points, which is not that of UTF-16."""
    counts = {"\\1\\g<0>": 3, ".*": 5, "(a|b)": 5, "$^": 5, "\uffff\U00010000": 5, "\U00010000\uffff": 5, "\x00\x00": 5}
    assert_same(counts, 100, min_frequency=1)


@pytest.mark.parametrize(("alphabet", "seed"), [("abc\u3000\u00a0", 26), ("aab\u3000", 20)])
def test_rare_pairs_are_brought_back(alphabet, seed):
    """Where merges depend on when subword-nmt sets pairs aside (the first), and on its threshold (the second)."""
    rng = random.Random(seed)
    parts = ["".join(rng.choices(alphabet, k=rng.randrange(1, 6))) for _ in range(60)]
    words = ["".join(rng.choices([*parts, "</w>"], k=rng.randrange(1, 9))) for _ in range(200)]
    assert_same({word: 1 + 2000 // rng.randrange(1, 400) for word in words}, 3000, min_frequency=1)


def test_options_on_text(english):
    counts = count(english[:700])
    assert_same(counts, 400, min_frequency=20)
    assert_same(counts, 200, total_symbols=True)


FOLDERS = sorted(path.name for path in SHARED.iterdir() if path.is_dir()) if SHARED.is_dir() else ["none"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_real_text(shared, folder):
    """Heads of all files, joined two by two. All of the text: compare_learning.py."""
    heads = [read_gz(path)[:1000] for path in sorted((shared / folder).glob("*.gz"))]
    for head, other in zip(heads[::2], heads[1::2], strict=False):
        assert_same(count([*head[:700], *other[:700]]), 500)


def test_unsegmented_text_until_the_end(shared):
    assert_same(count(read_gz(shared / "tatoeba-enja" / "test.ja.gz")[:400]), 10**6, min_frequency=1)


def test_counts_that_are_added_are_those_of_the_text(tmp_path, english):
    (tmp_path / "one").write_text("\n".join(english[:500]))
    (tmp_path / "other").write_text("\n".join(english[400:900]))
    together = Counter(count_words(tmp_path / "one")) + Counter(count_words(tmp_path / "other"))
    assert learn(together, 200).text() == oracle(count([*english[:500], *english[400:900]]), 200)


def test_words_are_counted_in_blocks(tmp_path, monkeypatch):
    """On several threads, and yet in the order of their first appearance."""
    lines = [f"{n % 7} {n * n % 31} \r{n}\r  x{n}\r" for n in range(500)]
    (tmp_path / "text").write_bytes("\n".join(lines).encode())
    monkeypatch.setattr("bpe_dropout.lines.BLOCK", 100)
    for cores in (1, 2, 3, 64):
        monkeypatch.setattr("bpe_dropout.learning.count_cores", lambda cores=cores: cores)
        assert list(count_words(tmp_path / "text").items()) == list(count(lines).items())
    lines[300] = "\udcff"
    (tmp_path / "text").write_bytes("\n".join(lines).encode(errors="surrogateescape"))
    with pytest.raises(InputError, match="text, line 301: not valid UTF-8"):
        count_words(tmp_path / "text")


def test_the_order_of_the_words_does_not_matter(english):
    counts = count(english[:1000])
    assert learn(counts, 400) == learn(dict(reversed(counts.items())), 400)


def test_several_threads_count_the_same():
    """So much text that it is shared among them."""
    from bpe_dropout import _core

    counts = count_of_long_words(8000)
    words, numbers = " ".join(counts).encode(), np.array(list(counts.values()), np.int64)
    learned = [_core.learn(words, numbers, 300, 2, False, None, threads) for threads in (1, 2, 3)]
    assert learned[0] == learned[1] == learned[2]
    assert len(learned[0]) == 300


@pytest.mark.parametrize("threads", [0, -1, 2.5])
def test_numbers_of_threads_that_make_no_sense(threads):
    with pytest.raises(InputError, match="the number of threads"):
        learn({"low": 5, "lower": 2}, 2, threads=threads)


def count_of_long_words(number: int) -> dict[str, int]:
    rng = random.Random(1)
    return {"".join(rng.choices("abcdefgh", k=100)): rng.randrange(1, 5) for _ in range(number)}


def test_merges_that_run_out():
    assert learn({"ab": 2, "cd": 1}, 100).pairs == (("a", "b</w>"),)
    assert learn({"ab": 2, "cd": 1}, 100, min_frequency=1).pairs == (("a", "b</w>"), ("c", "d</w>"))
    assert learn({"ab": 2}, 1, min_frequency=3).pairs == ()


def test_more_characters_than_symbols():
    assert learn({"abc": 5}, 3, total_symbols=True).pairs == ()
    assert learn({"abc": 5}, 4, total_symbols=True).pairs == (("b", "c</w>"),)


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        ({"ab": 2}, {"merges": 0}, "the number of merges is 1 or more, not 0"),
        ({}, {}, "no word of two characters"),
        ({"a": 2, "b": 1}, {}, "no word of two characters"),
        ({"ab": 2, "": 1}, {}, "'' is not a word: a word has at least one character"),
        ({"": 1}, {}, "'' is not a word"),
        ({"ab": 2, "c d": 1}, {}, "'c d' is not a word: a word has at least one character, and no space"),
        ({"ab\ud800": 2}, {}, r"'ab\\ud800' has a lone surrogate"),
        ({"ab": 2**53}, {}, "counts are too large"),
        ({"ab": 1.5}, {}, r"the count of 'ab' is a whole number, not 1\.5"),
        ("abab", {}, "merges are learned from words and their counts, such as .*, not from 'abab'"),
    ],
)
def test_what_goes_wrong_is_said(counts, options, message):
    with pytest.raises(InputError, match=message):
        learn(counts, **{"merges": 10} | options)


def test_very_many_merges_are_no_error():
    assert learn({"ab": 2}, 10**30).pairs == (("a", "b</w>"),)
    assert learn({"ab": 2}, 1, min_frequency=10**30).pairs == ()


def test_progress_is_shown_and_may_end_the_work():
    shown = []

    def show(done: int, total: int | None) -> None:
        shown.append((done, total))
        if done:
            raise InputError("enough")

    with pytest.raises(InputError, match="enough"):
        learn({"ab\u3000": 1}, 10**7, min_frequency=0, progress=show)
    assert all(total == 10**7 for _, total in shown)
    assert [done for done, _ in shown] == sorted({done for done, _ in shown}), "it goes on"


def test_an_interrupt_ends_the_work():
    """Long work: the pair that does not occur is merged again and again."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background ignores
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            learn({"ab": 1}, 10**7, min_frequency=0)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
