"""Tables: what is in a cell, what is best, what is claimed, and what never gets into a cell of the paper's."""

import dataclasses
import itertools
import json
import math
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from bpe_dropout import InputError
from experiments.analysis import latex, markdown
from experiments.analysis.claims import Missing, Test, Verdict, check, decide, describe, is_about
from experiments.analysis.document import Cell, ReportPart, Row, Table
from experiments.analysis.drawing import svg
from experiments.analysis.grid import build, item_grid, mark_best, other_models
from experiments.analysis.results import Results
from scripts.compare import compare
from scripts.corpora import CONFIGS
from scripts.paper import Claim, read_items
from scripts.resampling import resample, write_scores
from scripts.runs import Run, plan_run
from scripts.score import bleu_of, score, tokenization_of

ITEMS = read_items()
SYSTEMS = ("bpe", "unigram", "bpe-dropout")


def runs(group: str, methods=SYSTEMS, model: str = "base") -> list[str]:
    return [f"{group}.{method}.{model}.seed1" for method in methods]


def cells(part: ReportPart, number: int = 0) -> dict[tuple[str, str], Cell]:
    """The cells of a table by row and column."""
    table = part.tables[number]
    return {
        (f"{row.group} {row.cells[0].text}".strip(), column): cell
        for row in table.rows
        for column, cell in zip(table.columns[1:], row.cells[1:], strict=True)
    }


def show(name: str, results, own=()) -> ReportPart:
    return build(ITEMS[name], results, CONFIGS, list(own))


def test_without_results_everything_is_not_run(results):
    part = show("table-main", results)
    found = cells(part)
    assert len(found) == 36
    cell = found["IWSLT15 En-Vi", "BPE-dropout"]
    assert (cell.text, cell.paper, cell.verdict, cell.paper_best) == ("", "33.27", "not run", True)
    assert cell.commands == ["make iwslt15.en-vi.bpe-dropout.base.seed1"]
    assert part.fill == "make fill-table-main"
    assert [finding.verdict for finding in part.findings] == ["not run", "not run"]
    assert not part.was_run


def test_a_grid_without_any_number_is_left_out(results):
    """The paper prints no numbers of this curve, and nothing was run."""
    part = show("figure-p", results)
    assert not part.blocks
    assert part.fill == "make fill-figure-p"


def test_ours_beside_the_papers(results):
    names = runs("iwslt15.en-vi")
    for name, bleu in zip(names, (31.5, 33.3, 30.0), strict=True):
        results.add(name, bleu=bleu)
    results.compare(
        "iwslt15.en-vi.base.seed1",
        dict(zip(names, (31.5, 33.3, 30.0), strict=True)),
        {(names[0], names[1]): 0.001, (names[0], names[2]): 0.02, (names[1], names[2]): 0.001},
    )
    part = show("table-main", results)
    found = cells(part)
    shown = {
        column: (cell.text, cell.difference, cell.verdict, cell.best)
        for (row, column), cell in found.items()
        if row == "IWSLT15 En-Vi"
    }
    assert shown == {
        "BPE": ("31.50", "-0.28", "agrees", False),
        "Kudo (2018)": ("33.30", "+0.87", "near", True),
        "BPE-dropout": ("30.00", "-3.27", "differs", False),
    }
    assert found["IWSLT15 Vi-En", "BPE"].verdict == "not run"
    note = "IWSLT15, En-Vi: Kudo (2018) − BPE = +1.80 (p = 0.001), BPE-dropout − BPE = -1.50 (p = 0.020), "
    assert part.tables[0].notes == [note + "BPE-dropout − Kudo (2018) = -3.30 (p = 0.001)"]


def test_all_that_are_not_significantly_worse_are_best(results):
    names = runs("iwslt15.en-zh")
    scores = dict(zip(names, (20.5, 23.0, 22.8), strict=True))
    for name, bleu in scores.items():
        results.add(name, bleu=bleu)
    results.compare("g", scores, {(names[0], names[1]): 0.001, (names[0], names[2]): 0.001, (names[1], names[2]): 0.3})
    grid = item_grid(ITEMS["table-main"], results, CONFIGS)
    mark_best(grid, results)
    assert [entry.best for entry in grid.lines[2].entries.values()] == [False, True, True]


def test_rows_that_were_not_compared_have_nothing_bold(results):
    for name in runs("iwslt15.en-vi"):
        results.add(name, bleu=30.0)
    table = show("table-main", results).tables[0]
    assert not any(cell.best for row in table.rows for cell in row.cells)
    assert table.notes == ["Nothing is bold in rows whose runs were not compared with each other."]


def test_other_models_and_corpora_never_stand_in_a_cell_of_the_papers(results):
    others = [*runs("iwslt15.en-vi", model="small"), *runs("demo.en-fr", model="small"), *runs("multi30k.en-de")]
    others += [name.replace("seed1", "seed2") for name in runs("iwslt15.en-vi")]
    for name in others:
        results.add(name, bleu=99.0, text={"train": {"pairs": 5}}, configuration={"subset": "", "corpus": "x"})
    for name, item in ITEMS.items():
        if item.module == "grid" and not item.measure:
            grid = item_grid(item, results, CONFIGS)
            assert not any(entry.value for entry in grid.entries), name


