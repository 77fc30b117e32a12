"""Measurements of text, each against another way of computing it."""

from collections import Counter

import numpy as np
import pytest

from bpe_dropout import Corpus, Dictionary, InputError, Segmenter
from bpe_dropout.calibration import length_ratio
from bpe_dropout.reference import distribution
from experiments.analysis import datasets, lengths, substrings, unknown
from experiments.analysis.drawing import svg
from scripts.corpora import CONFIGS
from scripts.paper import read_items

P = 0.2


@pytest.fixture(scope="module")
def few(few_codes):
    return Segmenter(few_codes)


def pieces_of(segmenter, lines):
    return list(dict.fromkeys(piece for line in lines for piece in segmenter.segment(line)))


def test_lengths_are_those_of_the_segmenter(text, few):
    found = lengths.measure(Corpus(text), few, P, seed=3, side=1)
    lines = text.read_text().splitlines()
    assert found["bpe"] == dict(sorted(Counter(len(few.segment(line)) for line in lines).items()))
    drawn = Counter(
        len(few.segment(line, P, 3, epoch=epoch, side=1, sentence=number))
        for epoch in range(1, lengths.EPOCHS + 1)
        for number, line in enumerate(lines)
    )
    assert found["bpe-dropout"] == dict(sorted(drawn.items()))
    assert found["means"]["bpe"] == pytest.approx(np.mean([len(few.segment(line)) for line in lines]))


def test_the_ratio_is_the_expected_one(text, few):
    found = lengths.measure(Corpus(text), few, P)
    counts = Counter(text.read_text().split())
    assert found["ratio"] == pytest.approx(length_ratio(few, counts, P), rel=0.005)


def test_sentences_without_words_do_not_count(tmp_path, few):
    (tmp_path / "t").write_text("the\n\nthe the\n")
    assert lengths.measure(Corpus(tmp_path / "t"), few, 0.0)["bpe"] == {1: 1, 2: 1}


def test_a_text_without_words(tmp_path, few):
    (tmp_path / "t").write_text("\n\n")
    with pytest.raises(InputError, match="has no words to measure"):
        lengths.measure(Corpus(tmp_path / "t"), few, 0.1)


def test_datasets_are_counted(results):
    results.add(
        "iwslt15.en-vi.bpe.base.seed1",
        "datasets",
        corpus="iwslt15.en-vi",
        subset="",
        pairs={"train": 133166, "valid": 1553, "test": 1268},
    )
    results.add(
        "wmt14.en-fr.250k.bpe.base.seed1", "datasets", corpus="wmt14.en-fr", subset="250k", pairs={"train": 250000}
    )
    part = datasets.build(read_items()["table-datasets"], results, CONFIGS, [])
    (table,) = part.tables
    assert table.columns[-1] == "p in BPE-dropout", "nothing is known of ceilings"
    first = table.rows[0].cells
    assert [cell.plain for cell in first[1:4]] == [
        "133166 (paper 133k, +166, agrees)",
        "1553 (paper 1553, +0, agrees)",
        "1268 (paper 1268, +0, agrees)",
    ]
    assert [cell.text for cell in table.rows[1].cells[4:]] == ["4k / 16k", "4k", "0.1 / 0.6"]
    assert [row.group for row in table.rows] == ["IWSLT15", "IWSLT15", "IWSLT17", "IWSLT17", "WMT14", "ASPEC"]
    assert len([cell for cell in part.cells if cell.verdict == "not run"]) == 15
    assert part.missing[0] == "make datasets.iwslt15.en-zh.bpe.base.seed1"


def test_the_table_of_datasets_has_ceilings_where_they_are_known(results):
    counts = {"train": 231713, "valid": 888, "test": 1205}
    results.add(
        "iwslt17.en-ar.bpe.base.seed1",
        "datasets",
        corpus="iwslt17.en-ar",
        subset="",
        pairs=counts,
        ceiling={"en": 99.96, "ar": 99.51},
    )
    (table,) = datasets.build(read_items()["table-datasets"], results, CONFIGS, []).tables
    assert table.columns[-1] == "ceiling"
    assert {row.cells[0].text: row.cells[-1].text for row in table.rows}["En ↔ Ar"] == "100.0 / 99.5"
    assert [row.cells[-1].text for row in table.rows].count("") == 5
    assert table.notes[0].startswith("The ceiling is BLEU of the test text itself")


def test_unknown_pieces_are_as_many_as_expected(text, few, few_codes):
    """Against the exact distribution of every word."""
    lines = text.read_text().splitlines()
    plain = pieces_of(few, lines)
    dictionary = Dictionary({piece: 4 + number for number, piece in enumerate(plain)}, unk=3)
    found = unknown.measure(Corpus(text), few, dictionary, P)
    unknown_pieces = all_pieces = 0.0
    for word, count in Counter(" ".join(lines).split()).items():
        if len(word) > 12:  # too many segmentations for plain Python; rare
            continue
        for tokens, probability in distribution(word, few_codes, P).items():
            made = [f"{token}@@" for token in tokens[:-1]] + [tokens[-1]]
            all_pieces += count * probability * len(made)
            unknown_pieces += count * probability * sum(piece not in dictionary.ids for piece in made)
    assert found["share"] == pytest.approx(unknown_pieces / all_pieces, rel=0.1)
    assert found["unknown"] > 100, "so that this says something"
    assert found["share"] == found["unknown"] / found["pieces"]


