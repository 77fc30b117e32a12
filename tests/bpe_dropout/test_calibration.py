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