def test_runs_of_ones_own_stand_alone(results):
    names = runs("iwslt15.vi-en", ("bpe", "bpe-dropout"), "small")
    results.add(names[0], bleu=10.0)
    part = show("table-main", results, names)
    assert len(part.tables) == 1
    cell = cells(part)["iwslt15 Vi-En, 4k pieces (small, seed 1)", "BPE-dropout"]
    assert (cell.verdict, cell.commands, cell.paper) == ("not run", [f"make {names[1]}"], "")
    assert part.fill == f'make fill-table-main RUNS="{" ".join(names)}"'
    results.add(names[1], bleu=12.5)
    part = show("table-main", type(results)(results.folder), names)
    assert not part.fill
    assert cells(part)["iwslt15 Vi-En, 4k pieces (small, seed 1)", "BPE-dropout"].text == "12.50"
    assert not part.findings, "of runs that are neither the paper's nor the study's there is no verdict"


def test_significance_is_sacrebleus_own(results, english, tmp_path):
    """From texts to the table, against SacreBLEU's command."""
    references = english[:120]
    worse = [" ".join(line.split()[::-1]) if n % 3 == 0 else line for n, line in enumerate(references)]
    better = [" ".join(line.split()[::-1]) if n % 4 == 0 else line for n, line in enumerate(references)]
    names = runs("wmt14.en-de", ("bpe", "bpe-dropout"))
    texts = dict(zip(names, (worse, better), strict=True))
    bleu = BLEU(lowercase=True)
    scores = {name: bleu.corpus_score(text, [references]).score for name, text in texts.items()}
    for name, one in scores.items():
        results.add(name, bleu=one)
    compared = compare(texts, references, bleu, scores)
    (results.folder / "comparisons").mkdir()
    (results.folder / "comparisons" / "x.json").write_text(json.dumps({"bleu": scores, **compared}))

    for file, lines in (("ref", references), ("a", worse), ("b", better)):
        (tmp_path / file).write_text("".join(f"{line}\n" for line in lines))
    command = [str(Path(sys.executable).parent / "sacrebleu"), "ref", "-i", "a", "b", "-lc", "-m", "bleu"]
    command += ["--paired-bs", "--paired-bs-n", "1000", "--format", "json"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    theirs = json.loads(made)[1]["BLEU"]

    part = show("table-main", results)
    row = [cell for (title, _), cell in cells(part).items() if title == "WMT14 En-De"]
    assert row[2].text == f"{theirs['score']:.2f}"
    assert [cell.best for cell in row] == [theirs["p_value"] >= 0.05, False, True]
    assert f"(p = {theirs['p_value']:.3f})" in part.tables[0].notes[0]


def add_times(results, times: dict[str, float], machine: str = "one") -> None:
    for name, seconds in times.items():
        results.add(f"{name}.seed1", "timing", seconds=seconds, repeats=1000, machine={"processor": machine})


TIMES = {"4m.bpe": 2.0, "4m.bpe-dropout": 2.2, "4m.v4000.bpe": 3.0, "4m.v4000.bpe-dropout": 2.9}
TIMES = {f"wmt14.en-fr.{name}.base": seconds for name, seconds in TIMES.items()}


def test_times_are_divided_by_the_smallest(results):
    add_times(results, TIMES)
    part = show("table-time", results)
    assert [cell.text for cell in cells(part).values()] == ["1.00", "1.10", "1.50", "1.45"]
    assert [cell.verdict for cell in cells(part).values()] == ["agrees", "near", "near", "agrees"]
    assert part.tables[0].notes == ["Averaged over 1000 translations of the test set."]
    assert [finding.verdict for finding in part.findings] == ["reproduced", "not reproduced"], (
        "2.9 is not 1.4 times 2.2"
    )


def test_times_are_not_compared_before_all_are_there(results):
    add_times(results, dict(list(TIMES.items())[1:3]))
    part = show("table-time", results)
    assert {cell.verdict for cell in cells(part).values()} == {"not run"}
    assert (
        "wmt14.en-fr.4m.bpe-dropout.base.seed1 2.20 s, wmt14.en-fr.4m.v4000.bpe.base.seed1 3.00 s"
        in (part.tables[0].notes[1])
    )


def test_times_of_several_machines_are_not_compared(results):
    add_times(results, TIMES)
    add_times(results, {"wmt14.en-fr.4m.bpe.base": 2.0}, machine="another")
    part = show("table-time", results)
    assert {(cell.text, cell.verdict) for cell in cells(part).values()} == {("none", "")}
    assert "of several machines" in part.tables[0].notes[1]


def test_times_of_other_runs_are_compared_within_a_corpus(results):
    times = {"demo.en-fr.bpe.small": 1.0, "demo.en-fr.v500.bpe.small": 2.0, "multi30k.en-de.bpe.small": 4.0}
    add_times(results, times)
    part = show("table-time", results, [f"{name}.seed1" for name in times])
    assert [cell.text for cell in cells(part).values()] == ["1.00", "2.00", "1.00"]


def test_comparisons_of_earlier_translations_do_not_count(results):
    names = runs("iwslt15.en-vi", ("bpe", "bpe-dropout"))
    for name, bleu in zip(names, (33.0, 31.0), strict=True):
        results.add(name, bleu=bleu)
    results.compare("g", dict(zip(names, (31.0, 33.0), strict=True)), {(names[0], names[1]): 0.001})
    table = show("table-main", results).tables[0]
    assert not any(cell.best for row in table.rows for cell in row.cells)


def test_text_with_capitals_has_a_table_of_its_own(results):
    names = [f"multi30k.en-de{cased}.bpe.small.seed1" for cased in ("", ".cased")]
    for name in names:
        results.add(name, bleu=30.0)
    assert not show("table-cased", results, names[:1]).blocks
    (table,) = show("table-cased", results, names).tables
    assert [row.cells[0].text for row in table.rows] == ["multi30k En-De, 4k pieces, cased (small, seed 1)"]


def test_seeds_have_curves_of_their_own(results):
    names = [f"demo.en-fr.bpe.small.seed{seed}" for seed in (1, 2)]
    for name, bleu in zip(names, (32.0, 33.0), strict=True):
        results.add(name, bleu=bleu, text={"train": {"pairs": 16000}})
    table = show("figure-size", results, names).tables[0]
    assert [cell.text for cell in table.rows[0].cells] == ["16k", "32.00", "33.00"]
    assert table.columns[1] == "demo En-Fr (small, seed 1): BPE, 1k"


def test_runs_of_ones_own_that_were_not_run(results):
    part = show("figure-p", results, runs("demo.en-fr", ("bpe", "bpe-dropout-p20"), "small"))
    assert [cell.verdict for cell in cells(part).values()] == ["not run", "not run"]
    part = show("figure-size", results, ["demo.en-fr.3k.bpe.small.seed1"])
    assert cells(part)["3k", "BPE, 1k"].commands == ["make demo.en-fr.3k.bpe.small.seed1"]


def test_seeds_that_share_no_row_are_not_compared(results):
    names = ["demo.en-fr.bpe.small.seed1", "demo.en-fr.bpe-dropout.small.seed1", "demo.en-fr.bpe-dropout.small.seed2"]
    for name in names:
        results.add(name, bleu=30.0)
        results.add(name, "misspelled", bleu=20.0)
    assert show("table-misspelled", results, names).tables
    assert not show("table-main", results, [names[0], names[2]]).findings


def test_no_p_gives_the_ratio(results):
    side = {"p": 0.6, "ratio": 1.1, "p of 1.25": None}
    results.add("iwslt15.en-zh.bpe-dropout.base.seed1", "calibration", src=side, tgt=side)
    cell = cells(show("table-p", results))["p = 0.6 Chinese, IWSLT15 En-Zh", "p for a ratio of 1.25"]
    assert (cell.text, cell.verdict, cell.commands) == ("none", "", [])


def test_what_is_measured_of_dropout_alone_has_no_rows_for_bpe(results):
    names = runs("demo.en-fr", ("bpe", "bpe-dropout"), "small")
    results.add(names[1], "unknown", src={"share": 0.001, "p": 0.1}, tgt={"share": 0.002, "p": 0.1})
    (table,) = show("table-unknown", results, names).tables
    assert table.columns == ["text", "share of unknown pieces"]
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["English, demo En-Fr, 1k pieces, p = 0.1", "0.00100"],
        ["French, demo En-Fr, 1k pieces, p = 0.1", "0.00200"],
    ]


