"""Tables: what is in a cell, what is best, what is claimed, and what never gets into a cell of the paper's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from bpe_dropout import InputError
from experiments.analysis import latex, markdown
from experiments.analysis.claims import check
from experiments.analysis.document import Cell, ReportPart, Row, Table, verdicts
from experiments.analysis.drawing import svg
from experiments.analysis.grid import build, mark_best, paper_grid
from scripts.compare import compare
from scripts.corpora import CONFIGS
from scripts.paper import Claim, read_items

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
    assert cell.command == "make iwslt15.en-vi.bpe-dropout.base.seed1"
    assert part.fill == "make fill-table-main"
    assert len(part.tables) == 1, "nothing to stand beside it"
    assert [finding.verdict for finding in part.findings] == ["not run", "not run"]
    assert verdicts([part]) == {"agrees": 0, "near": 0, "differs": 0, "not run": 36}


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
    grid = paper_grid(ITEMS["table-main"], results, CONFIGS)
    mark_best(grid, results)
    assert [entry.best for entry in grid.lines[2].entries.values()] == [False, True, True]


def test_rows_that_were_not_compared_have_nothing_bold(results):
    for name in runs("iwslt15.en-vi"):
        results.add(name, bleu=30.0)
    table = show("table-main", results).tables[0]
    assert not any(cell.best for row in table.rows for cell in row.cells)
    assert table.notes == ["Nothing is bold in rows whose runs were not compared with each other."]


def test_other_models_and_corpora_never_stand_in_a_cell_of_the_papers(results):
    others = [*runs("iwslt15.en-vi", model="small"), *runs("demo.en-de", model="small"), *runs("multi30k.en-de")]
    others += [name.replace("seed1", "seed2") for name in runs("iwslt15.en-vi")]
    for name in others:
        results.add(name, bleu=99.0, text={"train": {"pairs": 5}}, configuration={"subset": "", "corpus": "x"})
    for name, item in ITEMS.items():
        if item.module == "grid" and not item.measure:
            grid = paper_grid(item, results, CONFIGS)
            assert not any(entry.value for entry in grid.entries), name
    part = show("table-main", results)
    assert [row.cells[0].text for row in part.tables[1].rows] == ["demo En-De, 2k pieces (small, seed 1)"]
    assert all(cell.verdict == "" and not cell.paper for row in part.tables[1].rows for cell in row.cells)


def test_runs_of_ones_own_stand_alone(results):
    names = runs("iwslt15.vi-en", ("bpe", "bpe-dropout"), "small")
    results.add(names[0], bleu=10.0)
    part = show("table-main", results, names)
    assert len(part.tables) == 1
    cell = cells(part)["iwslt15 Vi-En, 4k pieces (small, seed 1)", "BPE-dropout"]
    assert (cell.verdict, cell.command, cell.paper) == ("not run", f"make {names[1]}", "")
    assert part.fill == f'make fill-table-main RUNS="{" ".join(names)}"'
    results.add(names[1], bleu=12.5)
    part = show("table-main", type(results)(results.folder), names)
    assert not part.fill
    assert cells(part)["iwslt15 Vi-En, 4k pieces (small, seed 1)", "BPE-dropout"].text == "12.50"
    assert [finding.verdict for finding in part.findings] == ["holds"]


def test_significance_is_sacrebleus_own(results, english, tmp_path):
    """From texts to the table, against SacreBLEU's command."""
    references = english[:120]
    worse = [" ".join(line.split()[::-1]) if n % 3 == 0 else line for n, line in enumerate(references)]
    better = [" ".join(line.split()[::-1]) if n % 4 == 0 else line for n, line in enumerate(references)]
    names = runs("wmt14.en-de", ("bpe", "bpe-dropout"))
    texts = dict(zip(names, (worse, better), strict=True))
    bleu = BLEU(lowercase=True)
    scores = {name: bleu.corpus_score(text, [references]).score for name, text in texts.items()}
    for name, score in scores.items():
        results.add(name, bleu=score)
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
    assert [finding.verdict for finding in part.findings] == ["holds", "does not hold"], "2.9 is not 1.4 times 2.2"


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
    times = {"demo.en-de.bpe.small": 1.0, "demo.en-de.v500.bpe.small": 2.0, "multi30k.en-de.bpe.small": 4.0}
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


