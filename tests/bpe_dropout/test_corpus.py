"""A corpus: loaded once, the same draws whatever the circumstances, and independent ones."""

import json
import multiprocessing
import os
import pickle
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from bpe_dropout import BoundedSampler, Corpus, Dictionary, InputError, Segmenter, _core, choose, first_bits
from bpe_dropout.files import part_of
from bpe_dropout.word_index import index_path
from tests.bpe_dropout.test_exact import chi_square
from tests.conftest import write_codes
from tests.patience import PATIENCE

KEY = {"seed": 3, "epoch": 2, "side": 1}


@pytest.fixture(scope="module")
def text(english, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "train.en"
    path.write_text("".join(line + "\n" for line in english))
    return path


@pytest.fixture(scope="module")
def dictionary(segmenter, english) -> Dictionary:
    pieces: dict[str, int] = {}
    for line in english:
        for piece in segmenter.segment(line):
            pieces.setdefault(piece, 4 + len(pieces))
    return Dictionary(pieces, unk=3)


@pytest.fixture(scope="module")
def corpus(text) -> Corpus:
    return Corpus(text)


@pytest.fixture(scope="module")
def sampler(corpus, segmenter, dictionary):
    return corpus.sampler(segmenter, dictionary, 0.1)


def test_words_are_numbered_from_0(corpus):
    for number in (-1, len(corpus.counts)):
        with pytest.raises(IndexError, match=f"no such word: {number}; the corpus has {len(corpus.counts)} distinct"):
            corpus.type(number)


def test_the_text_comes_back(corpus, english):
    assert len(corpus) == len(english)
    assert [" ".join(corpus.sentence(i)) for i in range(0, len(english), 97)] == english[::97]
    counts = Counter(word for line in english for word in line.split())
    assert corpus.type_counts() == counts
    assert corpus.word_counts.tolist() == [len(line.split()) for line in english]


def test_words_end_where_fairseqs_do(tmp_path):
    path = tmp_path / "text"
    lines = ["a\u00a0b\u3000c\u2028d\x85e\tf\x1cg", "", "  ", " x ", "\r", "y\r", "ﬁ\u200bn", "\u1680z\u205f\u202f"]
    path.write_text("\n".join(lines), newline="\n")
    corpus = Corpus(path)
    assert [corpus.sentence(i) for i in range(len(corpus))] == [line.split() for line in lines]


def test_ids_are_those_of_the_segments(sampler, segmenter, dictionary, english):
    epoch = sampler.tokens(**KEY)
    for number in range(0, len(english), 53):
        pieces = segmenter.segment(english[number], 0.1, 3, epoch=2, side=1, sentence=number)
        expected = [dictionary[piece] for piece in pieces]
        assert epoch.ids[epoch.offsets[number] : epoch.offsets[number + 1]].tolist() == expected
        assert sampler.tokens(number, **KEY).tolist() == expected
    assert 0 < np.mean(epoch.ids == dictionary.unk) < 0.05


def test_stream_ids_are_the_same(sampler, segmenter, dictionary, text):
    for threads in (1, 3):
        ids, offsets = segmenter.stream(0.1, dictionary=dictionary, split="whitespace", threads=threads).ids(
            text.read_bytes(), 3, epoch=2, side=1
        )
        epoch = sampler.tokens(**KEY)
        assert np.array_equal(ids, epoch.ids)
        assert np.array_equal(offsets, epoch.offsets)


def test_lengths_see_the_same_draws(sampler):
    for epoch in range(3):
        key = {"seed": 1, "epoch": epoch, "side": 0}
        assert np.array_equal(sampler.lengths(**key), np.diff(sampler.tokens(**key).offsets))


def test_plain_bpe_is_dropout_0(corpus, segmenter, dictionary, english):
    epoch = corpus.sampler(segmenter, dictionary).tokens(seed=8, epoch=1)
    expected = [dictionary[piece] for line in english for piece in segmenter.segment(line)]
    assert epoch.ids.tolist() == expected


def test_eos(corpus, segmenter, dictionary, sampler):
    with_eos = corpus.sampler(segmenter, dictionary, 0.1, eos=2)
    assert np.array_equal(with_eos.lengths(**KEY), sampler.lengths(**KEY) + 1)
    assert with_eos.tokens(5, **KEY).tolist() == [*sampler.tokens(5, **KEY).tolist(), 2]


def test_eos_of_the_dictionary(corpus, segmenter, dictionary):
    """A dictionary with an eos ends sentences with it, unless another or none is asked for."""
    ending = Dictionary(dictionary.ids, unk=3, eos=2)
    for make in (
        lambda dictionary, **eos: corpus.sampler(segmenter, dictionary, 0.1, **eos),
        lambda dictionary, **eos: corpus.distribution_sampler(whole_word, dictionary, **eos),
        lambda dictionary, **eos: corpus.sentence_distribution_sampler(
            lambda words: {tuple(words): 1.0}, dictionary, **eos
        ),
    ):
        bare = make(dictionary).tokens(5, **KEY).tolist()
        assert make(ending).tokens(5, **KEY).tolist() == [*bare, 2]
        assert make(ending, eos=1).tokens(5, **KEY).tolist() == [*bare, 1]
        assert make(ending, eos=None).tokens(5, **KEY).tolist() == bare
        assert make(dictionary, eos=2).tokens(5, **KEY).tolist() == [*bare, 2]


def test_one_sentence_that_is_not_there_is_the_same_error(corpus, sampler):
    for wrong in (-1, len(sampler), np.int64(-1)):
        messages = set()
        for ask in (
            partial(sampler.tokens, wrong, **KEY),
            partial(sampler.tokens, [wrong], **KEY),
            partial(sampler.lengths, [wrong], **KEY),
            partial(corpus.sentence, wrong),
        ):
            with pytest.raises(IndexError) as caught:
                ask()
            assert isinstance(caught.value, InputError)
            messages.add(str(caught.value))
        assert messages == {f"no such sentence: {wrong}; the corpus has {len(sampler)}, numbered from 0"}


def test_a_pickled_corpus_is_found_from_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "text").write_text("one two\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    corpus = Corpus("text")
    assert str(corpus.path) == "text"
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(pickle.dumps(corpus)).sentence(0) == ["one", "two"]


def test_selections(sampler):
    epoch = sampler.tokens(**KEY)
    sentences = [epoch.ids[a:b].tolist() for a, b in pairwise(epoch.offsets)]
    lengths = sampler.lengths(**KEY)
    for chosen in (range(10, 200), range(0), [5, 3, 3, 700], np.array([9, 1]), range(50, 10, -7), []):
        part = sampler.tokens(chosen, **KEY)
        assert [part.ids[a:b].tolist() for a, b in pairwise(part.offsets)] == [sentences[i] for i in chosen]
        assert sampler.lengths(chosen, **KEY).tolist() == [lengths[i] for i in chosen]
    for wrong in (range(len(sampler) + 1), [len(sampler)], [-1], range(-3, 2), np.array([2**64 - 1], np.uint64)):
        for error in (IndexError, InputError):
            with pytest.raises(error, match=r"no such sentence: .*; the corpus has "):
                sampler.tokens(wrong, **KEY)
            with pytest.raises(error, match=r"no such sentence: .*; the corpus has "):
                sampler.lengths(wrong, **KEY)
    for wrong in ([1.5], np.array([True, False]), [[1]], ["1"]):
        with pytest.raises(InputError, match="whole numbers"):
            sampler.lengths(wrong, **KEY)


# The same numbers, whatever the threads, the order, the process, the fork, the restart or the budget.


@pytest.mark.parametrize("p", [0.1, 0.6])
def test_threads_order_and_budget_change_nothing(corpus, segmenter, dictionary, p):
    reference = corpus.sampler(segmenter, dictionary, p).tokens(**KEY)
    for memory in (0, 1 << 14, 1 << 18, 1 << 30):
        for threads in (1, 2, 7):
            other = corpus.sampler(segmenter, dictionary, p, memory=memory, threads=threads)
            for number in (17, 3, 17):
                other.tokens(number, seed=1, epoch=9)
            drawn = other.tokens(**KEY, threads=threads)
            assert np.array_equal(drawn.ids, reference.ids)
            assert np.array_equal(other.lengths(**KEY, threads=threads), np.diff(reference.offsets))
    assert corpus.sampler(segmenter, dictionary, p, memory=0)._core.tables == 0


def test_memory_is_bounded(corpus, segmenter, dictionary, caplog):
    """What is kept takes no more than it may, and the log says what that is."""
    caplog.set_level("INFO", "bpe_dropout.corpus")
    kept = []
    for memory in (0, 1 << 16, 1 << 17, 1 << 30):
        for threads in (1, 3):
            core = corpus.sampler(segmenter, dictionary, 0.1, memory=memory, threads=threads)._core
            assert core.memory <= max(memory, 4 * len(corpus.counts))
            kept.append(core.tables + core.charts)
            assert f"tables for {core.tables} of {len(corpus.counts)} words, charts of {core.charts}," in caplog.text
    assert kept[:2] == [0, 0] < kept[2:4] < kept[4:6] < kept[6:]


def test_words_that_occur_once_have_no_table(tmp_path, segmenter, dictionary):
    """It would not be repaid within a few epochs."""
    (tmp_path / "text").write_text("statement other\n" + "government\n" * 50)
    core = Corpus(tmp_path / "text").sampler(segmenter, dictionary, 0.1)._core
    assert (core.tables, core.charts) == (1, 2)


@pytest.mark.skipif(not _core.uses_avx2(), reason="this processor has no AVX2")
@pytest.mark.parametrize("p", [0.0, 0.1, 0.6])
def test_every_processor_draws_the_same(corpus, segmenter, dictionary, p):
    sampler = corpus.sampler(segmenter, dictionary, p, memory=1 << 16)
    expected = sampler.tokens(**KEY).ids
    _core.use_avx2(False)
    try:
        assert not _core.uses_avx2()
        assert np.array_equal(sampler.tokens(**KEY).ids, expected)
    finally:
        _core.use_avx2(True)


def test_concurrent_calls(sampler):
    expected = sampler.tokens(**KEY).ids
    results: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: results.append(sampler.tokens(**KEY).ids)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(np.array_equal(result, expected) for result in results)


def test_forked_workers_draw_the_same(sampler):
    sampler.tokens(**KEY)  # used in the parent first, which is what breaks other tools

    def work(queue):
        queue.put((os.getpid(), sampler.tokens(range(100, 300), **KEY).ids.tolist()))

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=work, args=(queue,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    results = [queue.get(timeout=PATIENCE) for _ in workers]
    for worker in workers:
        worker.join()
    expected = sampler.tokens(range(100, 300), **KEY).ids.tolist()
    assert [ids for _, ids in results] == [expected, expected]
    assert len({pid for pid, _ in results} | {os.getpid()}) == 3


def test_another_process_draws_the_same(sampler, text, codes, dictionary, tmp_path):
    write_codes(tmp_path / "codes", codes)
    (tmp_path / "dict.txt").write_text("".join(f"{piece} 1\n" for piece in dictionary.ids))
    code = (
        "import sys, hashlib; from bpe_dropout import *\n"
        "text, codes, dictionary = sys.argv[1:]\n"
        "segmenter, dictionary = Segmenter.from_codes(codes), Dictionary.load(dictionary)\n"
        "sampler = Corpus(text).sampler(segmenter, dictionary, 0.1, eos=None, memory=1 << 16)\n"
        "print(hashlib.md5(sampler.tokens(seed=3, epoch=2, side=1, threads=2).ids.tobytes()).hexdigest())"
    )
    import hashlib

    command = [sys.executable, "-c", code, str(text), str(tmp_path / "codes"), str(tmp_path / "dict.txt")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert printed == hashlib.md5(sampler.tokens(**KEY).ids.tobytes()).hexdigest()


def test_a_fixed_result(tmp_path):
    """Written down once: a change of these numbers would change everybody's running experiments."""
    pairs = ["r e", "l a", "t e", "u n", "re la", "te d</w>", "rela ted</w>", "un related</w>", "e d</w>"]
    (tmp_path / "codes").write_text("#version: 0.2\n" + "\n".join(pairs) + "\n")
    segmenter = Segmenter.from_codes(tmp_path / "codes")
    drawn = [segmenter.process_line("unrelated related", 0.5, 1, epoch=e) for e in range(4)]
    assert drawn == FIXED
    assert first_bits(seed=1, epoch=2, side=1, sentence=3, position=4) == FIXED_BITS


FIXED = [
    "u@@ n@@ re@@ la@@ t@@ e@@ d r@@ e@@ l@@ a@@ te@@ d",
    "un@@ re@@ la@@ ted rela@@ t@@ ed",
    "u@@ n@@ rela@@ t@@ ed r@@ e@@ la@@ t@@ e@@ d",
    "u@@ n@@ rela@@ ted re@@ l@@ a@@ t@@ e@@ d",
]
FIXED_BITS = 1794960344408178692


# Independence is tested on pairs: frequencies of single words could not show that two are drawn together.


def independent(first, second) -> float:
    """The p-value of a chi-square test of independence of two sequences of outcomes."""

    def frequent(outcomes):
        common = [outcome for outcome, count in Counter(outcomes).most_common(4) if count > 50]
        return [common.index(outcome) if outcome in common else len(common) for outcome in outcomes]

    table = np.zeros((5, 5))
    np.add.at(table, (frequent(first), frequent(second)), 1)
    table = table[table.sum(1) > 20][:, table[table.sum(1) > 20].sum(0) > 20]
    assert min(table.shape) >= 2
    return float(stats.chi2_contingency(table).pvalue)


@pytest.fixture(scope="module", params=["tables", "simulation"])
def drawn_words(request, segmenter, tmp_path_factory):
    """drawn_words(epoch, side, seed): for 20,000 sentences of twice the same word, the pieces of both."""
    word, sentences = "statement", 20_000
    path = tmp_path_factory.mktemp("pairs") / "text"
    path.write_text(f"{word} {word}\n" * sentences)
    pieces = sorted({piece for outcome in segmenter.distribution(word, 0.3) for piece in outcome})
    dictionary = Dictionary({piece: 4 + i for i, piece in enumerate(pieces)}, unk=3)
    memory = 1 << 24 if request.param == "tables" else 0
    sampler = Corpus(path).sampler(segmenter, dictionary, 0.3, memory=memory)
    assert (sampler._core.tables > 0) == (request.param == "tables")

    def draw(seed=1, epoch=1, side=0):
        drawn = sampler.tokens(seed=seed, epoch=epoch, side=side)
        names = ["", "", "", "", *pieces]
        result = []
        for begin, end in pairwise(drawn.offsets.tolist()):
            found = [names[i] for i in drawn.ids[begin:end]]
            middle = next(i for i, piece in enumerate(found) if not piece.endswith("@@")) + 1
            result.append((tuple(found[:middle]), tuple(found[middle:])))
        return result

    return draw


def test_draws_fit_the_exact_distribution(drawn_words, segmenter):
    exact = segmenter.distribution("statement", 0.3)
    for which in (0, 1):
        counts = Counter(pair[which] for pair in drawn_words())
        assert chi_square(counts, exact, 20_000) > 1e-3


def test_neighbours_are_independent(drawn_words):
    here = drawn_words()
    values = {
        "the two words of a sentence": independent(*zip(*here, strict=True)),
        "neighbouring sentences": independent([a for a, _ in here[:-1]], [a for a, _ in here[1:]]),
        "across a sentence's end": independent([b for _, b in here[:-1]], [a for a, _ in here[1:]]),
    }
    for name, other in (("epoch", {"epoch": 2}), ("side", {"side": 1}), ("seed", {"seed": 2})):
        there = drawn_words(**other)
        values[f"the same word, next {name}"] = independent([a for a, _ in here], [a for a, _ in there])
        values[f"the other word, next {name}"] = independent([a for a, _ in here], [b for _, b in there])
    assert min(values.values()) > 1e-3, values


def test_the_test_of_independence_would_notice(drawn_words):
    here = [a for a, _ in drawn_words()]
    assert independent(here, here) < 1e-9
    mixed = [a if i % 10 else b for i, (a, (b, _)) in enumerate(zip(here, drawn_words(epoch=5), strict=True))]
    assert independent(here, mixed) < 1e-9


# Distributions that are given.


def test_handed_in_distributions_of_words(corpus, english):
    def distribution(word):
        return [((word,), 0.5), (tuple(word), 0.3), ((), 0.2)] if len(word) > 1 else [((word,), 1.0)]

    pieces = sorted({piece for word in corpus.types() for piece in (word, *word)})
    dictionary = Dictionary({piece: 4 + i for i, piece in enumerate(pieces)}, unk=3)
    sampler = corpus.distribution_sampler(distribution, dictionary)
    counts = Counter()
    epoch = sampler.tokens(**KEY, threads=2)
    assert np.array_equal(sampler.lengths(**KEY, threads=3), np.diff(epoch.offsets))
    for number in range(2000):
        expected = []
        for position, word in enumerate(english[number].split()):
            outcomes = distribution(word)
            chosen = choose([p for _, p in outcomes], sentence=number, position=position, **KEY)
            expected += [dictionary[piece] for piece in outcomes[chosen][0]]
            if len(word) > 1:
                counts[chosen] += 1
        assert sampler.tokens(number, **KEY).tolist() == expected
    total = sum(counts.values())
    assert stats.chisquare([counts[i] for i in range(3)], [0.5 * total, 0.3 * total, 0.2 * total]).pvalue > 1e-3


def test_handed_in_distributions_of_sentences(corpus, english):
    dictionary = Dictionary({"short": 4, "long": 5}, unk=3)
    sampler = corpus.sentence_distribution_sampler(
        lambda words: [(["short"], 0.25), (["long"] * len(words), 0.75)], dictionary, eos=2
    )
    lengths = sampler.lengths(**KEY)
    assert np.array_equal(lengths, np.diff(sampler.tokens(**KEY).offsets))
    assert abs(np.mean(lengths == 2) - 0.25) < 0.02
    first = sampler.tokens(0, **KEY).tolist()
    assert first in ([4, 2], [5] * len(english[0].split()) + [2])


@pytest.mark.parametrize(
    "bad", [[], [(("a",), 0.5)], [(("a",), -0.5), (("b",), 1.5)], [(("a",), float("nan"))], [(("a",), 2.0)]]
)
def test_handed_in_distributions_must_be_ones(corpus, bad):
    with pytest.raises(InputError, match="sum to"):
        corpus.distribution_sampler(lambda _: bad, Dictionary({}, unk=3))


# The file of words beside the text.


def test_the_index_is_made_once_and_again_when_the_text_changes(tmp_path, monkeypatch):
    path = tmp_path / "text"
    path.write_text("one two\n")
    os.utime(path, (time.time() - 100,) * 2)
    Corpus(path)
    made = index_path(path).stat().st_ino
    Corpus(path)
    assert index_path(path).stat().st_ino == made
    os.utime(path)  # touched, the same text
    Corpus(path)
    assert index_path(path).stat().st_ino == made
    time.sleep(2.1)  # a text that is older than that is not compared again
    os.utime(path)
    Corpus(path)
    time.sleep(2.1)
    Corpus(path)
    monkeypatch.setattr("bpe_dropout.word_index.hashlib.blake2b", None)
    Corpus(path)
    monkeypatch.undo()
    path.write_text("two one\n")  # as long, within the same tick of the clock, perhaps
    assert Corpus(path).sentence(0) == ["two", "one"]
    path.write_text("three\nfour\n")
    assert len(Corpus(path)) == 2


def test_the_folder_can_be_moved(tmp_path, text):
    shutil.copytree(text.parent, tmp_path / "moved")
    corpus = Corpus(tmp_path / "moved" / text.name)
    assert len(corpus) == len(Corpus(text))


def test_a_read_only_folder(tmp_path, monkeypatch):
    path = tmp_path / "text"
    path.write_text("one two\n")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("bpe_dropout.word_index.whole", refuse)
    with pytest.warns(UserWarning, match="cannot be written"):
        corpus = Corpus(path)
    assert corpus.sentence(0) == ["one", "two"]
    assert not index_path(path).exists()


def test_damaged_indexes_are_made_again(tmp_path):
    path = tmp_path / "text"
    path.write_text("one two three\nfour\n")
    expected = [["one", "two", "three"], ["four"]]
    Corpus(path)
    whole = index_path(path).read_bytes()
    damaged = [b"", whole[:100], whole[:-1], whole + b"x", whole[:20] + b"{}" + whole[22:]]
    damaged.append(whole[:4096] + b"\xff\xff\xff\xff" + whole[4100:])  # a number that is no word's
    header = json.loads(whole[:4096].partition(b"\n")[2])
    magic = whole[: whole.index(b"\n") + 1]
    for missing in ("sections", "digest", "made"):
        less = {name: value for name, value in header.items() if name != missing}
        damaged.append((magic + json.dumps(less).encode()).ljust(4096) + whole[4096:])
    ends = header["sections"]["type_ends"][0]
    damaged.append(whole[: ends + 8] + bytes(8) + whole[ends + 16 :])  # a word of no characters
    damaged.append(whole[: ends + 24] + whole[ends + 32 : ends + 40] + whole[ends + 32 :])
    types = header["sections"]["types"][0]
    damaged += [whole[: types + 1] + end + whole[types + 2 :] for end in (b" ", b"\n")]  # words that are two
    for data in damaged:
        index_path(path).write_bytes(data)
        corpus = Corpus(path)
        assert [corpus.sentence(i) for i in range(2)] == expected
        assert index_path(path).read_bytes()[4096:] == whole[4096:]


def test_a_strangers_file_is_left_alone(tmp_path):
    path = tmp_path / "text"
    path.write_text("one\n")
    index_path(path).write_text("my notes\n")
    with pytest.raises(InputError, match=r"text\.words .* something else"):
        Corpus(path)
    assert index_path(path).read_text() == "my notes\n"


def test_nothing_is_left_behind_when_it_fails(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"fine\nnot \xff fine\n")
    with pytest.raises(InputError, match=r"text, line 2: not valid UTF-8, at byte 5"):
        Corpus(path)
    assert [p.name for p in tmp_path.iterdir()] == ["text"]


def test_temporary_names_are_never_the_same(tmp_path, monkeypatch):
    """In a container, the number of a process may be that of one that was killed, or of one beside it."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert len({part_of(tmp_path / "text.words") for _ in range(100)}) == 100


def test_what_a_killed_process_has_left_is_removed(tmp_path):
    path = tmp_path / "text"
    path.write_text("one two\n")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = [tmp_path / f"text.words.{socket.gethostname()}.{number}-0.part" for number in (dead.pid, os.getppid())]
    for one in left:
        one.write_text("half of it")
    assert len(Corpus(path)) == 1
    assert [one.exists() for one in left] == [False, True], "that of a process that still runs is left alone"


def test_files_that_vanish(tmp_path, segmenter, dictionary, english):
    """What is loaded stays loaded; what is gone before is an error that names it."""
    path = tmp_path / "text"
    path.write_text("\n".join(english[:500]))
    corpus = Corpus(path)
    expected = corpus.sampler(segmenter, dictionary, 0.1).tokens(**KEY).ids.tolist()
    path.unlink()
    index_path(path).unlink()
    assert corpus.sampler(segmenter, dictionary, 0.1).tokens(**KEY).ids.tolist() == expected
    with pytest.raises(FileNotFoundError, match="text"):
        Corpus(path)


def test_empty_texts(tmp_path, segmenter):
    for content, sentences in ((b"", 0), (b"\n", 1), (b"\n\n  \n", 3)):
        path = tmp_path / "text"
        path.write_bytes(content)
        corpus = Corpus(path)
        assert len(corpus) == sentences
        sampler = corpus.sampler(segmenter, Dictionary({}, unk=3), 0.1, eos=2)
        assert sampler.lengths(seed=1, epoch=1).tolist() == [1] * sentences
        assert sampler.tokens(seed=1, epoch=1).ids.tolist() == [2] * sentences
    with pytest.raises(FileNotFoundError):
        Corpus(tmp_path / "missing")


def test_samplers_can_be_pickled(corpus, segmenter, dictionary, sampler):
    copy = pickle.loads(pickle.dumps(sampler))
    assert np.array_equal(copy.tokens(**KEY).ids, sampler.tokens(**KEY).ids)
    handed_in = corpus.distribution_sampler(whole_word, dictionary)
    assert np.array_equal(pickle.loads(pickle.dumps(handed_in)).tokens(**KEY).ids, handed_in.tokens(**KEY).ids)


def whole_word(word):
    return {(word,): 1.0}


def test_progress_and_pickle(text, corpus):
    seen = []
    index_path(text).unlink()
    Corpus(text, progress=lambda done, size: seen.append((done, size)))
    assert seen[-1] == (text.stat().st_size, text.stat().st_size)
    assert pickle.loads(pickle.dumps(corpus)).sentence(7) == corpus.sentence(7)


def test_glossaries_vocabulary_and_version_1_in_a_corpus(corpus, codes, english):
    from tests.conftest import as_version_1

    for segmenter in (
        Segmenter(codes, glossaries=["the", r"[0-9]+"]),
        Segmenter(as_version_1(codes)),
        Segmenter(codes, vocabulary={"the", "s@@", "t@@", "at@@"}),
    ):
        pieces = {p for line in english[:300] for e in range(3) for p in segmenter.segment(line, 0.4, e)}
        dictionary = Dictionary({piece: 4 + i for i, piece in enumerate(sorted(pieces))}, unk=3)
        for memory in (0, 1 << 24):
            sampler = corpus.sampler(segmenter, dictionary, 0.2, memory=memory)
            for number in range(0, 300, 7):
                pieces = segmenter.segment(english[number], 0.2, 3, epoch=2, side=1, sentence=number)
                assert sampler.tokens(number, **KEY).tolist() == [dictionary[p] for p in pieces if p]


@pytest.mark.parametrize("unit", ["word", "sentence"])
def test_light_sampling_is_the_same_draw(tmp_path, english, unit):
    """Whatever is kept in memory, it draws what a sampler draws that keeps all lists."""
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in ["", *english[:200]]))
    corpus = Corpus(path)
    ids = {character: 4 + number for number, character in enumerate(sorted(set(" ".join(english[:200]))))}
    dictionary = Dictionary(ids, unk=3)

    def pieces(text):
        return [(tuple(text), 0.5), (tuple(text[1:]), 0.3), (tuple(text[:1]), 0.2)]

    def outcomes(text):
        return [[dictionary[piece] for piece in one] for one, _ in pieces(text)], [p for _, p in pieces(text)]

    key = {"seed": 3, "epoch": 2, "side": 1}
    if unit == "word":
        expected = corpus.distribution_sampler(pieces, dictionary, eos=2).tokens(**key)
    else:
        expected = corpus.sentence_distribution_sampler(
            lambda words: pieces(" ".join(words)), dictionary, eos=2
        ).tokens(**key)
    seen, asked = [], []

    def counted(text):
        asked.append(text)
        return outcomes(text)

    for memory, threads in ((0, 1), (5000, 2), (1 << 30, 1)):
        light = BoundedSampler(corpus, counted, unit=unit, eos=2, memory=memory, threads=threads)
        sampler = light.epoch(**key, progress=lambda done, total: seen.append((done, total)))
        for drawn in (sampler.tokens(**key), pickle.loads(pickle.dumps(sampler)).tokens(**key)):
            assert (drawn.ids == expected.ids).all()
            assert (drawn.offsets == expected.offsets).all()
        assert (sampler.lengths(**key) == np.diff(expected.offsets)).all()
        if unit == "sentence" and memory == 1 << 30:
            asked.clear()
            assert (light.epoch(**key).tokens(**key).ids == expected.ids).all()
            assert not asked, "what is kept is listed once"
    assert seen
    assert all(done <= total for done, total in seen)
