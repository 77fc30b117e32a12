"""Translating with several segmentations, measured: what is translated, how it is scored, and the table."""

import itertools

from experiments.analysis.results import Results
from experiments.analysis.several import TESTSETS, WAYS, build, measure
from scripts.corpora import CONFIGS
from scripts.paper import read_items
from scripts.runs import AT_THE_LIMIT, Run, plan_run

RUN = "multi30k.en-de.5k.bpe-dropout.small.seed{}"
ITEM = read_items(CONFIGS)["study-several"]


def test_all_ways_on_both_test_sets():
    asked = []
    lines = ["a man in an orange hat is starring at something ."] * 40
    references = ["ein mann mit einem orangefarbenen hut , der etwas anstarrt ."] * 40

    def translate(given, count, combine):
        asked.append((count, combine, given == lines))
        return references if count == 16 else ["ein mann mit hut ."] * 40

    found = measure(plan_run(Run.parse(RUN.format(1))), lines, references, translate, CONFIGS)
    assert asked.pop(0) == (1, "score", True), "before the clock starts"
    expected = [(1, "score"), (4, "score"), (16, "score"), (4, "average"), (16, "average")]
    assert asked == [(*way, True) for way in expected] + [(*way, False) for way in expected]
    assert list(found) == list(TESTSETS)
    for testset in TESTSETS:
        assert list(found[testset]) == list(WAYS)
        assert round(found[testset]["16 averaged"]["bleu"]) == round(found[testset]["16 by score"]["bleu"]) == 100
        assert found[testset]["1"]["bleu"] < 50
        against = {way: one.get("against plain") for way, one in found[testset].items()}
        assert against["1"] is None
        assert (against["4 by score"]["difference"], against["4 by score"]["significant"]) == (0, False)
        assert against["16 averaged"]["difference"] > 50
        assert against["16 averaged"]["significant"]
        assert found[testset]["1"]["bleu signature"].startswith("nrefs:1|case:lc")


def test_the_table_has_what_was_measured(results):
    part = build(ITEM, results, CONFIGS, [])
    assert not part.blocks
    assert part.fill == "make fill-study-several"
    for seed, more in ((1, 0.0), (3, 1.0)):
        # The last is better for both seeds, the one before it for one of them.
        ways = {way: {"bleu": 30 + number + more, "chrf": 50 + more, "seconds": 2.0 * (number + 1),
                      "against plain": {"difference": number, "p": 0.01 if number + more > 3 else 0.2}}
                for number, way in enumerate(WAYS)}  # fmt: skip
        lower = {way: {**one, "bleu": one["bleu"] - 10} for way, one in ways.items()}
        results.add(RUN.format(seed), "several", test=ways, misspelled=lower)
    (table,) = build(ITEM, Results(results.folder), CONFIGS, []).tables  # read anew
    assert [(row.group, row.cells[0].text) for row in table.rows] == [
        ("En-De", "BPE-dropout, original (2 of 3 seeds)"),
        ("En-De", "BPE-dropout, misspelled (2 of 3 seeds)"),
    ]
    assert table.rows[0].cells[1].commands == [f"make several.{RUN.format(2)}"]
    first, *_, last = table.rows[0].cells[1:]
    assert first.plain == "30.50 (chrF 50.50)"
    assert last.plain == "34.50 (chrF 50.50, ×5)"
    assert [cell.best for cell in table.rows[1].cells[1:]] == [False] * 4 + [True]
    assert table.notes == []


def test_what_is_asked_of_it(results):
    """Whether 16 averaged are better for models of BPE-dropout: in four directions, on two test sets, three seeds."""

    def answers():
        found = build(ITEM, Results(results.folder), CONFIGS, []).findings
        return {one.name: (one.verdict, one.why, one.numbers) for one in found}

    def add(direction, seed, **changed):
        ways = {
            way: {"bleu": 30.0, "chrf": 50.0, "seconds": 2.0, "against plain": {"difference": 0.5, "p": 0.01} | changed}
            for way in WAYS
        }
        run = RUN.format(seed).replace("en-de", direction)
        results.add(run, "several", test=ways, misspelled=ways)

    assert set(answers().values()) == {("not run", "", "")}
    for direction, seed in itertools.product(("en-de", "de-en", "en-fr", "fr-en"), (1, 2, 3)):
        if (direction, seed) != ("fr-en", 3):
            add(direction, seed)
    numbers = "+0.50; significantly higher in 8 of 8, lower in 0"
    assert answers()["average-dropout"] == ("undecided", "11 of 12 runs", numbers)
    add("fr-en", 3)
    assert answers()["average-dropout"] == ("yes", "", numbers)
    add("fr-en", 3, p=0.2)
    why = (
        "not found in 2 of 24: Fr-En, original, seed 3 (+0.50, p = 0.200); Fr-En, misspelled, seed 3 (+0.50, p = 0.200)"
    )
    assert answers()["average-dropout"] == ("undecided", why, "+0.50; significantly higher in 6 of 8, lower in 0")
    for seed in (1, 2, 3):
        add("fr-en", seed, difference=-0.5, p=0.001)
    verdict, _, numbers = answers()["average-dropout"]
    assert (verdict, numbers) == ("no", "-0.50 to +0.50; significantly higher in 6 of 8, lower in 2")


def test_runs_of_ones_own_have_a_table_of_their_own(results):
    ways = {way: {"bleu": 30.0, "chrf": 50.0, "seconds": 2.0} for way in WAYS}
    own = "multi30k.en-de.5k.unigram.small.seed4"
    for run in (RUN.format(1), own):
        results.add(run, bleu=30.0, generation={"model": "one"}, training={"stopped": AT_THE_LIMIT})
        results.add(run, "several", model="another", test=ways, misspelled=ways)
    part = build(ITEM, results, CONFIGS, [own, RUN.format(5)])
    (table,) = part.tables
    assert [(row.group, row.cells[0].text) for row in table.rows] == [
        ("multi30k En-De, 5k pairs, 1k pieces (small, seed 4)", f"Kudo (2018), {testset}")
        for testset in ("original", "misspelled")
    ]
    assert part.fill == f'make fill-study-several RUNS="{own} {RUN.format(5)}"'
    assert table.notes == [
        f"Trained until the limit of updates, and may not have converged: {own}.",
        f"Measured on another training with the same settings than the one that was scored: {own}.",
    ]
