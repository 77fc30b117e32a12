"""Figure 1: every step that is drawn is a step of Algorithm 1."""

import re
from itertools import pairwise
from random import Random

import pytest

from bpe_dropout import Codes, InputError, Segmenter
from bpe_dropout.reference import candidates, distribution, merge_all, plain, spell, trace, trace_plain
from experiments.analysis.drawing import GREEN, RED, svg
from experiments.analysis.merges import build, codes_of, draw, read_choice, trace_panels
from scripts.corpora import CONFIGS
from scripts.paper import read_items

SETTINGS = {"word": "unrelated", "p": 0.1, "seeds": [1, 2]}


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("word", ["unrelated", "statement", "m", "ababababab"])
def test_a_trace_is_algorithm_1(codes, word, p):
    for seed in range(20):
        steps = list(trace(word, codes, p, Random(seed)))
        for step, after in pairwise(steps):
            assert list(step.possible) == candidates(step.tokens, codes.ranks)
            (applied,) = step.applied
            before = step.possible[: step.possible.index(applied)]
            assert set(before) <= set(step.dropped), "of the survivors, the best is applied"
            assert applied not in step.dropped
            assert after.tokens == merge_all(step.tokens, [applied])
        assert set(steps[-1].dropped) == set(steps[-1].possible)
        if len(word) > 1:
            assert spell(steps[-1].tokens, codes) in distribution(word, codes, p)


def test_a_trace_of_bpe_ends_in_bpe(codes, words):
    for word in words[:300]:
        steps = list(trace_plain(word, codes))
        assert steps[-1].tokens == plain(word, codes)
        assert not any(step.dropped for step in steps)
        assert all(step.applied for step in steps[:-1])


def texts(figure) -> dict[float, list[tuple[float, str]]]:
    """What is on each line of a panel, from left to right."""
    lines: dict[float, list[tuple[float, str]]] = {}
    for text in figure.texts:
        x, y = text.get_position()
        lines.setdefault(y, []).append((x, text.get_text()))
    return lines


def test_the_figure_shows_the_merges(codes):
    figure = draw("unrelated", codes, trace_panels("unrelated", codes, 0.3, [4]))
    left, right = figure.axes
    assert (left.get_title(), right.get_title()) == ("BPE", "BPE-dropout, seed 4")
    for axes, panel, steps in (
        (left, "BPE", list(trace_plain("unrelated", codes))),
        (right, "4", list(trace("unrelated", codes, 0.3, Random(4)))),
    ):
        hyphens = {text.get_gid(): text.get_color() for text in axes.texts if text.get_gid()}
        for number, step in enumerate(steps):
            for place in step.possible:
                state = "applied" if place in step.applied else "dropped" if place in step.dropped else "possible"
                shade = hyphens.pop(f"{state}-{panel}-{number}-{place}")
                assert shade == {"applied": GREEN, "dropped": RED}.get(state, shade)
                assert shade not in (GREEN, RED) or state != "possible"
            drawn = "".join(one for _, one in sorted(texts(axes)[number]) if one != "-")
            assert drawn == "unrelated"
        assert not hyphens
        assert max(texts(axes)) == len(steps) - 1
    text = svg(figure)
    assert "BPE-dropout, seed 4" in text
    assert re.search(rf'id="applied-BPE-0-\d+"[^§]*?{GREEN}', text)
    assert re.search(rf'id="dropped-4-\d+-\d+"[^§]*?{RED}', text)


def test_gaps_stand_where_nothing_can_be_merged():
    codes = Codes((("a", "b"),))
    figure = draw("abc", codes, trace_panels("abc", codes, 0.0, []))
    (axes,) = figure.axes
    first, second = texts(axes).values()
    assert [one for _, one in sorted(first)] == ["a", "-", "b", "c"]
    assert [one for _, one in sorted(second)] == ["a", "b", "c"]
    places = [x for x, _ in sorted(second)]
    assert places[1] - places[0] == 1
    assert places[2] - places[1] == 2


def test_what_is_drawn_can_be_chosen():
    assert read_choice({}, SETTINGS) == ("unrelated", 0.1, [1, 2])
    assert read_choice({"WORD": "Maus", "P": "0.5", "SEEDS": "7 8 9"}, SETTINGS) == ("Maus", 0.5, [7, 8, 9])
    for wrong in ({"WORD": "two words"}, {"P": "1.5"}, {"P": "x"}, {"SEEDS": "x"}):
        with pytest.raises(InputError):
            read_choice(wrong, SETTINGS)


def test_the_merge_table_of_a_run(results, codes, monkeypatch):
    item = read_items()["study-merges"]
    part = build(item, results, CONFIGS, [])
    assert part.notes[0].startswith("There is no merge table yet: `make merges.multi30k.en-de.bpe.small.seed1`, ")
    pairs = [" ".join(pair) for pair in codes.pairs]
    results.add("demo.en-fr.bpe.small.seed1", "merges", language="en", merges=len(pairs), pairs=pairs)
    monkeypatch.setenv("WORD", "statements")
    part = build(item, results, CONFIGS, ["demo.en-fr.bpe.small.seed1"])
    (drawing,) = part.drawings
    assert "“statements”" in drawing.caption
    assert "English of demo En-Fr, 1k pieces, 1200 merges" in drawing.caption
    titles = ["BPE", *(f"BPE-dropout, seed {seed}" for seed in item.settings["seeds"])]
    assert [axes.get_title() for axes in drawing.figure.axes] == titles
    assert [[axes.get_title() for axes in panel.axes] for panel in drawing.panels] == [[title] for title in titles]
    found = results.get("demo.en-fr.bpe.small.seed1", "merges")
    assert Segmenter(codes_of(found)).segment("statements") == Segmenter(codes).segment("statements")