def test_claims_of_one_text_each(results):
    """Curves of two texts: each has its own verdict."""
    for text, scores in (("multi30k.en-de", (30.0, 32.0)), ("multi30k.en-fr", (50.0, 10.0))):
        for method, bleu in zip(("bpe", "bpe-dropout"), scores, strict=True):
            results.add(f"{text}.{method}.small.seed1", bleu=bleu)
    part = show(
        "figure-p", results, [f"multi30k.en-{x}.{m}.small.seed1" for x in ("de", "fr") for m in ("bpe", "bpe-dropout")]
    )
    found = {(finding.where.split(",")[0], finding.verdict) for finding in part.findings}
    assert found == {("multi30k En-De", "holds"), ("multi30k En-Fr", "does not hold")}


def test_seeds_have_curves_of_their_own(results):
    names = [f"demo.en-de.bpe.small.seed{seed}" for seed in (1, 2)]
    for name, bleu in zip(names, (32.0, 33.0), strict=True):
        results.add(name, bleu=bleu, text={"train": {"pairs": 16000}})
    table = show("figure-size", results, names).tables[0]
    assert [cell.text for cell in table.rows[0].cells] == ["16k", "32.00", "33.00"]
    assert table.columns[1] == "demo En-De (small, seed 1): BPE, 2k"


def test_runs_of_ones_own_that_were_not_run(results):
    part = show("figure-p", results, runs("demo.en-de", ("bpe", "bpe-dropout-p20"), "small"))
    assert [cell.verdict for cell in cells(part).values()] == ["not run", "not run"]
    part = show("figure-size", results, ["demo.en-de.4k.bpe.small.seed1"])
    assert cells(part)["4k", "BPE, 2k"].command == "make demo.en-de.4k.bpe.small.seed1"


def test_seeds_that_share_no_row_are_not_compared(results):
    names = ["demo.en-de.bpe.small.seed1", "demo.en-de.bpe-dropout.small.seed1", "demo.en-de.bpe-dropout.small.seed2"]
    for name in names:
        results.add(name, bleu=30.0)
        results.add(name, "misspelled", bleu=20.0)
    assert show("table-misspelled", results, names).tables
    assert not show("table-main", results, [names[0], names[2]]).findings


def test_no_p_gives_the_ratio(results):
    side = {"p": 0.6, "ratio": 1.1, "p of 1.25": None}
    results.add("iwslt15.en-zh.bpe-dropout.base.seed1", "calibration", src=side, tgt=side)
    cell = cells(show("table-p", results))["Chinese, IWSLT15 En-Zh", "p for a ratio of 1.25"]
    assert (cell.text, cell.verdict, cell.command) == ("none", "", "")


def test_what_is_measured_of_dropout_alone_has_no_rows_for_bpe(results):
    names = runs("demo.en-de", ("bpe", "bpe-dropout"), "small")
    results.add(names[1], "unknown", src={"share": 0.001, "p": 0.1}, tgt={"share": 0.002, "p": 0.1})
    (table,) = show("table-unknown", results, names).tables
    assert table.columns == ["text", "share of unknown pieces"]
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["English, demo En-De, 2k pieces, p = 0.1", "0.00100"],
        ["German, demo En-De, 2k pieces, p = 0.1", "0.00200"],
    ]