def test_misspelled_rows_and_their_difference(results):
    for method, original, misspelled in (("bpe", 27.0, 24.0), ("bpe-dropout", 28.0, 26.5)):
        results.add(f"wmt14.en-de.{method}.base.seed1", bleu=original)
        results.add(f"wmt14.en-de.{method}.base.seed1", "misspelled", bleu=misspelled)
    part = show("table-misspelled", results)
    found = cells(part)
    assert found["En-De original", "difference"].text == "+1.00"
    assert found["En-De misspelled", "difference"].text == "+2.50"
    assert found["En-De misspelled", "difference"].paper == "+1.58"
    assert found["En-Fr (16m) misspelled", "BPE-dropout"].commands[0] == (
        "make misspelled.wmt14.en-fr.16m.bpe-dropout-src.base.seed1"
    )
    assert [finding.verdict for finding in part.findings] == ["undecided"] * 2, "most rows are missing"
    assert part.findings[1].why == "4 of 16 runs"
    assert part.findings[1].numbers == "+1.00, then +2.50"
    names = runs("demo.en-fr", ("bpe", "bpe-dropout"), "small")
    for name, original, misspelled in zip(names, (27.0, 28.0), (24.0, 26.5), strict=True):
        results.add(name, bleu=original)
        results.add(name, "misspelled", bleu=misspelled)
    own = cells(show("table-misspelled", results, names))
    assert [cell.text for (row, _), cell in own.items() if "misspelled" in row] == ["24.00", "26.50", "+2.50"]


def test_a_row_is_compared_on_its_own_test_set(results):
    """BPE-dropout is better on misspelled input; on the test set as it is they are not told apart."""
    names = runs("wmt14.en-de", ("bpe", "bpe-dropout"))
    scores = dict(zip(names, (27.0, 28.0), strict=True))
    for testset, p in (("test", 0.3), ("misspelled", 0.001)):
        for name, bleu in scores.items():
            results.add(name, testset, bleu=bleu)
        results.compare("wmt14.en-de.base.seed1", scores, {(names[0], names[1]): p}, testset)
    found = cells(show("table-misspelled", results))
    marked = {row: [found[row, column].best for column in ("BPE", "BPE-dropout")] for row, _ in found if "En-De" in row}
    assert marked == {"En-De original": [True, True], "En-De misspelled": [False, True]}


def test_a_curve_over_p(results):
    """Dropout on one side, and with a rule, has no place on it."""
    scores = {"bpe": 30.0, "bpe-dropout-rare": 8.0, "bpe-dropout": 31.0, "bpe-dropout-p80": 2.0, "bpe-dropout-src": 9.0}
    for method, bleu in scores.items():
        results.add(f"demo.en-fr.{method}.small.seed1", bleu=bleu)
    names = runs("demo.en-fr", tuple(scores), "small")
    part = show("figure-p", results, names)
    assert [block.name for block in part.blocks] == ["figure-p", "figure-p-values"]
    text = svg(part.drawings[0].figure)
    assert 'id="curve-0"' in text
    assert "demo En-Fr, 1k pieces (small, seed 1)" in text
    assert [[cell.text for cell in row.cells] for row in part.tables[0].rows] == [
        ["0", "30.00"],
        ["0.1", "31.00"],
        ["0.8", "2.00"],
    ]


