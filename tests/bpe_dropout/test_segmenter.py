"""The segmenter as a user meets it."""

import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_dropout import Codes, Dictionary, InputError, Segmenter
from tests.conftest import learn, read_gz, write_codes

TABLE = Codes(
    tuple(
        tuple(pair.split())
        for pair in ["r e", "l a", "t e", "u n", "re la", "te d</w>", "rela ted</w>", "un related</w>", "e d</w>"]
    )
)


def test_the_example_of_the_readme():
    segmenter = Segmenter(Codes(TABLE.pairs[:7]))
    assert segmenter.segment("unrelated related") == ["un@@", "related", "related"]
    assert segmenter.desegment(["un@@", "related", "related"]) == "unrelated related"
    assert segmenter.process_line("  unrelated  related ") == "  un@@ related related "


def test_from_codes(tmp_path):
    segmenter = Segmenter.from_codes(write_codes(tmp_path / "codes", TABLE))
    assert segmenter.segment("unrelated") == ["unrelated"]
    assert repr(segmenter) == "Segmenter(9 merges, separator='@@')"


def test_the_same_key_draws_the_same_and_every_part_of_it_matters(segmenter, english):
    line = " ".join(english[:5])
    key = dict(dropout=0.3, seed=1, epoch=2, side=0, sentence=4)
    drawn = segmenter.segment(line, **key)
    assert drawn == segmenter.segment(line, **key)
    for name, other in (("seed", 2), ("epoch", 3), ("side", 1), ("sentence", 5), ("seed", 2**64 - 1)):
        assert segmenter.segment(line, **{**key, name: other}) != drawn


# Without a seed. 50 words that are drawn alike are no accident.
FIFTY = " ".join(["statement"] * 50)


def draw_three(segmenter):
    return [segmenter.process_line(FIFTY, 0.3) for _ in range(3)]


def test_without_a_seed_every_call_draws_anew(segmenter):
    block = FIFTY.encode()
    for draw in (
        lambda: tuple(segmenter.segment(FIFTY, 0.3)),
        lambda: segmenter.process_line(FIFTY, dropout=0.3),
        lambda: segmenter.stream(0.3).text(block),
        lambda: segmenter.stream(0.3, dictionary=Dictionary({"s@@": 4}, unk=3)).ids(block)[0].tobytes(),
    ):
        assert len({draw() for _ in range(5)}) == 5
    assert len({segmenter.process_line(FIFTY) for _ in range(5)}) == 1


def test_seeding_the_calls_without_a_seed(codes):
    """After seed(n), line k is drawn as sentence k of seed n, whatever else is segmented in between."""
    segmenter, other = Segmenter(codes), Segmenter(codes)
    segmenter.seed(7)
    drawn = []
    for _ in range(3):
        drawn.append(segmenter.process_line(FIFTY, 0.3))
        segmenter.process_line(FIFTY)
        segmenter.stream().text(b"the")
        segmenter.segment(FIFTY, 0.3, 8)
        other.segment(FIFTY, 0.3)
    assert drawn == [segmenter.process_line(FIFTY, 0.3, 7, sentence=n) for n in range(3)]
    blocks = []
    for _ in range(2):
        segmenter.seed(7)
        blocks.append([segmenter.stream(0.3).text(FIFTY.encode()) for _ in range(2)])
    assert blocks[0] == blocks[1]
    assert blocks[0][0] != blocks[0][1]
    segmenter.seed()
    assert draw_three(segmenter) != drawn
    with pytest.raises(InputError, match="the seed is a whole number"):
        segmenter.seed(-1)


def test_copies_and_workers_draw_on_their_own(codes):
    """Neither a pickled copy nor a forked process repeats what its parent draws, seeded or not."""
    segmenter = Segmenter(codes)
    segmenter.seed(7)
    copies = [pickle.loads(pickle.dumps(segmenter)) for _ in range(2)]
    fork = multiprocessing.get_context("fork")
    queue = fork.SimpleQueue()
    workers = [fork.Process(target=lambda: queue.put(draw_three(segmenter))) for _ in range(2)]
    for worker in workers:
        worker.start()
    forked = [queue.get() for _ in workers]
    for worker in workers:
        worker.join()
    drawn = [line for three in [*map(draw_three, [segmenter, *copies]), *forked] for line in three]
    assert len(drawn) == 15
    assert len(set(drawn)) == 15