def test_without_dropout_nothing_is_unknown(text, few):
    plain = pieces_of(few, text.read_text().splitlines())
    dictionary = Dictionary({piece: 4 + number for number, piece in enumerate(plain)}, unk=3)
    assert unknown.measure(Corpus(text), few, dictionary, 0.0)["unknown"] == 0


def test_substrings_by_hand():
    """Within tokens, not across them; wherever in a word; also where they overlap."""
    tokens = {"banan@@": 2, "a": 2, "an": 5, "xx@@": 1, "xxx": 3}
    pieces = ["an@@", "an", "a", "na", "nan@@", "xx", "y"]
    assert substrings.count_substrings(tokens, pieces) == {
        "an@@": 2 * 2 + 5,
        "an": 2 * 2 + 5,
        "a": 2 * 2 + 2 + 5,
        "na": 2,
        "nan@@": 2,
        "xx": 1 + 2 * 3,
    }


@pytest.mark.parametrize(("system", "p", "epochs"), [("bpe", 0.0, 1), ("bpe-dropout", P, substrings.EPOCHS)])
def test_token_to_substring_ratios(text, few, system, p, epochs):
    """By brute force: the text is segmented, line by line, and each piece is looked for in each token."""
    lines = text.read_text().splitlines()
    pieces = pieces_of(few, lines)
    found = substrings.measure(Corpus(text), few, pieces, P, seed=3, side=1)
    tokens = Counter(
        token
        for epoch in range(1, epochs + 1)
        for number, line in enumerate(lines)
        for token in few.segment(line, p, 3, epoch=epoch, side=1, sentence=number)
    )

    def occurrences(piece):
        characters = piece.removesuffix("@@")
        within = (
            count * sum(token.removesuffix("@@").startswith(characters, place) for place in range(len(token)))
            for token, count in tokens.items()
        )
        return sum(within)

    ranked = sorted((-occurrences(piece), piece) for piece in pieces)[: len(pieces) // 10]
    ratios = [tokens[piece] / -count for count, piece in ranked]
    assert max(ratios) <= 1
    assert found["pieces shown"] == len(ratios) == sum(found[system])
    assert found["means"][system] == pytest.approx(np.mean(ratios))
    assert found[system] == np.histogram(ratios, substrings.BINS, (0, 1))[0].tolist()
    if p:
        assert set(tokens) - set(pieces), "tokens that are not in the vocabulary have substrings, too"
        assert found["means"]["bpe-dropout"] > found["means"]["bpe"], "what the paper found"


def test_the_figure_of_substrings(results):
    side = {"language": "en", "p": 0.1, "means": {"bpe": 0.1, "bpe-dropout": 0.3}, "pieces shown": 4}
    side |= {"pieces in the vocabulary": 40, "bpe": [4] + [0] * 39, "bpe-dropout": [1, 2, 1] + [0] * 37}
    results.add("demo.en-fr.bpe-dropout.small.seed1", "substrings", src=side, tgt=side)
    part = substrings.build(read_items()["figure-substrings"], results, CONFIGS, ["demo.en-fr.bpe-dropout.small.seed1"])
    (drawing,) = part.drawings
    assert drawing.caption.endswith("the 4 most frequent of 40 pieces")
    outlines = [one for one in drawing.figure.axes[0].patches if one.get_gid()]
    assert [one.get_data().values.tolist()[:3] for one in outlines] == [[1.0, 0, 0], [0.25, 0.5, 0.25]]
    text = svg(drawing.figure)
    assert 'id="ratio-bpe-dropout"' in text
    assert "BPE-dropout, p = 0.1: 0.300 on average" in text
    assert [cell.text for cell in part.tables[0].rows[0].cells[1:]] == ["0.100", "0.300"]


def test_the_figures_of_lengths(results):
    side = {"language": "de", "p": 0.1, "ratio": 1.5, "means": {"bpe": 2.0, "bpe-dropout": 3.0}}
    side |= {"bpe": {"1": 1, "3": 1}, "bpe-dropout": {"2": 10, "4": 10}}
    results.add("demo.en-fr.bpe-dropout.small.seed1", "lengths", src=side, tgt=side)
    for method in ("bpe", "bpe-dropout"):
        results.add(f"demo.en-fr.{method}.small.seed1", generation={"lengths": {"2": 3, "5": 1}})
    runs = [f"demo.en-fr.{method}.small.seed1" for method in ("bpe", "bpe-dropout")]
    part = lengths.build(read_items()["figure-lengths"], results, CONFIGS, runs)
    text, translations = part.drawings
    assert text.caption == "(a) German of the test set of demo En-Fr, 1k pieces: 1.500 times longer with dropout"
    curve = next(line for line in text.figure.axes[0].get_lines() if line.get_gid() == "lengths-bpe-dropout")
    assert curve.get_xydata().tolist() == [[0, 0], [1, 0], [2, 0.5], [3, 0], [4, 0.5], [5, 0]]
    assert translations.caption.startswith("(b) Translations of the test set of demo En-Fr")
    assert "BPE: 2.8 on average" in svg(translations.figure)
