"""Rules of dropout: what they say, and what they refuse."""

import pickle

import pytest

from bpe_dropout import InputError, Segmenter
from bpe_dropout.rules import FORMS, Rule, may_drop, read_dropout, read_rates


def rates(text, merges=5, folder=None):
    return Rule.parse(text).rates(merges, folder)


def test_a_constant_is_a_number():
    assert rates("0.1") == rates("1x0.1") == rates("rank:0.1..0.1") == 0.1
    assert rates("2x0.1") == 0.2
    assert rates("10x0.1") == 1.0
    for given in (0.1, "0.1", ".1", "1e-1", "0.5x.2", Rule.parse("0.1")):
        assert read_dropout(given) == 0.1
        assert type(read_dropout(given)) is float
    assert read_dropout(1) == 1.0


def test_scaled_rules_are_short():
    assert [str(Rule.parse(text)) for text in ("3x0.1", "0.5xrank:0..0.3", "3xrank:0.1..0.4", "5x0.2@anneal:3")] == [
        "0.3",
        "rank:0..0.15",
        "3xrank:0.1..0.4",
        "1@anneal:3",
    ]
    assert str(Rule.parse("3xrank:0.1..0.4").scaled(0.5)) == "rank:0.15..0.6"
    assert str(Rule.parse("2xfile:x").scaled(0.25)) == "0.5xfile:x"
    assert Rule.parse("0.12345678901234567").number == 0.12345678901234567


def test_by_rank():
    assert rates("rank:0..0.4") == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert rates("rank:0.4..0") == pytest.approx([0.4, 0.3, 0.2, 0.1, 0])
    assert rates("0.5xrank:0..0.4") == pytest.approx([0, 0.05, 0.1, 0.15, 0.2])
    assert rates("4xrank:0..0.4") == pytest.approx([0, 0.4, 0.8, 1, 1])
    assert rates("rank:0.3..0.7", merges=1) == 0.3


def test_by_frequency():
    rule = Rule.parse("frequency:0.2..0.6")
    with pytest.raises(InputError, match="how often merges are applied depends on a text"):
        rule.rates(3)
    # log(1 + f): 99 is halfway to 9999.
    assert rule.counted([9999, 0, 99]).rates(3) == pytest.approx([0.2, 0.6, 0.4])
    assert rule.scaled(0.5).counted([9999, 0, 99]).rates(3) == pytest.approx([0.1, 0.3, 0.2])
    assert rule.counted([0, 0]).rates(2) == 0.6
    with pytest.raises(InputError, match="3 merges were counted, and the codes have 4"):
        rule.counted([1, 2, 3]).rates(4)


def test_a_file(tmp_path):
    (tmp_path / "rates.en").write_text("0.1\n0\n1\n")
    assert rates("file:rates.en", 3, tmp_path) == [0.1, 0, 1]
    assert rates("3xfile:rates.en", 3, tmp_path) == pytest.approx([0.3, 0, 1])
    assert rates(f"file:{tmp_path}/rates.en", 3) == [0.1, 0, 1]
    assert rates(f"file:{tmp_path}/rates.en", 3, tmp_path / "elsewhere") == [0.1, 0, 1]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("0.1\nhigh\n", "line 2: 'high' is not a rate; expected a number from 0 to 1"),
        ("0.1\n0.1\n1.5\n", "line 3: '1.5' is not a rate"),
        ("0.1\n-0.1\n", "line 2: '-0.1' is not a rate"),
        ("nan\n", "line 1: 'nan' is not a rate"),
        ("0.1\n\n0.1\n", "line 2: '' is not a rate"),
        ("0.1\n0.2\n", "has 2 rates, and the codes have 3 merges; expected one rate per line"),
        ("0.1\n" * 4, "has 4 rates, and the codes have 3 merges"),
        (b"0.1\n\xff\n", "line 2: not valid UTF-8; is this a list of rates?"),
    ],
)
def test_a_file_that_is_no_list_of_rates(tmp_path, content, sentence):
    path = tmp_path / "rates.en"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as error:
        read_rates(path, 3)
    assert str(error.value).startswith(str(path))
    assert sentence in str(error.value)


def test_a_file_that_is_missing(tmp_path):
    with pytest.raises(InputError, match=r"there is no .*gone: one rate per line.*beside the codes"):
        rates("file:gone", 3, tmp_path)


def test_schedules():
    anneal, warmup = Rule.parse("0.2@anneal:5"), Rule.parse("rank:0..0.4@warmup:3")
    assert [anneal.at(epoch).rates(9) for epoch in range(7)] == pytest.approx([0.2, 0.2, 0.15, 0.1, 0.05, 0, 0])
    assert [warmup.at(epoch).rates(2) for epoch in (1, 2, 3, 9)] == [0.0, [0.0, 0.2], [0.0, 0.4], [0.0, 0.4]]
    assert read_dropout(anneal.at(5)) == 0.0
    assert Rule.parse("0.1").at(7) == Rule.parse("0.1")
    with pytest.raises(InputError, match=r"has rates for each epoch; name one with at\(epoch\)"):
        anneal.rates(9)
    assert anneal.scaled(0.5).at(1).rates(9) == 0.1
    assert warmup.number is anneal.number is None