def test_curves_over_size(results):
    for name, pairs, bleu in (
        ("demo.en-fr", 16000, 30.0),
        ("demo.en-fr.3k", 3000, 20.0),
        ("demo.en-fr.v500", 16000, 28.0),
    ):
        results.add(f"{name}.bpe.small.seed1", bleu=bleu, text={"train": {"pairs": pairs}})
    names = [f"{name}.bpe.small.seed1" for name in ("demo.en-fr", "demo.en-fr.3k", "demo.en-fr.v500")]
    part = show("figure-size", results, names)
    (table,) = part.tables
    assert table.columns == ["sentence pairs", "BPE, 500", "BPE, 1k"]
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["3k", "–", "20.00"],
        ["16k", "28.00", "30.00"],
    ]
    lines = {line.get_label(): line.get_xydata().tolist() for line in part.drawings[0].figure.axes[0].get_lines()}
    assert lines == {"BPE, 500": [[16000, 28.0]], "BPE, 1k": [[3000, 20.0], [16000, 30.0]]}


def test_calibration_has_a_row_a_language(results):
    side = {"p": 0.1, "ratio": 1.24, "p of 1.25": 0.104}
    other = {"p": 0.6, "ratio": 2.0, "p of 1.25": 0.3}
    results.add("iwslt15.en-zh.bpe-dropout.base.seed1", "calibration", src=side, tgt=other)
    results.add("software.en-ja.bpe-dropout.small.seed1", "calibration", src=side, tgt=other)
    p = cells(show("table-p", results))["p = 0.6 Chinese, IWSLT15 En-Zh", "p for a ratio of 1.25"]
    assert (p.text, p.paper) == ("0.300", ""), "the paper prints no ratio for a language"
    (table,) = show("table-p", results, ["software.en-ja.bpe-dropout.small.seed1"]).tables
    assert "Japanese, software En-Ja, 4k / 8k pieces, p = 0.6" in [row.cells[0].text for row in table.rows]


# The study: means over seeds, and what counts as found.


def study_main(results, gains: dict[int, float], p: float = 0.001) -> None:
    """All of the study's main results: BPE, Kudo's method a little above it, and BPE-dropout further above by seed."""
    for direction in ("en-de", "de-en", "en-fr", "fr-en"):
        for seed, gain in gains.items():
            names = [f"multi30k.{direction}.5k.{method}.small.seed{seed}" for method in SYSTEMS]
            scores = dict(zip(names, (20.0 + seed, 20.1 + seed, 20.0 + seed + gain), strict=True))
            for name, bleu in scores.items():
                results.add(name, bleu=bleu)
            pairs = {(names[0], names[1]): 0.4, (names[0], names[2]): p, (names[1], names[2]): p}
            results.compare(f"multi30k.{direction}.5k.small.seed{seed}", scores, pairs)


def test_a_cell_is_the_mean_over_seeds_with_the_smallest_and_the_largest(results):
    study_main(results, {1: 1.0, 2: 2.0, 3: 1.5})
    part = show("study-main", results)
    cell = cells(part)["En-De", "BPE-dropout"]
    assert (cell.text, cell.spread, cell.best, cell.commands) == ("23.50", "22.00 to 24.50", True, [])
    assert not cells(part)["En-De", "BPE"].best
    note = "En-De: Kudo (2018) − BPE = +0.10 (p = 0.400, 0.400, 0.400), BPE-dropout − BPE = +1.50 (p = 0.001, 0.001, "
    assert part.tables[0].notes[0].startswith(note)
    assert [finding.verdict for finding in part.findings] == ["reproduced", "reproduced", "undecided"]
    assert part.findings[2].why == "not found in 12 of 12"
    assert part.findings[0].numbers == "+1.50; so in 4 of 4, significantly in 4"


@pytest.mark.parametrize(
    ("gains", "p", "verdict", "why"),
    [
        ({1: 1.0, 2: 2.0, 3: 1.5}, 0.2, "undecided", "not found in 12 of 12"),
        ({1: 1.0, 2: 2.0, 3: -1.5}, 0.001, "undecided", "not found in 4 of 12"),
        ({1: -1.0, 2: -2.0, 3: -1.5}, 0.001, "not reproduced", "the opposite in 4 of 4"),
        ({1: 1.0}, 0.001, "undecided", "8 of 24 runs"),
    ],
)
def test_a_difference_counts_if_it_is_significant_for_each_seed_and_seeds_agree(results, gains, p, verdict, why):
    study_main(results, gains, p)
    finding = show("study-main", results).findings[0]
    assert finding.verdict == verdict
    assert finding.why.startswith(why)


def test_runs_that_were_not_compared_say_so(results):
    """A group is compared when all of it is there, and BPE-dropout may be there before Kudo's method."""
    study_main(results, {1: 1.0, 2: 2.0, 3: 1.5})
    for path in results.folder.glob("comparisons/*.de-en.*"):
        path.unlink()
    finding = show("study-main", results).findings[0]
    assert (finding.verdict, finding.why) == ("undecided", "not compared")


