"""p from a length ratio, against what is really drawn."""

import pytest

from bpe_dropout import Codes, InputError, Segmenter, calibrate, calibration
from bpe_dropout.calibration import length_ratio
from tests.conftest import learn, read_gz


def test_by_hand():
    # One word of two characters with one merge: 1 + p pieces.
    segmenter = Segmenter(Codes((("a", "b</w>"),)))
    found = calibrate(segmenter, {"ab": 7}, 1.25)
    assert found.p == pytest.approx(0.25, abs=2e-5)
    assert found.ratio == pytest.approx(1.25, abs=2e-5)
    assert (found.plain_length, found.exact_share) == (7, 1.0)
    assert length_ratio(segmenter, {"ab": 7}, 0.4) == pytest.approx(1.4)
    tried = []
    calibrate(segmenter, {"ab": 7}, 1.25, progress=lambda p, ratio: tried.append((p, ratio)))
    assert tried[-1] == pytest.approx((0.25, 1.25), abs=2e-5)


def test_what_is_stated_of_the_tolerance(segmenter, words, monkeypatch):
    """Met where all words are exact; where some are drawn, the nearest that was tried. The ratio is that of the p."""
    counts = {word: 1 + 3000 // (rank + 1) for rank, word in enumerate(words[:1500])}
    counts = {word: count for word, count in counts.items() if len(word) < 8}
    for ratio in (1.01, 1.1, 1.25, 1.7):
        found = calibrate(segmenter, counts, ratio)
        assert found.exact_share == 1
        assert abs(found.ratio - ratio) <= 1e-5
        assert length_ratio(segmenter, counts, found.p) == pytest.approx(found.ratio, abs=1e-12)
        assert found.p == round(found.p, 6)
    monkeypatch.setattr(calibration, "STATES", 4)
    for ratio in (1.01, 1.1, 1.25, 1.7):
        tried = {}
        found = calibrate(segmenter, counts, ratio, progress=tried.__setitem__)
        assert found.exact_share < 1
        assert length_ratio(segmenter, counts, found.p) == pytest.approx(found.ratio, abs=1e-12)
        assert abs(found.ratio - ratio) == pytest.approx(min(abs(other - ratio) for other in tried.values()))
        assert abs(found.ratio - ratio) < 1e-3


def test_against_draws(segmenter, english):
    counts: dict[str, int] = {}
    for line in english:
        for word in line.split():
            counts[word] = counts.get(word, 0) + 1
    for ratio in (1.05, 1.25, 2.0):
        found = calibrate(segmenter, counts, ratio)
        block = "\n".join(english).encode()
        plain = len(segmenter.stream().text(block).split())
        drawn = len(segmenter.stream(found.p).text(block, 1).split())
        assert plain == found.plain_length
        assert found.ratio == pytest.approx(ratio, abs=1e-3)  # some words are drawn
        assert drawn / plain == pytest.approx(ratio, abs=0.01)
        assert found.exact_share > 0.9


def test_unsegmented_japanese(shared):
    lines = read_gz(shared / "tatoeba-enja" / "dev.ja.gz")
    segmenter = Segmenter(learn(lines, 2000))
    counts: dict[str, int] = {}
    for line in lines:
        for word in line.split():
            counts[word] = counts.get(word, 0) + 1
    found = calibrate(segmenter, counts, 1.25)
    block = "\n".join(lines).encode()
    plain = len(segmenter.stream().text(block).split())
    drawn = sum(len(segmenter.stream(found.p).text(block, seed).split()) for seed in range(10)) / 10
    assert drawn / plain == pytest.approx(1.25, abs=0.01)
    assert calibrate(segmenter, counts, 1.25) == found


def test_the_scale_of_a_rule_by_hand():
    # Two words with a merge each: 1 + s * 0.1 and 1 + s * 0.4 pieces.
    segmenter = Segmenter(Codes((("a", "b</w>"), ("c", "d</w>"))))
    counts = {"ab": 3, "cd": 1}
    found = calibrate(segmenter, counts, 1.0875, rule="rank:0.1..0.4")
    assert found.p == pytest.approx(0.5, abs=1e-4)
    assert str(found.rule).startswith("rank:0.05")
    # Rates end at 1: (3 * 0.5 + 1) / 4 more pieces where the scale is 5.
    found = calibrate(segmenter, counts, 1.625, rule="rank:0.1..0.4")
    assert found.p == pytest.approx(5, abs=1e-3)
    assert length_ratio(segmenter, counts, found.rule) == pytest.approx(1.625, abs=2e-5)
    assert calibrate(segmenter, counts, 2.0, rule="rank:0.1..0.4").p == pytest.approx(10)
    # A merge with the rate 0 is never dropped.
    with pytest.raises(InputError, match=r"the ratio goes from 1 \(p = 0\) to 1.2500 \(rank:0..1\)"):
        calibrate(segmenter, counts, 1.3, rule="rank:0..0.4")


@pytest.mark.parametrize("rule", ["rank:0..1", "rank:0.2..0.05", "frequency:0.1..0.3", "2x0.1", "file:rates"])
def test_a_rule_against_draws(codes, english, rule, tmp_path):
    (tmp_path / "codes").write_text(codes.text())
    (tmp_path / "rates").write_text("0.1\n0.4\n" * (len(codes.pairs) // 2))
    segmenter = Segmenter.from_codes(tmp_path / "codes")
    english = english[:1500]
    counts: dict[str, int] = {}
    for line in english:
        for word in line.split():
            counts[word] = counts.get(word, 0) + 1
    found = calibrate(segmenter, counts, 1.25, rule=rule)
    block = "\n".join(english).encode()
    drawn = len(segmenter.stream(found.rule).text(block, 1).split())
    assert found.ratio == pytest.approx(1.25, abs=1e-3)
    assert drawn / found.plain_length == pytest.approx(1.25, abs=0.01)
    assert length_ratio(segmenter, counts, str(found.rule)) == pytest.approx(found.ratio, abs=1e-9)
    if rule == "2x0.1":
        assert found.rule.number == pytest.approx(calibrate(segmenter, counts, 1.25).p, abs=1e-3)


def test_rules_that_cannot_be_calibrated(segmenter):
    with pytest.raises(InputError, match="another ratio in each epoch; calibrate it without @anneal"):
        calibrate(segmenter, {"the": 1}, rule="0.2@anneal:3")
    with pytest.raises(InputError, match=r"rank:0..0 drops nothing, however it is scaled"):
        calibrate(segmenter, {"the": 1}, rule="rank:0..0")


def test_limits(segmenter):
    assert calibrate(segmenter, {"the": 1}, 1.0).p == 0
    assert calibrate(segmenter, {"the": 1}, 3.0).p == 1
    for ratio in (0.9, 3.1, float("nan")):
        with pytest.raises(InputError, match=r"the ratio goes from 1 \(p = 0\) to 3.0000"):
            calibrate(segmenter, {"the": 1}, ratio)
    with pytest.raises(InputError, match="'' is not one word"):
        calibrate(segmenter, {"the": 1, "": 2}, 1.25)
    with pytest.raises(InputError, match="no words"):
        calibrate(segmenter, {}, 1.25)