@pytest.mark.parametrize(
    "text",
    [
        "0.1",
        "rank:0.05..0.2",
        "frequency:0.2..0.05",
        "file:a/b.c",
        "1.5xfile:a/b.c",
        "0.2@anneal:30",
        "0.1@warmup:5",
    ],
)
def test_the_text_says_all(text):
    rule = Rule.parse(text)
    assert str(rule) == text
    assert repr(rule) == f"Rule({text!r})"
    assert pickle.loads(pickle.dumps(rule)) == Rule.parse(text)
    assert hash(rule) == hash(Rule.parse(text))
    assert rule.needs_counts or text in FORMS.replace("PATH", "a/b.c")


def test_rules_that_differ_in_their_counts_differ():
    rule = Rule.parse("frequency:0.2..0")
    assert rule.counted([1, 2]) != rule.counted([2, 1])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "p",
        "rank:0.1",
        "rank:0.1-0.2",
        "rank:..1",
        "file:",
        "0.1@",
        "0.1@anneal",
        "0.1@cosine:3",
        "x0.1",
        "٣",
    ],
)
def test_no_rules(text):
    with pytest.raises(InputError, match="is no rule of dropout, such as 0"):
        Rule.parse(text)


def test_numbers_out_of_range():
    for text in ("1.5", "-0.1", "rank:0..1.1", "frequency:2..0"):
        with pytest.raises(InputError, match="dropout is a probability from 0 to 1, not"):
            Rule.parse(text)
    with pytest.raises(InputError, match="anneal takes 2 epochs or more, not 1"):
        Rule.parse("0.1@anneal:1")
    for scale in ("1e999", "-1"):
        with pytest.raises(InputError, match=f"{scale} is not a scale"):
            Rule.parse(f"{scale}xrank:0..1")
    for text in ("0x1", "2x0.9", "9x0.2@anneal:3"):
        with pytest.raises(InputError, match=r"times .* is no dropout; give the probability itself, 0 to 1"):
            Rule.parse(text)
    for number in (-0.1, True, None):
        with pytest.raises(InputError, match="dropout is a probability"):
            read_dropout(number)


def test_a_schedule_needs_an_epoch(segmenter):
    """In epoch 0, if none is named, a warm-up would be plain BPE, and nothing would say so."""
    warmup, word = "0.9@warmup:5", "unrelated"
    for draw in (
        lambda **epoch: segmenter.segment(word, warmup, **epoch),
        lambda **epoch: segmenter.segment(word, warmup, 7, **epoch),
        lambda **epoch: segmenter.process_line(word, warmup, **epoch),
        lambda **epoch: segmenter.stream(warmup).text(word.encode(), **epoch),
        lambda **epoch: segmenter.stream(warmup).text(word.encode(), 7, **epoch),
        lambda **epoch: segmenter.distribution(word, warmup, **epoch),
        lambda **epoch: segmenter.probability(["unrelated"], warmup, **epoch),
        lambda **epoch: segmenter.most_probable(word, warmup, 2, **epoch),
    ):
        with pytest.raises(InputError, match=r"0.9@warmup:5 has other rates in each epoch: say which it is"):
            draw()
        draw(epoch=3)


def test_an_epoch_without_a_seed_is_for_schedules(segmenter):
    segmenter = Segmenter(segmenter.codes)
    segmenter.seed(7)
    drawn = [segmenter.segment("unrelated words", "0.9@warmup:5", epoch=epoch) for epoch in (1, 3, 5)]
    draws = (0.0, 0), (0.45, 0), (0.9, 1)  # the first drops nothing, and takes no draw
    assert drawn == [segmenter.segment("unrelated words", p, 7, sentence=number) for p, number in draws]
    assert segmenter.distribution("unrelated", "0.9@warmup:5", epoch=3) == segmenter.distribution("unrelated", 0.45)
    with pytest.raises(InputError, match="epoch, side and sentence name a draw together with a seed"):
        segmenter.segment("unrelated words", 0.9, epoch=3)
    with pytest.raises(InputError, match="the epoch is a whole number"):
        segmenter.segment("unrelated words", "0.9@warmup:5", epoch=-3)


def test_whether_it_drops():
    for dropout in (0.1, Rule.parse("rank:0..0.1"), Rule.parse("file:x"), Rule.parse("0.2@anneal:3")):
        assert may_drop(dropout)
    for dropout in (0.0, Rule.parse("rank:0..0"), Rule.parse("0xfile:x"), Rule.parse("0@anneal:3")):
        assert not may_drop(dropout)