def test_differences_are_of_the_seeds_that_both_have(results):
    for seed, bleu in enumerate((25.0, 28.0, 28.0), 1):
        results.add(f"multi30k.en-de.5k.bpe.small.seed{seed}", bleu=bleu)
        results.add(f"multi30k.en-de.5k.bpe.small.seed{seed}", "misspelled", bleu=bleu - 5)
    results.add("multi30k.en-de.5k.bpe-dropout.small.seed1", bleu=26.5)
    results.add("multi30k.en-de.5k.bpe-dropout.small.seed1", "misspelled", bleu=22.5)
    assert show("study-main", results).findings[0].numbers == "+1.50"
    found = cells(show("study-misspelled", results))
    assert [found[f"En-De {name}", "difference"].text for name in ("original", "misspelled")] == ["+1.50", "+2.50"]


def test_a_claim_up_to_a_size_does_not_wait_for_larger_ones(results):
    item = read_items(CONFIGS)["figure-size"]
    rows = [row for row in item.rows if row.at <= 4_000_000]
    for row, _, (run,) in item.cells(CONFIGS):
        if row in rows:
            results.add(run.name, bleu=20.0 if ".bpe." in run.name else 21.0)
    whys = {finding.name: finding.why for finding in show("figure-size", results).findings}
    assert whys["few"] == "not compared"


def test_a_training_that_ended_at_the_limit_is_named(results):
    study_main(results, {1: 1.0})
    run = "multi30k.en-de.5k.bpe-dropout.small.seed1"
    results.add(run, bleu=22.0, training={"stopped": "at the limit"})
    notes = show("study-main", Results(results.folder)).tables[0].notes
    assert f"Trained until the limit of updates, and may not have converged: {run}." in notes


def test_a_measurement_of_another_training_is_named(results):
    run = "multi30k.en-de.5k.bpe.small.seed1"
    results.add(run, bleu=22.0, generation={"model": "one"})
    results.add(run, "embeddings", model="one", precision=0.1)
    notes = other_models([(run, "embeddings")], results)
    assert notes == []
    results.add(run, "embeddings", model="another", precision=0.1)
    notes = other_models([(run, "embeddings")], Results(results.folder))
    assert notes == [f"Measured on another training with the same settings than the one that was scored: {run}."]


def test_seeds_that_are_missing_are_counted_in_the_cell(results):
    study_main(results, {1: 1.0, 2: 2.0})
    cell = cells(show("study-main", results))["En-De", "BPE"]
    assert (cell.text, cell.spread, cell.verdict) == ("21.50", "2 of 3 seeds", "")
    assert cell.commands == ["make multi30k.en-de.5k.bpe.small.seed3"]


def test_every_seed_that_is_missing_is_listed(results):
    study_main(results, {1: 1.0})
    assert len(show("study-main", results).missing) == 24


class Plain:
    """Numbers for each of some seeds, where every difference is significant, or there is no test."""

    def __init__(self, *grids, places=(0.1, 0.2), groups=("", ""), p=0.001, is_tested=True):
        self.grids, self.places, self.groups, self.p, self.is_tested = grids, places, groups, p, is_tested

    @property
    def seeds(self):
        return range(len(self.grids))

    def runs(self, claim):
        return 1, 1

    def of_seed(self, seed):
        return Plain(self.grids[seed], places=self.places, groups=self.groups)

    def fewest_seeds(self, claim):
        return len(self.grids)

    def has_test(self, claim):
        return self.is_tested

    def resampled(self, cell, seed):
        """All cells change together, and much; by themselves they hardly do, if differences are significant."""
        together, alone = np.random.default_rng(seed), np.random.default_rng(zlib.crc32(repr(cell).encode()))
        noise = 10 * together.normal(size=1000) + alone.normal(size=1000) * (0.001 if self.p < 0.05 else 10)
        return np.concatenate([[self.grids[seed][cell]], self.grids[seed][cell] + noise])

    def title(self, row):
        return f"row {row}"

    def seeds_of(self, claim):
        return self.seeds

    def tests(self, first, second):
        p = self.p if self.is_tested else math.nan
        return [Test(seed, grid[first] - grid[second], p) for seed, grid in enumerate(self.grids)]

    def column(self, name, claim=None):
        found = {row: value for (row, one), value in self.grids[0].items() if one == name}
        if not found or None in found.values():
            raise Missing
        rows = [row for row in found if claim is None or is_about(claim, self.groups[row], self.places[row])]
        return {row: found[row] for row in rows}


def claim(check: str, of: list[str], **settings) -> Claim:
    return Claim("", "", check, of, **settings)


GRID = {(0, "a"): 3.0, (0, "b"): 1.0, (1, "a"): 5.0, (1, "b"): 6.0}


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (claim("higher", ["a", "b"]), "not reproduced"),
        (claim("higher", ["a", "b"], rows=1), "reproduced"),
        (claim("higher", ["a", "b"], at=0.1), "reproduced"),
        (claim("peak", ["a"], at=0.2), "reproduced"),
        (claim("peak", ["a"], at=0.1), "not reproduced"),
        (claim("fails", ["b"], at=0.2), "not reproduced"),
        (claim("wider", ["b", "a"]), "reproduced"),
        (claim("wider", ["a", "b"]), "not reproduced"),
        (claim("slower", ["a"], at=1.4), "reproduced"),
        (claim("slower", ["a", "b"], at=2), "not reproduced"),
        (claim("close", ["b", "a"], at=1.2), "reproduced"),
        (claim("close", ["a", "b"], at=1.2), "not reproduced"),
        (claim("first", ["a", "b"]), "reproduced"),
        (claim("last", ["b", "a"]), "reproduced"),
        (claim("last", ["a", "b"]), "not reproduced"),
        (claim("shrinks", ["a", "b"]), "reproduced"),
        (claim("shrinks", ["b", "a"]), "not reproduced"),
        (claim("narrower", ["a", "a", "a", "b"]), "reproduced"),
        (claim("narrower", ["a", "b", "a", "a"]), "not reproduced"),
        (claim("about", ["a"], at=4.0, within=1.0), "reproduced"),
        (claim("about", ["a"], at=4.0, within=0.9), "not reproduced"),
    ],
)
def test_claims(claim, expected):
    assert check(claim, Plain(GRID, GRID, GRID)).text == expected
    assert describe(claim, Plain(GRID))