def test_misspelled_rows_and_their_difference(results):
    for method, original, misspelled in (("bpe", 27.0, 24.0), ("bpe-dropout", 28.0, 26.5)):
        results.add(f"wmt14.en-de.{method}.base.seed1", bleu=original)
        results.add(f"wmt14.en-de.{method}.base.seed1", "misspelled", bleu=misspelled)
        results.add(f"demo.en-de.{method}.small.seed1", bleu=original)
        results.add(f"demo.en-de.{method}.small.seed1", "misspelled", bleu=misspelled)
    part = show("table-misspelled", results)
    found = cells(part)
    assert found["En-De original", "difference"].text == "+1.00"
    assert found["En-De misspelled", "difference"].text == "+2.50"
    assert found["En-De misspelled", "difference"].paper == "+1.58"
    assert found["En-Fr (16m) misspelled", "BPE-dropout"].command == (
        "make misspelled.wmt14.en-fr.16m.bpe-dropout-src.base.seed1"
    )
    beside = cells(part, 1)
    assert [cell.text for (row, _), cell in beside.items() if "misspelled" in row] == ["24.00", "26.50", "+2.50"]
    assert [finding.verdict for finding in part.findings] == ["not run", "holds"]


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
    for method, bleu in (("bpe", 30.0), ("bpe-dropout", 31.0), ("bpe-dropout-p80", 2.0), ("bpe-dropout-src", 9.0)):
        results.add(f"demo.en-de.{method}.small.seed1", bleu=bleu)
    part = show("figure-p", results)
    assert [block.name for block in part.blocks] == ["figure-p-values", "figure-p-beside", "figure-p-beside-values"]
    text = svg(part.drawings[0].figure)
    assert 'id="curve-0"' in text
    assert "demo En-De, 2k pieces (small, seed 1)" in text
    table = part.tables[1]
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["0", "30.00"],
        ["0.1", "31.00"],
        ["0.8", "2.00"],
    ]
    assert [finding.verdict for finding in part.findings] == ["not run", "not run", "holds", "holds"]


def test_curves_over_size(results):
    for name, pairs, bleu in (
        ("demo.en-de", 16000, 30.0),
        ("demo.en-de.4k", 4000, 20.0),
        ("demo.en-de.v500", 16000, 28.0),
    ):
        results.add(f"{name}.bpe.small.seed1", bleu=bleu, text={"train": {"pairs": pairs}})
    part = show("figure-size", results)
    table = part.tables[1]
    assert table.columns == ["sentence pairs", "BPE, 500", "BPE, 2k"]
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["4k", "–", "20.00"],
        ["16k", "28.00", "30.00"],
    ]
    lines = {line.get_label(): line.get_xydata().tolist() for line in part.drawings[0].figure.axes[0].get_lines()}
    assert lines == {"BPE, 500": [[16000, 28.0]], "BPE, 2k": [[4000, 20.0], [16000, 30.0]]}


def test_calibration_has_a_row_a_language(results):
    side = {"p": 0.1, "ratio": 1.24, "p of 1.25": 0.104}
    other = {"p": 0.6, "ratio": 2.0, "p of 1.25": 0.3}
    results.add("iwslt15.en-zh.bpe-dropout.base.seed1", "calibration", src=side, tgt=other)
    results.add("software.en-ja.bpe-dropout.small.seed1", "calibration", src=side, tgt=other)
    part = show("table-p", results)
    found = cells(part)
    assert found["Chinese, IWSLT15 En-Zh", "ratio with the paper's p"].verdict == "differs"
    p = found["Chinese, IWSLT15 En-Zh", "p for a ratio of 1.25"]
    assert (p.text, p.paper, p.difference) == ("0.300", "0.600", "-0.300")
    assert "Japanese, software En-Ja, 4k / 8k pieces, p = 0.6" in [row.cells[0].text for row in part.tables[1].rows]


