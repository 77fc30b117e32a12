"""What is drawn for a key in this release, as numbers.

A draw is part of the interface: whoever trained with a seed gets the same text again with it. So these values never
change for speed, memory, threads or a new toolkit. A change of them is a new major version, with an entry in the
changelog; nothing else may touch this file's numbers.

Texts and merges are written out here, so that no learner and no library's text can move them.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from bpe_dropout import Codes, Corpus, Dictionary, Segmenter, choose, first_bits

ENGLISH = """\
the old teacher reads a letter to the children in the garden of the school
she teaches them the letters and they are reading the longest of the stories
there is nothing in the letter that is other than what they were told
another reader , who is older than the others , is the greatest teller of stories
the greater the number of the letters the longer the reading takes
in other words , the words of the oldest stories are the words of the readers
nobody here is certain whether the weather in the north is better than in the south
they gathered together in the shelter near the river and started singing
unrelated relations were related in the newest and greatest interpretation of the text
banana bananas mississippi aaaa 2024 & c3po ¤
"""

ENGLISH_MERGES = """
t h , th e</w> , e r</w> , r e , t e , re a , i n</w> , a n , th e , o r , o f</w> , th er</w> , r e</w> , i s</w> ,
i n , t er</w> , s t</w> , rea d , e t , e s</w> , w e , th a , t a , r s</w> , o l , l et , in g</w> , c h , w or ,
wor d , word s</w> , w h , the y</w> , tha n</w> , te d</w> , t or , tor i , tori es</w> , s tories</w> , re l , rel a ,
o ther</w> , o n , g rea , an d</w> , we re</w> , te st</w> , te rs</w> , te a , tea ch , t i , t h</w> , s s , ss i ,
s h , rela ted</w> , read ing</w> , on g , ol d</w> , ol d , n o , n e , let ters</w> , let ter</w> , l ong ,
grea test</w> , g a , e ther</w> , e st</w> , b an , ban an , a re</w> , a a
"""

# Clauses are words, up to 40 characters long; the last line is one word of 240.
JAPANESE = """\
古い学校の庭で先生は子供たちに手紙を読みました。
子供たちは先生の手紙を読みたいと思いました。
学校の子供たちは庭で古い手紙を見ました。
先生は手紙を読みたいと言いましたが、子供たちは庭を見たいと言いました。
私たちは古い学校の先生を見ました。 先生は庭にいました。
学校の庭にいた子供たちは、私たちの手紙を読みたいと思っていました。
手紙の子供は古い庭の先生の学校で読んでいた手紙を見たいと思っていたと言いました。
"""
JAPANESE += "手紙を読みたいと思っていました。子供たちは先生の" * 10 + "\n"

JAPANESE_MERGES = """
ま し , まし た , ました 。</w> , 手 紙 , た ち , 手紙 を , 子 供 , 先 生 , 学 校 , 子供 たち , た い , たい と ,
い ました。</w> , 読 み , 手紙を 読み , 学校 の , 子供たち は , 古 い , 手紙を読み たいと , 先生 は , い た ,
言 いました。</w> , 見 ました。</w> , 見 たいと , 私 たち , 手紙を読みたいと 思 , 庭 に , 庭 で , 古い 学校の ,
先生 の , っ て
"""

TEXTS = {"english": (ENGLISH, ENGLISH_MERGES), "japanese": (JAPANESE, JAPANESE_MERGES)}

# (seed, epoch, side)
KEYS = [(1, 1, 0), (1, 1, 1), (1, 2, 0), (7, 3, 1), (2**64 - 1, 2**32, 2**24 - 1)]


def make_segmenter(language: str) -> Segmenter:
    merges = TEXTS[language][1].split(",")
    return Segmenter(Codes(tuple(tuple(merge.split()) for merge in merges)))


def make_dictionary(language: str) -> Dictionary:
    """Every second piece of plain BPE, and all characters: some pieces are unknown."""
    text = TEXTS[language][0]
    plain = make_segmenter(language).stream().text(text.encode()).decode().split()
    pieces = [*dict.fromkeys(plain)][::2] + sorted({c + end for c in text if not c.isspace() for end in ("", "@@")})
    return Dictionary({piece: 4 + number for number, piece in enumerate(dict.fromkeys(pieces))}, unk=3)


def make_corpus(language: str, folder: Path) -> Corpus:
    """30 times the text, so that the tables of frequent words are used, too."""
    path = folder / language
    path.write_text(TEXTS[language][0] * 30)
    return Corpus(path)


def digest(*drawn: object) -> str:
    """A short digest of arrays or text, the same on every machine."""
    whole = hashlib.sha256()
    for part in drawn:
        whole.update(part if isinstance(part, bytes) else np.asarray(part).astype("<i8").tobytes())
        whole.update(b"|")
    return whole.hexdigest()[:16]


def halves(text: str) -> list[tuple[tuple[str, ...], float]]:
    """A distribution of our own: whole, in two halves, or as characters."""
    middle = (len(text) + 1) // 2
    return [((text,), 0.5), ((text[:middle], text[middle:]), 0.3), (tuple(text), 0.2)]


def test_segment():
    english, japanese = make_segmenter("english"), make_segmenter("japanese")
    drawn = {
        (p, seed, epoch, side, sentence): " ".join(
            english.segment(LINE, p, seed, epoch=epoch, side=side, sentence=sentence)
        )
        for p, seed, epoch, side, sentence in EXPECTED_SEGMENTS
    }
    assert drawn == EXPECTED_SEGMENTS
    line = JAPANESE.split("\n")[3]
    assert " ".join(japanese.segment(line, 0.6, 7, epoch=3, side=1, sentence=3)) == EXPECTED_JAPANESE
    assert english.process_line("  the letters  ", 0.6, 4) == EXPECTED_LINE


LINE = "unrelated stories of the greatest readers"
# (p, seed, epoch, side, sentence)
EXPECTED_SEGMENTS = {
    (0.1, 0, 0, 0, 0): "u@@ n@@ related s@@ tori@@ es of the greatest read@@ e@@ rs",
    (0.1, 7, 0, 0, 0): "u@@ n@@ related stories of the grea@@ te@@ s@@ t r@@ e@@ a@@ d@@ e@@ r@@ s",
    (0.6, 7, 0, 0, 0): (
        "u@@ n@@ rela@@ ted s@@ tor@@ i@@ es o@@ f t@@ h@@ e g@@ r@@ e@@ a@@ te@@ st r@@ e@@ a@@ d@@ e@@ r@@ s"
    ),
    (0.1, 7, 1, 0, 0): "u@@ n@@ related s@@ tori@@ es of the greatest read@@ e@@ rs",
    (0.1, 7, 1, 1, 0): "u@@ n@@ related stories of th@@ e greatest read@@ e@@ rs",
    (0.1, 7, 1, 1, 41): "u@@ n@@ related stories of the g@@ rea@@ test read@@ e@@ rs",
    (0.9, 2**64 - 1, 3, 0, 5): (
        "u@@ n@@ re@@ l@@ a@@ t@@ e@@ d s@@ t@@ o@@ r@@ i@@ e@@ s o@@ f t@@ h@@ e g@@ r@@ e@@ a@@ "
        "t@@ e@@ s@@ t r@@ e@@ a@@ d@@ e@@ r@@ s"
    ),
}
EXPECTED_JAPANESE = (
    "先生@@ は@@ 手紙を読みたいと@@ 言@@ い@@ ました@@ "
    "が@@ 、@@ 子供たち@@ は@@ 庭@@ を@@ 見@@ たいと@@ 言@@ いました。"
)
EXPECTED_LINE = "  t@@ h@@ e l@@ et@@ ters  "


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("p", [0.1, 0.6])
def test_stream(language, p):
    segmenter, block = make_segmenter(language), TEXTS[language][0].encode()
    text = [segmenter.stream(p).text(block, seed, epoch=epoch, side=side, first_line=5) for seed, epoch, side in KEYS]
    stream = segmenter.stream(p, dictionary=make_dictionary(language), split="whitespace", threads=2)
    ids = [part for seed, epoch, side in KEYS for part in stream.ids(block, seed, epoch=epoch, side=side)]
    assert (digest(*text), digest(*ids)) == EXPECTED_STREAMS[language, p]


EXPECTED_STREAMS = {
    ("english", 0.1): ("e7c678c51248dc49", "8810f313eb5b90bf"),
    ("english", 0.6): ("db69e4f7cb8eb775", "04caf7855cb84472"),
    ("japanese", 0.1): ("b5ef67deed52b78f", "f620d001c15b4213"),
    ("japanese", 0.6): ("db8eb15076a1f4e5", "6b3cce6e5ad8df74"),
}


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("p", [0.1, 0.6])
def test_corpus(tmp_path, language, p):
    corpus = make_corpus(language, tmp_path)
    for memory in (0, 1 << 24):
        sampler = corpus.sampler(make_segmenter(language), make_dictionary(language), p, memory=memory)
        lengths, tokens, one = [], [], []
        for seed, epoch, side in KEYS:
            key = {"seed": seed, "epoch": epoch, "side": side}
            lengths.append(sampler.lengths(**key))
            tokens.extend(sampler.tokens(**key, threads=2))
            one.append(sampler.tokens(17, **key))
        found = [int(length.sum()) for length in lengths], digest(*lengths), digest(*tokens), digest(*one)
        assert found == EXPECTED_CORPUS[language, p]


EXPECTED_CORPUS = {
    ("english", 0.1): ([8833, 8809, 8861, 8901, 8809], "bfdf960a5d1bc86f", "334f29202761b110", "3d6994f0644fdad1"),
    ("english", 0.6): ([14854, 14721, 14824, 14775, 14793], "92d087a6e4b4b258", "5751860c7bfd5af9", "b3dc53b5b8c19c92"),
    ("japanese", 0.1): ([4238, 4219, 4230, 4238, 4245], "08638f0c9bcc4515", "d19b7879129c41fc", "cd93705b2ff330b3"),
    ("japanese", 0.6): ([5648, 5740, 5770, 5658, 5845], "46d2bfa7fb746cab", "832587fff839e198", "0b780510ebecb3ac"),
}


@pytest.mark.parametrize("language", TEXTS)
def test_distributions(tmp_path, language):
    corpus, dictionary = make_corpus(language, tmp_path), make_dictionary(language)
    words = corpus.distribution_sampler(halves, dictionary)
    sentences = corpus.sentence_distribution_sampler(lambda sentence: halves(" ".join(sentence)), dictionary, eos=2)
    found = []
    for sampler in (words, sentences):
        tokens = [part for seed, epoch, side in KEYS for part in sampler.tokens(seed=seed, epoch=epoch, side=side)]
        found.append(digest(*tokens))
    assert tuple(found) == EXPECTED_DISTRIBUTIONS[language]


EXPECTED_DISTRIBUTIONS = {
    "english": ("339c5f9eb0437bc1", "3ba461acb74b5a70"),
    "japanese": ("1cb6dfeefec7a0e6", "176f270ef6bfb699"),
}


def test_bits_and_choices():
    bits = [
        first_bits(seed=seed, epoch=epoch, side=side, sentence=sentence, position=position)
        for seed, epoch, side in KEYS
        for sentence, position in ((0, 0), (41, 2), (2**40, 4), (2**64 - 1, 2**32 - 1))
    ]
    assert bits == EXPECTED_BITS
    choices = [
        choose([0.5, 0.3, 0.15, 0.05], seed=seed, epoch=epoch, side=side, sentence=sentence, position=1)
        for seed, epoch, side in KEYS
        for sentence in range(8)
    ]
    assert "".join(map(str, choices)) == EXPECTED_CHOICES


EXPECTED_BITS = [
    12351924564539661680,
    17171421832962203282,
    12952034845930656549,
    13245312231581730273,
    276469962393510707,
    14395282055906401250,
    459952430450005241,
    16661599600167226897,
    14208862474623751761,
    9338406841746667826,
    11348639260412213328,
    4727415139291082527,
    12669235343315811268,
    7102441239859138650,
    4193744459245539852,
    2103556590607319132,
    4408409761108260301,
    8294448309823670284,
    13108765426007904404,
    11443723052705614775,
]
EXPECTED_CHOICES = "1020000202000000000000001112111202000000"  # eight sentences of each key