@pytest.mark.parametrize(
    "claim",
    [
        claim("higher", ["a", "c"]),
        claim("higher", ["a", "b"], rows=3),
        claim("peak", ["a"], at=0.3),
        claim("peak", ["d"], at=0.1),
        claim("fails", ["b"], at=0.9),
        claim("last", ["d", "a"]),
        claim("slower", ["d"], at=2),
        claim("shrinks", ["d", "a"]),
        claim("wider", ["d", "a"]),
    ],
)
def test_claims_that_cannot_be_checked(claim):
    figures = Plain({**GRID, (0, "d"): 1.0})
    assert check(claim, figures).text == "not run"


@pytest.mark.parametrize(("name", "of"), [("wider", "ba"), ("shrinks", "ab"), ("narrower", "aaab")])
def test_differences_between_differences(name, of):
    """They are found as other differences are: by a bootstrap for each seed, and if seeds agree."""
    one = claim(name, list(of))
    other = {**GRID, (0, "a"): 1.0, (1, "a"): 9.0, (1, "b"): 9.0 if name == "narrower" else 1.0}
    if name == "narrower":
        other = {**GRID, (0, "a"): 1.0, (1, "a"): 6.0}
    assert check(one, Plain(GRID)) == Verdict("reproduced", "one seed")
    assert check(one, Plain(GRID, GRID)) == Verdict("reproduced")
    for figures in (Plain(GRID, other), Plain(GRID, p=0.5)):
        found = check(one, figures)
        assert (found.text, found.why[:13]) == ("undecided", "not found in ")
    assert check(claim("slower", ["a"], at=1.4), Plain(GRID)).text == "reproduced", "a limit needs no test"


def test_distances_have_no_sign():
    """The vocabulary matters in both rows, for one size in one direction, for the other in the other."""
    crossed = {(0, "a"): 3.0, (0, "b"): 1.0, (1, "a"): 1.0, (1, "b"): 3.0}
    assert check(claim("narrower", list("aaab")), Plain(crossed)).text == "reproduced"
    assert check(claim("narrower", list("abaa")), Plain(crossed)).text == "not reproduced"


@pytest.mark.parametrize(("further", "verdict"), [(9, "not reproduced"), (29, "undecided")])
def test_one_pair_of_rows_against_a_claim_of_two_must_be_surer(further, verdict):
    """p is 0.01 or 0.03 where the gain becomes smaller; in the other pair it becomes larger."""
    grid = {(0, "a"): 2.0, (1, "a"): 1.0, (2, "a"): 1.0, (3, "a"): 2.0} | {(row, "b"): 0.0 for row in range(4)}
    figures = Plain(grid, places=[None] * 4, groups=[""] * 4)
    figures.resampled = lambda cell, seed: np.array(
        [grid[cell]] * (1001 - further) + [grid[cell] - 4 * (cell == (1, "a"))] * further
    )
    assert check(claim("wider", ["a", "b"]), figures).text == verdict


def test_pairs_of_rows_stay_together_where_some_are_missing(results):
    for seed, direction in itertools.product((1, 2, 3), ("en-de", "de-en")):
        for method, testset, bleu in (
            ("bpe", "test", 20.0), ("bpe-dropout", "test", 21.0),
            ("bpe", "misspelled", 10.0), ("bpe-dropout", "misspelled", 15.0),
        ):  # fmt: skip
            if (direction, method, testset) != ("en-de", "bpe-dropout", "misspelled"):
                results.add(f"multi30k.{direction}.5k.{method}.small.seed{seed}", testset, bleu=bleu)
    found = {one.name: one for one in show("study-misspelled", results).findings}
    assert found["wider"].numbers == "+1.00, then +5.00"


def test_a_row_that_has_seeds_of_its_own():
    """Those that all cells have count."""
    figures = Plain(GRID, GRID)
    whole = figures.resampled

    def resampled(cell, seed):
        if seed == 1 and cell == (0, "a"):
            raise Missing
        return whole(cell, seed)

    figures.resampled = resampled
    assert check(claim("shrinks", ["a", "b"]), figures).text == "reproduced"