GRID = {(0, "a"): 3.0, (0, "b"): 1.0, (1, "a"): 5.0, (1, "b"): 6.0}


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (Claim("", "higher", ["a", "b"]), "does not hold"),
        (Claim("", "higher", ["a", "b"], rows=1), "holds"),
        (Claim("", "higher", ["a", "c"]), "not run"),
        (Claim("", "peak", ["a"], at=0.2), "holds"),
        (Claim("", "peak", ["a"], at=0.1), "does not hold"),
        (Claim("", "fails", ["b"], at=0.2), "does not hold"),
        (Claim("", "fails", ["b"], at=0.9), "not run"),
        (Claim("", "wider", ["b", "a"]), "holds"),
        (Claim("", "wider", ["a", "b"]), "does not hold"),
        (Claim("", "slower", ["a"], at=1.4), "holds"),
        (Claim("", "slower", ["a", "b"], at=2), "does not hold"),
        (Claim("", "close", ["b", "a"], at=1.2), "holds"),
        (Claim("", "close", ["a", "b"], at=1.2), "does not hold"),
        (Claim("", "last", ["b", "a"]), "holds"),
        (Claim("", "last", ["a", "b"]), "does not hold"),
        (Claim("", "shrinks", ["a", "b"]), "holds"),
        (Claim("", "shrinks", ["b", "a"]), "does not hold"),
        (Claim("", "narrower", ["a", "a", "a", "b"]), "holds"),
        (Claim("", "narrower", ["a", "b", "a", "a"]), "does not hold"),
    ],
)
def test_claims(claim, expected):
    assert check(claim, GRID, [0.1, 0.2]) == expected


@pytest.mark.parametrize(
    "claim",
    [
        Claim("", "higher", ["a", "c"]),
        Claim("", "higher", ["a", "b"], rows=3),
        Claim("", "peak", ["a"], at=0.3),
        Claim("", "peak", ["d"], at=0.1),
        Claim("", "last", ["d", "a"]),
        Claim("", "slower", ["d"], at=2),
        Claim("", "shrinks", ["d", "a"]),
        Claim("", "wider", ["d", "a"]),
    ],
)
def test_claims_that_cannot_be_checked(claim):
    assert check(claim, {**GRID, (0, "d"): 1.0}, [0.1, 0.2]) == "not run"


def test_a_claim_of_the_first_rows_alone():
    assert check(Claim("", "higher", ["a", "b"], at=0.1), GRID, [0.1, 0.2]) == "holds"


def test_a_model_that_fails_with_high_p():
    grid = {(0, "a"): 30.0, (1, "a"): 7.0}
    assert check(Claim("", "fails", ["a"], at=0.8), grid, [0.1, 0.8]) == "holds"
    assert check(Claim("", "fails", ["a"], at=0.8), {**grid, (1, "a"): 8.0}, [0.1, 0.8]) == "does not hold"
    with pytest.raises(InputError, match="there is no check nix"):
        check(Claim("", "nix"), grid, [])


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
    assert "| En-Vi | 31.50 (paper 31.78, -0.28, agrees) | not run (paper 32.43) | not run (paper **33.27**) |" in lines
    assert {line.count(" | ") for line in lines if line.startswith("| ")} == {3}
    tex = latex.render_table(table)
    assert r"En-Vi & 31.50 (31.78) & -- (32.43) & -- (\textbf{33.27}) \\" in tex
    assert r"\multicolumn{4}{l}{\textbf{WMT14}} \\" in tex
    assert tex.count(r"\begin") == tex.count(r"\end")
    assert tex.count("{") == tex.count("}")


def test_long_text_is_broken_into_lines():
    table = Table("table-x", "x", ["", "a", "b"], [Row([Cell("x"), Cell("long " * 20), Cell("1")])])
    assert r"\begin{tabular}{lp{0.80\textwidth}c}" in latex.render_table(table)


def test_text_is_escaped():
    assert markdown.render_cell(Cell("a|b*")) == r"a\|b\*"
    assert latex.render_cell(Cell("50% & _x_ ↔ {}")) == r"50\% \& \_x\_ $\leftrightarrow$ \{\}"