def test_half_a_key_is_an_error(segmenter):
    for part in ({"epoch": 1}, {"side": 1}, {"sentence": 1}):
        with pytest.raises(InputError, match="name a draw together with a seed"):
            segmenter.segment("the", 0.1, **part)
    with pytest.raises(InputError, match="name a draw together with a seed"):
        segmenter.stream(0.1).text(b"the\n", epoch=1)


def test_equal_words_of_one_line_draw_independently(segmenter):
    pieces = segmenter.process_line(" ".join(["statement"] * 200), dropout=0.3)
    assert len(set(pieces.replace("@@ ", "|").split())) > 3


def test_stream_draws_what_segment_draws(segmenter, english):
    block = "".join(line + "\n" for line in english[:3000]).encode()
    expected = [
        segmenter.process_line(line, 0.2, 5, epoch=3, side=1, sentence=n) for n, line in enumerate(english[:3000])
    ]
    for threads in (1, 2, 5):
        text = segmenter.stream(0.2, threads=threads).text(block, 5, epoch=3, side=1).decode()
        assert text.split("\n")[:-1] == expected
    # In small blocks, and with so little memory that words are forgotten all the time.
    stream = segmenter.stream(0.2, memory=1)
    lines = block.splitlines(keepends=True)
    parts = [stream.text(b"".join(lines[i : i + 7]), 5, epoch=3, side=1, first_line=i) for i in range(0, 3000, 7)]
    assert b"".join(parts).decode().split("\n")[:-1] == expected


def test_a_last_line_without_its_newline(segmenter):
    stream = segmenter.stream()
    assert stream.text(b"") == b""
    assert stream.text(b"\n\n") == b"\n\n"
    assert stream.text(b"the\nthe") == b"the\nthe"
    assert stream.text(b"the\nthe\n") == b"the\nthe\n"


def test_streams_of_text_and_of_ids(segmenter):
    with pytest.raises(InputError, match="need a dictionary"):
        segmenter.stream(0.1).ids(b"the\n")
    with pytest.raises(InputError, match="gives ids"):
        segmenter.stream(0.1, dictionary=Dictionary({"the": 4}, unk=3)).text(b"the\n")


def test_one_stream_in_many_threads(segmenter, english):
    block = "".join(line + "\n" for line in english[:2000]).encode()
    expected = segmenter.stream(0.2).text(block, 1)
    stream = segmenter.stream(0.2)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: stream.text(block, 1), range(8))) == {expected}


def test_an_interrupted_stream_goes_on(codes, english):
    """An error in the middle, here from a glossary, leaves nothing behind."""
    segmenter = Segmenter(codes, glossaries=["the"])
    divide, calls = segmenter._divide, []

    def interrupted(word):
        calls.append(word)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return divide(word)

    segmenter._divide = interrupted
    stream = segmenter.stream()
    with pytest.raises(KeyboardInterrupt):
        stream.text("\n".join(english[:100]).encode())
    block = ("\n".join(english[:100]) + "\nother\n").encode()
    assert stream.text(block) == Segmenter(codes, glossaries=["the"]).stream().text(block)


def test_splits(segmenter):
    line = "the\u00a0the\u3000the\tthe \x1f the"
    assert segmenter.segment(line, split="whitespace") == ["the"] * 5
    assert segmenter.desegment(segmenter.segment(line)) == line


def test_pickle(segmenter, english):
    fancy = Segmenter(segmenter.codes, vocabulary={"t@@", "he"}, glossaries=["<.*?>"], separator="￭")
    for original in (segmenter, fancy):
        copy = pickle.loads(pickle.dumps(original))
        for line in [*english[:50], "a<b>c the"]:
            assert copy.segment(line, 0.1, 3) == original.segment(line, 0.1, 3)