def test_a_gain_that_is_larger_on_misspelled_input(results):
    """Of results as they are scored: with their BLEU on resampled test sets."""
    plan = plan_run(Run.parse("multi30k.en-de.5k.bpe.small.seed1"))
    references = [f"the old house is number {number} of {number % 7} in a street" for number in range(200)]
    # Half of the lines are wrong in all of them, so that only paired tests find the small differences.
    lines_of = {
        name: ["a horse" if number % 2 or number < wrong else line for number, line in enumerate(references)]
        for name, wrong in (("good", 4), ("fair", 24), ("bad", 60))
    }
    found = {name: score(plan, lines, references)["bleu"] for name, lines in lines_of.items()}
    resampled = {
        name: write_scores(resample(bleu_of(plan), tokenization_of(plan), lines, references))
        for name, lines in lines_of.items()
    }
    directions = ("en-de", "de-en", "en-fr", "fr-en")
    for worse, verdict in (("bad", "reproduced"), ("good", "not reproduced"), ("fair", "undecided")):
        for direction, seed in itertools.product(directions, (1, 2, 3)):
            run = f"multi30k.{direction}.5k.{{}}.small.seed{seed}"
            cells = {("bpe", "test"): "fair", ("bpe-dropout", "test"): "good",
                     ("bpe", "misspelled"): worse, ("bpe-dropout", "misspelled"): "good"}  # fmt: skip
            for (method, testset), name in cells.items():
                more = {"bleu": found[name], "resampled bleu": resampled[name]}
                results.add(run.format(method), testset, **more)
        part = show("study-misspelled", Results(results.folder))
        assert {one.name: one.verdict for one in part.findings}["wider"] == verdict
    results.add(run.format("bpe"), "misspelled", bleu=found["bad"])
    part = show("study-misspelled", Results(results.folder))
    assert {one.name: one.why for one in part.findings}["wider"] == "not compared", "it has no resampled scores"


def test_a_limit_of_rows_that_have_seeds_of_their_own(results):
    """Those that all cells have count, and a claim of which everything was run is not called one that was not."""
    item = ITEMS["study-translations"]
    rows = [dataclasses.replace(row, seeds=[1] if row.title == "En-De" else []) for row in item.rows]
    for _, _, found in dataclasses.replace(item, rows=rows).cells(CONFIGS):
        for run in found:
            pieces = 10000 + 500 * ("dropout" in run.name)
            results.add(run.name, bleu=30.0, generation={"pieces": pieces}, training={})
    part = build(dataclasses.replace(item, rows=rows), results, CONFIGS, [])
    assert [(one.verdict, one.why, one.numbers) for one in part.findings] == [("reproduced", "one seed", "1.05 times")]


def test_which_of_two_systems_has_more_where_there_is_no_test():
    """Of four rows and three seeds, ten differences of twelve must have the same sign; a row alone says nothing."""
    higher = {(row, name): value for row in range(4) for name, value in (("a", 2.0), ("b", 1.0))}
    but_one = {**higher, (0, "a"): 0.0}
    above = claim("higher", ["a", "b"])
    for grids, verdict in (
        ((higher, higher, higher), "reproduced"),
        ((higher, but_one, but_one), "reproduced"),
        ((but_one, but_one, but_one), "undecided"),
        ((higher,), "undecided"),
    ):
        figures = Plain(*grids, places=[None] * 4, groups=[""] * 4, is_tested=False)
        assert check(above, figures).text == verdict
        below = check(claim("higher", ["b", "a"]), figures).text
        assert below == {"reproduced": "not reproduced"}.get(verdict, verdict)


def test_one_row_against_a_claim_of_several_must_be_surer():
    """GRID has one row for each side."""
    assert check(claim("higher", ["a", "b"]), Plain(GRID, GRID, p=0.02)) == Verdict(
        "not reproduced", "the opposite in 1 of 2: row 1 (-1.00)"
    )
    assert check(claim("higher", ["a", "b"]), Plain(GRID, GRID, p=0.03)).text == "undecided"
    three = {(0, "a"): 3.0, (1, "a"): 5.0, (2, "a"): 2.0}
    for p, verdict in ((0.02, "not reproduced"), (0.03, "undecided")):
        figures = Plain(three, places=(0.1, 0.2, 0.3), groups=[""] * 3, p=p)
        assert check(claim("peak", ["a"], at=0.1), figures).text == verdict
        assert check(claim("peak", ["a"], at=0.2), figures).text == "reproduced"


def test_a_row_of_fewer_seeds_does_not_refute_what_others_leave_open():
    """Seeds of one system may be further apart than two systems are."""
    surely, open_ = -4.0, Test(1, 0.1, 0.4)
    assert decide({"a": [Test(1, surely, 0.001)], "b": [open_]}).sign == -1
    assert decide({"a": [Test(1, surely, 0.001)], "b": [open_, open_]}).sign == 0
    assert decide({"a": [Test(1, surely, 0.001)] * 2, "b": [open_, open_]}).sign == -1


def test_the_opposite_in_all_rows():
    """It is found by the rule by which the claim is; one row alone must be surer."""
    lower = {(row, name): value for row in range(2) for name, value in (("a", 1.0), ("b", 2.0))}
    for grids, p, verdict in (
        ((lower, lower), 0.03, Verdict("not reproduced", "the opposite in 2 of 2: row 0 (-1.00); row 1 (-1.00)")),
        ((lower,), 0.03, Verdict("not reproduced", "the opposite in 2 of 2: row 0 (-1.00); row 1 (-1.00); one seed")),
        ((lower, GRID), 0.03, "undecided"),
        ((lower, lower), 0.06, "undecided"),
    ):
        found = check(claim("higher", ["a", "b"]), Plain(*grids, p=p))
        assert found == verdict if isinstance(verdict, Verdict) else found.text == verdict
    assert check(claim("higher", ["b", "a"]), Plain(lower, lower, p=0.03)) == Verdict("reproduced")


def test_a_limit_that_some_seeds_keep():
    close = claim("close", ["a", "b"], at=1.1)
    near, far = {(0, "a"): 1.0, (0, "b"): 1.0}, {(0, "a"): 1.2, (0, "b"): 1.0}
    assert check(close, Plain(near, far, near)) == Verdict("undecided", "so with 2 of 3 seeds, not with seed 1")
    assert check(close, Plain(near, near)) == Verdict("reproduced")
    assert check(close, Plain(far, far)) == Verdict("not reproduced")


