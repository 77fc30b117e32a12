"""configs/paper against the paper itself, where its source is at hand, and against what can be run."""

import itertools
import re
import shutil

import pytest

from bpe_dropout import InputError
from experiments.analysis.grid import build
from experiments.analysis.results import Results
from scripts.corpora import CONFIGS, ROOT
from scripts.measures import MEASURES
from scripts.paper import Agreement, fill, read_items, study
from scripts.runs import find_targets, plan_run
from scripts.testsets import find_testsets

ITEMS = {name: item for name, item in read_items().items() if not item.is_study}
STUDY = {name: item for name, item in read_items().items() if item.is_study}
TEX = ROOT.parent / "shared" / "paper" / "bpe-dropout.tex"


@pytest.fixture(scope="module")
def tex() -> str:
    if not TEX.is_file():
        pytest.skip("needs the source of the paper, ../shared/paper/bpe-dropout.tex, which is not here")
    return TEX.read_text()


def table_of(tex: str, label: str) -> list[list[tuple[float | None, bool]]]:
    """The rows of a table: numbers, and whether they are bold; None for a dash."""
    end = tex.index(rf"\label{{{label}}}")
    body = tex[tex.rindex(r"\begin{tabular}", 0, end) : end].split(r"\midrule", 1)[1].split(r"\bottomrule")[0]
    body = body.replace("{.}", ".").replace(r"\!", "")
    rows = []
    for line in re.split(r"\\\\", re.sub(r"\\multicolumn\{.*?\}\{l\}\{.*?\}", "", body)):
        cells = []
        for cell in line.split("&"):
            found = re.fullmatch(r"\s*(\\bf\{)?\s*(\d+(?:\.\d+)?|-)\s*\}?\s*", cell)
            if found:
                cells.append((None if found[2] == "-" else float(found[2]), bool(found[1])))
        if cells:
            rows.append(cells)
    return rows


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("table-main", "tab:main"),
        ("table-one-side", "tab:one_side"),
        ("table-time", "tab:timing"),
        ("table-misspelled", "tab:misspell"),
        ("table-batches-main", "tab:num_steps_main"),
        ("table-batches-one-side", "tab:num_steps_one_side"),
        ("table-cased", "tab:main_no_lowersace"),
    ],
)
def test_numbers_are_the_papers(tex, name, label):
    item = ITEMS[name]
    ours = [[(row.paper.get(column), column in row.best) for column in item.columns] for row in item.rows]
    assert ours == table_of(tex, label)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("table-unknown", r"make up 0{.}00585 and 0{.}00085 of all tokens for 32k and 4k vocabularies"),
        ("table-neighbours", r"have higher character 4-gram precision~(0.29) compared to the precision of BPE~(0.18)"),
    ],
)
def test_numbers_in_the_text_are_the_papers(tex, name, sentence):
    assert sentence in tex
    numbers = set(re.findall(r"0\.\d+|1\.25", sentence.replace("{.}", ".")))
    ours = {f"{value:g}" for row in ITEMS[name].rows for value in row.paper.values()}
    assert numbers - {"0.1"} <= ours


def test_what_the_paper_says_in_words_is_not_shown_as_its_number(tex):
    assert r"with $p=0{.}1$,  on average about 1{.}25 times longer" in tex
    assert r"for Chinese and Japanese, we need to set the value of $p$ to $0{.}6$ to achieve the same" in tex
    for name in ("figure-lengths", "table-p"):
        assert not any(row.paper for row in ITEMS[name].rows)
        assert "about" in ITEMS[name].text


def test_every_table_and_figure_of_the_paper_is_there(tex):
    figures = len(re.findall(r"\\begin\{figure\*?\}", tex))
    tables = len(re.findall(r"\\begin\{table\*?\}", tex))
    sections = " ".join(item.section for item in ITEMS.values())
    assert {f"Figure {n}" for n in range(1, figures + 1)} <= set(re.findall(r"Figure \d+", sections))
    assert {f"Table {n}" for n in range(1, tables + 1)} <= set(re.findall(r"Table \d+", sections))
    assert sections.count("footnote") == 2


def test_every_cell_can_be_run():
    for item in ITEMS.values():
        for row, _, (run,) in item.cells():
            plan = plan_run(run)
            assert run.model == "base", f"{item.name}: only Transformer base is the paper's"
            assert not item.measure or MEASURES[item.measure].takes(plan)
            assert row.testset in find_testsets()
            assert plan.corpus.paper or run.dataset == "wmt14"