def test_import_is_light():
    """Neither numpy nor torch nor fairseq is imported with the package."""
    heavy = ("numpy", "torch", "fairseq", "subword_nmt", "importlib.metadata")
    code = f"import sys, bpe_dropout; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_everything_named_can_be_had():
    import bpe_dropout

    for name in bpe_dropout.__all__:
        assert getattr(bpe_dropout, name) is not None
    with pytest.raises(AttributeError):
        _ = bpe_dropout.nothing


# Round trips: what is segmented can be put together again, but for words that end in the separator, which the
# format of subword-nmt cannot tell from pieces that go on.

text_words = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=" "), min_size=1, max_size=12
).filter(lambda word: not word.endswith("@@"))
any_p = st.floats(0, 1)


@settings(max_examples=300, deadline=None)
@given(st.lists(text_words), any_p, st.integers(0, 2**64 - 1))
def test_round_trip_of_any_text(segmenter, words, p, seed):
    line = " ".join(words)
    assert segmenter.desegment(segmenter.segment(line, p, seed)) == line
    assert segmenter.desegment(segmenter.process_line(line, p, seed)) == line


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(*[st.text("ab@</w>ß", min_size=1, max_size=3)] * 2), min_size=1, max_size=30),
    st.sampled_from([(0, 1), (0, 2)]),
    st.lists(st.text("ab@</w>ß", min_size=1).filter(lambda word: not word.endswith("@@")), max_size=5),
    any_p,
)
def test_round_trip_with_any_table(pairs, version, words, p):
    segmenter = Segmenter(Codes(tuple(pairs), version))
    line = " ".join(words)
    assert segmenter.desegment(segmenter.segment(line, p, 1)) == line


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("atheinos12", min_size=1, max_size=12)), any_p, st.sets(st.text("atheinos@", min_size=1)))
def test_round_trip_with_vocabulary_and_glossaries(codes, words, p, vocabulary):
    segmenter = Segmenter(codes, vocabulary=vocabulary, glossaries=["1+", "he"])
    line = " ".join(words)
    assert segmenter.desegment(segmenter.segment(line, p, 1)) == line


def test_round_trip_of_real_text(shared):
    for name in (
        "multi30k/train.de",
        "tatoeba-enja/train.ja",
        "tatoeba-enzh/train.zh",
        "wmt-newstest-ende/newstest2014.en",
    ):
        lines = read_gz(shared / f"{name}.gz")
        segmenter = Segmenter(learn(lines[:2000], 1000))
        block = "".join(line + "\n" for line in lines).encode()
        back = segmenter.stream(0.6).text(block, 7).decode().split("\n")[:-1]
        for line, segmented in zip(lines, back, strict=True):
            assert segmenter.desegment(segmented).split() == line.split()


def test_desegment_at_the_end_of_a_line(segmenter):
    assert segmenter.desegment("un@@ related un@@") == "unrelated un"
    assert segmenter.desegment([]) == ""
    for call in (segmenter.distribution, lambda word, p, limit: segmenter.probability([word], p, limit=limit)):
        with pytest.raises(InputError, match="the limit of states is a whole number from 1 to"):
            call("the", 0.1, limit=-1)
    with pytest.raises(InputError, match="the memory is a whole number from 0 to"):
        segmenter.stream(memory=-1)
    for separator in ("\n", " ", "@ @", "\u00a0"):
        with pytest.raises(InputError, match="a separator has no white space"):
            Segmenter(segmenter.codes, separator=separator)
    with pytest.raises(InputError, match="a glossary is a regular expression of one line, not ''"):
        Segmenter(segmenter.codes, glossaries=["a", ""])
    with pytest.raises(InputError, match="separator"):
        Segmenter(segmenter.codes, separator="").desegment("a b")


def test_a_word_of_100000_characters_is_no_trouble(segmenter):
    """In flat arrays this would take minutes: each of 100,000 merges would move 100,000 tokens."""
    for letters in ("the", "a", "statement"):
        word = (letters * 100_000)[:100_000]
        for p in (0.0, 0.1, 0.9, 0.999, 1.0):
            pieces = segmenter.segment(word, p)
            assert "".join(piece.removesuffix("@@") for piece in pieces) == word