def test_a_verdict_of_one_seed_says_so():
    grid = {(0, "a"): 3.0, (0, "b"): 1.0}
    assert check(claim("higher", ["a", "b"]), Plain(grid)) == Verdict("reproduced", "one seed")
    assert check(claim("higher", ["b", "a"]), Plain(grid)) == Verdict("not reproduced", "one seed")
    assert check(claim("higher", ["a", "b"]), Plain(grid, grid, grid)) == Verdict("reproduced")


def test_a_claim_of_a_group_of_rows():
    figures = Plain(GRID, groups=("with spaces", "without"))
    assert check(claim("about", ["a"], at=3.0, within=0.1, where="with spaces"), figures).text == "reproduced"
    assert check(claim("about", ["a"], at=3.0, within=0.1, where="without"), figures).text == "not reproduced"


def test_the_numbers_of_a_claim():
    both = "-1.00 to +2.00; so in 1 of 2, significantly in 1, the opposite in 1"
    assert describe(claim("higher", ["a", "b"]), Plain(GRID)) == both
    assert describe(claim("wider", ["b", "a"]), Plain(GRID), 1) == "-2.0, then +1.0"
    assert describe(claim("peak", ["a"], at=0.1), Plain(GRID)) == "best of 2 at 0.2: 5.00; at 0.1: 3.00"
    assert describe(claim("higher", ["a", "c"]), Plain(GRID)) == ""


def test_a_model_that_fails_with_high_p():
    grid = {(0, "a"): 30.0, (1, "a"): 7.0}
    fails = claim("fails", ["a"], at=0.8)
    assert check(fails, Plain(grid, places=(0.1, 0.8))).text == "reproduced"
    assert check(fails, Plain({**grid, (1, "a"): 8.0}, places=(0.1, 0.8))).text == "not reproduced"
    with pytest.raises(InputError, match="there is no check nix"):
        check(claim("nix", []), Plain(grid))


def test_strangers_records_are_refused(results):
    results.add("iwslt15.en-vi.bpe.base.seed1", bleu=1.0)
    path = results.folder / "iwslt15.en-vi.bpe.base.seed1.json"
    path.rename(results.folder / "iwslt15.vi-en.bpe.base.seed1.json")
    with pytest.raises(InputError, match=r"is not the record of iwslt15.vi-en.bpe.base.seed1"):
        show("table-main", results)
    path = results.folder / "iwslt15.vi-en.bpe.base.seed1.json"
    path.write_text('{"run": "iwslt15.vi-en.bpe.base.seed1"}')
    with pytest.raises(InputError, match="has no bleu: it was made by another version"):
        show("table-main", type(results)(results.folder))
    path.write_text('{"run"')
    with pytest.raises(InputError, match="is not JSON"):
        show("table-main", type(results)(results.folder))


def test_markdown_and_latex(results):
    results.add("iwslt15.en-vi.bpe.base.seed1", bleu=31.5)
    table = show("table-main", results).tables[0]
    lines = markdown.render_table(table).split("\n")
    assert lines[2] == "|  | BPE | Kudo (2018) | BPE-dropout |"
    assert "| En-Vi | 31.50 (paper 31.78, -0.28, agrees) | 32.43 | **33.27** |" in lines
    assert {line.count(" | ") for line in lines if line.startswith("| ")} == {3}
    tex = latex.render_table(table)
    assert r"En-Vi & 31.50 (31.78) & -- (32.43) & -- (\textbf{33.27}) \\" in tex
    assert r"\multicolumn{4}{l}{\textbf{WMT14}} \\" in tex
    assert tex.count(r"\begin") == tex.count(r"\end")
    assert tex.count("{") == tex.count("}")


def test_a_table_of_which_nothing_was_run_has_the_papers_numbers(results):
    part = show("table-main", results)
    (table,) = part.tables
    assert table.is_papers_alone
    assert (part.fill, part.needs) == ("make fill-table-main", "its corpora and a GPU")
    tex = latex.render_table(table)
    assert r"En-Vi & 31.78 & 32.43 & \textbf{33.27} \\" in tex
    assert "The numbers are those of Provilkov et al. (2020)." in tex
    assert show("table-datasets", results).needs == "its corpora", "nothing is trained to count text"
    results.add("iwslt15.en-vi.bpe.base.seed1", bleu=31.5)
    assert not show("table-main", type(results)(results.folder)).tables[0].is_papers_alone
    verdicts = Table("table-x", "x", ["", "verdict"], [Row([Cell("x"), Cell(verdict="not run")])])
    assert not verdicts.is_papers_alone, "it has no number of the paper"


def test_long_text_is_broken_into_lines():
    table = Table("table-x", "x", ["", "a", "b"], [Row([Cell("x"), Cell("long " * 20), Cell("1")])])
    assert r"\begin{tabular}{lp{0.80\textwidth}c}" in latex.render_table(table)
    table = Table("table-x", "x", ["", "a"], [Row([Cell("long " * 20), Cell("1")])], notes=["p < 5% (`make x`)."])
    tex = latex.render_table(table)
    assert r"\begin{tabular}{p{0.80\textwidth}c}" in tex
    assert r"{\footnotesize p < 5\% (\texttt{make x}).\par}" in tex


def test_text_is_escaped():
    assert markdown.render_cell(Cell("a|b*")) == r"a\|b\*"
    assert latex.render_cell(Cell("50% & _x_ ↔ {}")) == r"50\% \& \_x\_ $\leftrightarrow$ \{\}"