def test_cells_are_what_the_targets_run():
    known = find_targets()
    main = {run for _, _, (run,) in ITEMS["table-main"].cells()}
    assert main == set(known["paper"].runs)
    assert {run for _, _, (run,) in ITEMS["table-one-side"].cells()} == set(known["wmt14-en-fr"].runs)
    cased = {run.name for name, target in known.items() if name.endswith("-cased") for run in target.runs}
    assert {run.name for _, _, (run,) in ITEMS["table-cased"].cells()} == cased


def test_a_vocabulary_that_is_the_corpus_own_is_not_named():
    names = [run.name for _, _, (run,) in ITEMS["figure-size"].cells()]
    assert "wmt14.en-fr.250k.bpe.base.seed1" in names
    assert "wmt14.en-fr.250k.v32000.bpe.base.seed1" in names
    assert "wmt14.en-fr.4m.v4000.bpe-dropout.base.seed1" in names
    assert not any(".250k.v4000" in name or ".4m.v32000" in name for name in names)
    assert len(names) == len(set(names)) == 30


@pytest.mark.parametrize("name", [name for name, item in ITEMS.items() if item.claims])
def test_the_papers_claims_hold_of_its_own_numbers(name, results):
    """With its numbers as ours, each as significant as the paper says: they differ where one alone is bold. What it
    prints no numbers for cannot be checked so; the checks themselves are tested elsewhere."""
    item = ITEMS[name]
    scale = item.scale
    for row in item.rows:
        names = {}
        for column, value in row.paper.items():
            (names[column],) = (run.name for found, one, (run,) in item.cells() if found is row and one == column)
            record = {item.number: value / scale} if "/" not in item.number else {}
            more = {"repeats": 1, "machine": "one"} if item.measure == "timing" else {}
            results.add(names[column], item.record_of(row), **record, **more)
        scores = {names[column]: value for column, value in row.paper.items()}
        pairs = {
            (names[one], names[two]): 0.5 if row.best and {one, two} <= set(row.best) else 0.001
            for number, one in enumerate(names)
            for two in list(names)[number + 1 :]
        }
        if item.number == "bleu" and len(names) > 1:
            results.compare(f"{row.group} {row.title}", scores, pairs, row.testset)
    for finding in build(item, results, CONFIGS, []).findings:
        expected = "reproduced" if item.rows[0].paper else "not run"
        expected = SPECIAL.get((name, finding.name), expected)
        assert finding.verdict == expected, finding.text


# One run each, as the paper has them, cannot show that differences differ; nor can one pair of numbers without a test.
SPECIAL = {
    ("table-misspelled", "wider"): "undecided",
    ("table-neighbours", "precision"): "undecided",
}


@pytest.mark.parametrize(
    ("ours", "verdict"), [(33.27, "agrees"), (33.77, "agrees"), (32.3, "near"), (34.27, "near"), (30, "differs")]
)
def test_verdicts(ours, verdict):
    assert Agreement(agrees=0.5, near=1.0).verdict(ours, 33.27) == verdict


def test_relative_verdicts():
    assert [Agreement(0.1, 0.3, relative=True).verdict(ours, 200) for ours in (185, 230, 120)] == [
        "agrees",
        "near",
        "differs",
    ]


# The study.


def test_every_cell_of_the_study_can_be_run_on_a_cpu():
    for item in STUDY.values():
        for row, _, runs in item.cells():
            assert len({run.name for run in runs}) == len(row.seeds or item.seeds)
            for run in runs:
                plan = plan_run(run)
                assert not plan.model.gpu
                assert not item.measure or MEASURES[item.measure].takes(plan)


def test_the_study_is_what_was_planned():
    """Main results first, seed by seed: then what is made of their models, and the other parts."""
    target = study()
    names = [run.name for run in target.runs]
    main = [run for run in target.runs[:36]]
    assert {run.direction for run in main} == {"en-de", "de-en", "en-fr", "fr-en"}
    assert [run.seed for run in main] == sorted(run.seed for run in main)
    assert names[36:40] == [
        f"multi30k.{one}.5k.unigram-words.small.seed1" for one in ("en-de", "de-en", "en-fr", "fr-en")
    ]
    assert len(names) == len(set(names)) == 84 + 24 + 8
    rates = target.runs[84:108]
    assert {(run.direction, run.seed) for run in rates} == set(itertools.product(("en-de", "de-en"), (1, 2, 3)))
    assert {run.method.removeprefix("bpe-dropout") for run in rates} == {"", "-rare", "-frequent", "-annealed"}
    systems = itertools.product(("2500", "5k"), ("bpe", "bpe-dropout-src", "bpe-dropout-tgt", "bpe-dropout"))
    assert names[108:] == [f"multi30k.en-fr.{pairs}.{method}.patient.seed1" for pairs, method in systems]
    one_side = [name for name in names[:84] if "bpe-dropout-src" in name or "bpe-dropout-tgt" in name]
    assert len(one_side) == 6 + 2 * 2
    assert {run.p for run in target.runs[:84] if run.p and run.dataset == "multi30k"} == {5, 20, 30, 50, 70, 90}
    assert "tatoeba.ja-en.10k.bpe-dropout-p39-10.small.seed1" in names
    assert len([name for name in names if ".v500." in name or ".v4000." in name]) == 16
    misspelled = [group for group in target.groups if group.testset == "misspelled"]
    assert len(misspelled) == 4 * 3
    assert {measure for measure, _ in target.measures} == set(MEASURES)


def test_claims_of_the_study_are_the_papers():
    paper = {(name, claim.name) for name, item in ITEMS.items() for claim in item.claims}
    asked = {(item.of, one.name) for item in STUDY.values() if item.of for one in item.claims if not one.is_ours}
    assert asked <= paper
    cannot = {("table-one-side", "large"), ("figure-size", "kudo-few"), ("figure-size", "kudo-many")}
    twice = {("figure-lengths", "about")}  # the table of p asks it
    not_said = {("table-batches-main", "more")}  # by the paper, which prints the numbers
    assert paper - asked == cannot | twice | not_said, "no corpus is so large, and Kudo's method has no such models"


def test_what_a_table_of_the_study_takes_from_the_papers(tmp_path):
    configs = tmp_path / "configs"
    shutil.copytree(CONFIGS, configs)
    path = configs / "study" / "main.yaml"
    item = read_items(configs)["study-main"]
    assert (item.title, list(item.columns)) == (ITEMS["table-main"].title, list(ITEMS["table-main"].columns))
    assert [(claim.name, claim.rows, claim.is_ours) for claim in item.claims] == [
        ("above-bpe", None, False),
        ("above-kudo", 3, False),
        ("kudo", None, True),
    ]
    assert item.agreement is None, "the paper's numbers are of other models"
    text = path.read_text()
    for wrong, sentence in (
        (
            "  above-nix: {rows: 3}",
            r"claims changes those of table-main by name, and it has none named \['above-nix'\]",
        ),
        ("  above-nix: text", r"it has none named \['above-nix'\]"),
        ("  above-kudo: {rows: 0}", "claims.rows is a whole number from 1 on, not 0"),
    ):
        read_items.cache_clear()
        path.write_text(re.sub("  above-kudo: .*", wrong, text))
        with pytest.raises(InputError, match=sentence):
            read_items(configs)
    read_items.cache_clear()
    path.write_text(text.replace("of: table-main", "of: table-nix"))
    with pytest.raises(InputError, match=r"main.yaml, line 2: there is no table-nix in"):
        read_items(configs)


def test_fill_runs_what_a_table_needs():
    target = fill("table-misspelled", [])
    assert not target.measures
    assert "wmt14.en-fr.16m.bpe-dropout-src.base.seed1" in {run.name for run in target.runs}
    assert [(group.testset, len(group.runs)) for group in target.groups] == [("test", 2)] * 4 + [("misspelled", 2)] * 4
    assert [group.runs for group in target.groups[:4]] == [group.runs for group in target.groups[4:]]
    lengths = fill("figure-lengths", [])
    assert [measure for measure, _ in lengths.measures] == ["lengths"]
    assert len(lengths.runs) == 2, "and the models whose translations are shown"
    assert fill("table-unknown", [], seed=2).measures[0][1].seed == 2
    datasets = fill("table-datasets", [])
    assert not datasets.runs, "to count text nothing is trained"
    assert [run.name for _, run in datasets.measures][::5] == [
        "iwslt15.en-vi.bpe.base.seed1",
        "aspec.en-ja.bpe.base.seed1",
    ]


def test_fill_for_runs_of_ones_own():
    target = fill("report", ["demo.en-fr.bpe.small.seed1", "demo.en-fr.bpe-dropout.small.seed1"])
    assert {run.name for run in target.runs_and_measured} == {
        "demo.en-fr.bpe.small.seed1",
        "demo.en-fr.bpe-dropout.small.seed1",
    }
    beyond_the_paper = {"several"}
    assert {measure for measure, _ in target.measures} == set(MEASURES) - beyond_the_paper
    assert ("lengths", target.runs[0]) not in target.measures, "BPE has no dropout to measure"


def test_a_new_test_set_in_a_new_table_is_two_yaml_files(tmp_path):
    configs = tmp_path / "configs"
    shutil.copytree(CONFIGS, configs)
    (configs / "testsets" / "garbled.yaml").write_text(
        "title: garbled\ntext: every word misspelled\nchange: misspell\nsettings: {rate: 1, seed: 2}\n"
    )
    (configs / "paper" / "table-garbled.yaml").write_text(
        "order: 99\ntitle: mine\nsection: none\ntext: none\ncolumns:\n  bpe: {title: BPE}\n"
        "rows:\n  - {title: a, run: demo.en-fr.bpe.small.seed1, testset: garbled}\n"
    )
    (group,) = fill("table-garbled", [], configs).groups
    assert (group.testset, group.name) == ("garbled", "demo.en-fr.small.seed1")
    own = ["multi30k.en-de.bpe.small.seed1", "multi30k.en-de.unigram.small.seed1"]
    (group,) = fill("table-garbled", own, configs).groups
    assert (group.testset, [run.name for run in group.runs]) == ("garbled", own)
    item = read_items(configs)["table-garbled"]
    part = build(item, Results(tmp_path), configs, own)
    assert part.tables[0].rows[0].cells[1].commands == ["make garbled.multi30k.en-de.bpe.small.seed1"]


def test_what_fill_cannot_do():
    with pytest.raises(InputError, match="there is no table or figure table-nix; there are study-main"):
        fill("table-nix", [])
    with pytest.raises(InputError, match="figure-merges needs no runs of its own"):
        fill("figure-merges", [])


def test_mistakes_are_said_with_their_place(tmp_path):
    folder = tmp_path / "paper"
    folder.mkdir()
    file = folder / "table-mine.yaml"
    head = "order: 1\ntitle: mine\nsection: none\ntext: none\n"
    file.write_text(head + "columns:\n  bpe: {title: BPE}\nrows:\n  - {title: a, run: x, paper: {nix: 1.0}}\n")
    with pytest.raises(InputError, match=r"table-mine.yaml, line 1: row a: there is no column nix"):
        read_items(tmp_path)
    row = "columns:\n  bpe: {title: BPE}\nrows:\n  - {title: a, run: demo.en-fr.bpe.small.seed1, testset: nix}\n"
    file.write_text(head + row)
    (item,) = read_items(tmp_path).values()
    with pytest.raises(InputError, match=r"table-mine.yaml, row a: there is no test set nix in .*; there are none"):
        list(item.cells(tmp_path))
    read_items.cache_clear()
    file.write_text(head + "measure: timing\n" + row)
    with pytest.raises(InputError, match="row a: timing is measured, and not on the test set nix"):
        read_items(tmp_path)
    file.write_text(head + "measure: nix\n")
    with pytest.raises(InputError, match="there is no measure nix; there are datasets"):
        read_items(tmp_path)
    file.write_text(head + "columns:\n  bpe: {title: BPE}\nrows:\n  - {title: a, run: x, paper: {bpe: 1.0}}\n")
    shutil.copytree(CONFIGS / "testsets", tmp_path / "testsets")
    (item,) = read_items(tmp_path).values()
    with pytest.raises(InputError, match=r"table-mine.yaml, row a: x is not the name of a run"):
        list(item.cells(tmp_path))
    file.rename(folder / "mine.yaml")
    read_items.cache_clear()
    with pytest.raises(InputError, match=r"the name of the file is table-NAME.yaml or figure-NAME.yaml"):
        read_items(tmp_path)
