import dataclasses
import re
import shutil

import pytest

from bpe_dropout import InputError
from scripts.corpora import CONFIGS, read_downloads
from scripts.kept import comparison_of, result_of
from scripts.paper import fill
from scripts.reproduce import goals, merge, split
from scripts.reproduce import main as reproduce
from scripts.runs import MAIN, Run, find_target, find_targets, plan_run, read_model
from scripts.showing import is_trained, plans_of, show_left, show_list, show_results
from scripts.stage import write_json

NAMES = [
    "iwslt15.en-vi.bpe-dropout.base.seed1",
    "wmt14.en-fr.500k.cased.v32000.bpe-dropout-src-p30.base.seed12",
    "iwslt17.ar-en.cased.unigram.base.seed3",
    "demo.en-fr.3k.bpe.small.seed1",
    "wmt14.en-fr.16m.v4000.bpe-dropout-p0.base.seed1",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_says_all_of_a_run(name):
    run = Run.parse(name)
    assert run.name == name
    assert Run.parse(run.name) == run


@pytest.mark.parametrize("name", ["iwslt15.en-vi", "iwslt15.en-vi.bpe.base", "iwslt15.en-vi.bpe.base.seed", "../x"])
def test_what_is_no_name_of_a_run(name):
    with pytest.raises(InputError, match="is not the name of a run"):
        Run.parse(name)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("iwslt15.en-de.bpe.base.seed1", "there is no corpus of iwslt15 with en-de"),
        ("iwslt15.en-vi.250k.bpe.base.seed1", "iwslt15.en-vi has no subset 250k; there are none"),
        ("iwslt15.en-vi.bpe-p10.base.seed1", "p is for a method with dropout"),
        ("iwslt15.en-vi.bpe-dropout-p110.base.seed1", "from 0 to 100"),
        ("iwslt15.en-vi.bpe.huge.seed1", "there is no huge in .*models; there are base, patient, small"),
        ("iwslt15.en-vi.other.base.seed1", "there is no other in .*methods; there are bpe, bpe-dropout"),
    ],
)
def test_runs_that_cannot_be(name, sentence):
    with pytest.raises(InputError, match=sentence):
        plan_run(Run.parse(name))


def test_settings_that_a_name_changes():
    plan = plan_run(Run.parse("wmt14.en-fr.500k.cased.v32000.bpe-dropout-src-p30.base.seed1"))
    assert plan.vocabularies == {"en": 32000, "fr": 32000}
    assert plan.dropout == {"src": 0.3, "tgt": 0.0}
    assert plan.folder == "wmt14.en-fr.500k.cased.bpe.en32000-fr32000"
    assert plan.preparation == {"normalize": False, "tokenize": True, "lowercase": False}


def test_what_a_corpus_does_not_say_is_the_models():
    model = read_model("small")
    plan = plan_run(Run.parse("multi30k.en-de.bpe.small.seed1"))
    assert (plan.batch, plan.updates, plan.interval) == (model.batch, model.updates, model.interval)


def test_a_model_of_another_differs_in_what_it_says(tmp_path):
    small, patient = read_model("small"), read_model("patient")
    other = {"title": patient.title, "patience": 24, "usual_updates": patient.usual_updates}
    assert patient == dataclasses.replace(small, **other)
    plans = [plan_run(Run.parse(f"multi30k.en-fr.5k.bpe.{model}.seed1")) for model in ("small", "patient")]
    assert plans[0].settings() != plans[1].settings(), "a result of one is no result of the other"
    models = shutil.copytree(CONFIGS / "models", tmp_path / "models")
    for of, sentence in {
        "none": "patient.yaml, line 2: there is no none in .*models; there are base, patient, small",
        "patient": "patient.yaml, line 2: .*patient.yaml is itself `of` another: name a model that says all",
    }.items():
        (models / "patient.yaml").write_text(f"title: of another\nof: {of}\n")
        with pytest.raises(InputError, match=sentence):
            read_model("patient", tmp_path)
    (models / "patient.yaml").write_text("of: small\n")
    text = (models / "small.yaml").read_text()
    (models / "small.yaml").write_text(text.replace("batch: 1000", "batch: 0"))
    with pytest.raises(InputError, match=r"small\.yaml, line \d+: batch is a whole number from 1 on"):
        read_model("patient", tmp_path)


def test_targets_are_the_papers():
    targets = find_targets()
    directions = [
        f"{dataset}-{first}-{second}"
        for dataset, pairs in {
            "iwslt15": ["vi", "zh"],
            "iwslt17": ["fr", "ar"],
            "wmt14": ["de"],
            "aspec": ["ja"],
        }.items()
        for other in pairs
        for first, second in (("en", other), (other, "en"))
    ]
    assert len(directions) == 12
    for name in directions:
        (group,) = targets[name].groups
        assert [run.method for run in group.runs] == ["bpe", "unigram", "bpe-dropout"]
        assert {run.model for run in group.runs} == {"base"}
        assert f"{group.runs[0].dataset}-{group.runs[0].direction}" == name
    whole = [run for name in MAIN for run in targets[name].runs]
    assert sorted(run.name for run in whole) == sorted(run.name for name in directions for run in targets[name].runs)
    assert targets["paper"].runs == whole
    assert [len(group.runs) for group in targets["wmt14-en-fr"].groups] == [4, 4, 4, 4, 3]
    assert len(targets["iwslt17-cased"].runs) == 8


def test_all_targets_can_be_planned_and_listed():
    listed = show_list(CONFIGS)
    for target in find_targets().values():
        assert f"\n{target.name} " in listed
        assert len(set(goals(target))) == len(goals(target))
        for run in target.runs:
            plan_run(run)


@pytest.fixture
def with_wrong_files(tmp_path):
    """The configs of the project, but that IWSLT15 En-Zh cannot be read and the demo cannot be planned."""
    configs = tmp_path / "configs"
    shutil.copytree(CONFIGS, configs)
    for name, old, new in (("iwslt15.en-zh", "batch: 4000", "batch: -1"), ("demo.en-fr", "{bpe: 5000,", "{bpe: 5001,")):
        path = configs / "corpora" / f"{name}.yaml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    return configs


def test_targets_need_the_files_of_their_own_corpora_alone(with_wrong_files):
    for name in ("iwslt15-en-vi", "iwslt15-vi-en-cased", "wmt14", "multi30k-en-de", NAMES[0]):
        assert find_target(name, with_wrong_files) == find_target(name)
    for name in ("iwslt15-en-zh", "iwslt15-zh-en", "iwslt15", "iwslt15-cased", "paper", "iwslt15.zh-en.bpe.base.seed1"):
        with pytest.raises(
            InputError, match=r"iwslt15\.en-zh\.yaml, line \d+: training\.base\.batch is a whole number"
        ):
            find_target(name, with_wrong_files)
    assert read_downloads(with_wrong_files).items() <= read_downloads().items(), "the graph reads these"
    with pytest.raises(InputError, match=r"there is no target iwslt15en-zh(.|\n)*not read: .*iwslt15\.en-zh\.yaml"):
        find_target("iwslt15en-zh", with_wrong_files)


def test_the_list_names_files_that_are_wrong(with_wrong_files):
    listed = show_list(with_wrong_files)
    assert "\niwslt15-en-vi " in listed
    assert "\niwslt15-en-zh " not in listed
    assert "iwslt15.en-zh.yaml, line" in listed
    assert "left out: demo.en-fr.3k.bpe.small.seed1: 5001 updates are not a multiple of the 250 between" in listed


@pytest.mark.parametrize(
    ("kind", "old", "new", "sentence"),
    [
        ("models/small", "patience: 6", "patience: -1", "patience is a whole number from 0 on, not -1"),
        (
            "models/small",
            "patience_share: 0.0",
            "patience_share: 25",
            "patience_share is a number from 0 to 1, not 25",
        ),
        ("models/small", "tokens_a_second: 6000", "tokens_a_second: 0", "tokens_a_second is a number above 0, not 0"),
        ("models/small", "interval: 250", "interval: 0", "interval is a whole number from 1 on, not 0"),
        ("models/small", "gpu: false", "gpu: no", "gpu is true or false, not 'no'"),
        ("models/small", "stops_by: [bleu]", "stops_by: [ter]", "stops_by is one of bleu, loss, not 'ter'"),
        (
            "models/small",
            "averages: best",
            "averages: first",
            "averages is one of latest, best, not 'first'",
        ),
    ],
)
def test_numbers_that_are_out_of_range(tmp_path, kind, old, new, sentence):
    shutil.copytree(CONFIGS, tmp_path / "configs")
    path = tmp_path / "configs" / f"{kind}.yaml"
    text = path.read_text()
    assert f"\n{old}" in text
    path.write_text(text.replace(f"\n{old}", f"\n{new}"))
    with pytest.raises(InputError) as error:
        plan_run(Run.parse("multi30k.en-de.unigram.small.seed1"), tmp_path / "configs")
    line = text[: text.index(f"\n{old}") + 1].count("\n") + 1
    assert str(error.value) == f"{path}, line {line}: {sentence}"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("{nbest: 0}", "--unigram-nbest: from 1 to 512 best segmentations, not 0"),
        ("{nbest: many}", "unigram_nbest is not 'many'"),
        ("{unit: line}", "unit is word or sentence, not line"),
        ("{best: 64}", "unigram has no option best; there are alpha, nbest, unit"),
    ],
)
def test_options_of_a_method_are_the_methods_own(tmp_path, options, sentence):
    shutil.copytree(CONFIGS, tmp_path / "configs")
    path = tmp_path / "configs" / "methods" / "unigram.yaml"
    path.write_text(f"title: mine\nkind: unigram\ndraws: [src]\noptions: {options}\n")
    with pytest.raises(InputError) as error:
        plan_run(Run.parse("multi30k.en-de.unigram.small.seed1"), tmp_path / "configs")
    assert str(error.value) == f"{path}, line 1: {sentence}"


def test_a_target_by_its_name_or_a_run_by_its_own():
    (group,) = find_target("iwslt15-en-vi", seed=7).groups
    assert {run.seed for run in group.runs} == {7}
    assert comparison_of(group).name == "bpe+unigram+bpe-dropout.json"
    assert find_target(NAMES[1]).runs == [Run.parse(NAMES[1])]
    with pytest.raises(InputError, match="no target iwslt15-en-vn; did you mean iwslt15-en-vi"):
        find_target("iwslt15-en-vn")


def test_runs_of_one_group_differ_in_their_method_alone():
    run = Run.parse(NAMES[0])
    assert dataclasses.replace(run, method="bpe").group == run.group
    assert dataclasses.replace(run, seed=2).group != run.group


def test_a_target_of_several_seeds():
    one, other = (find_target("iwslt15", seed=seed) for seed in (1, 2))
    both = merge([one, other])
    assert both.runs == [*one.runs, *other.runs]
    assert sorted(goals(both)) == sorted([*goals(one), *goals(other)])
    assert {run.group for group in both.groups for run in group.runs} == {
        f"iwslt15.{pair}.base.seed{seed}" for pair in ("en-vi", "vi-en", "en-zh", "zh-en") for seed in (1, 2)
    }
    run = find_target(NAMES[0], seed=1)
    assert merge([run, find_target(NAMES[0], seed=2)]) == run, "a run has its seed in its name"


def test_what_can_be_done_without_files_that_are_missing():
    paper = find_target("paper")
    possible, left = split(paper, plans_of(paper, CONFIGS), {"ASPEC-JE/dev/dev.txt"})
    assert {run.dataset for run in left} == {"aspec"}
    assert (len(left), len(possible.runs)) == (6, 30)
    assert split(possible, plans_of(possible, CONFIGS), {"ASPEC-JE/dev/dev.txt"}) == (possible, [])
    said = show_left(paper, left, [InputError("put it there")])
    assert said.startswith("Left out for missing files, 6 of the 36 runs of paper:\n  aspec.en-ja.bpe.base.seed1\n")
    assert "put it there\nWith them in place, `make paper` does the rest." in said


def test_what_all_of_it_costs():
    listed = show_list(CONFIGS).split("\n")
    (paper,) = (line for line in listed if line.startswith("paper "))
    (report,) = (line for line in listed if line.startswith("fill-report "))
    assert paper.split("directions")[1].split()[0] == "36"
    assert paper.endswith("1718.3 h of a GPU")
    assert int(report.split("need")[1].split()[0]) > 90
    target = fill("table-datasets", [], CONFIGS)
    assert not any(is_trained(target, run) for run in target.runs_and_measured), "text is counted without training"


def test_seeds_are_whole_numbers():
    with pytest.raises(InputError, match="SEED is a whole number from 0"):
        reproduce(["plan", "multi30k-en-de", "--seed", "-1"])


def test_a_target_that_is_like_no_other():
    with pytest.raises(InputError, match=r"there is no target xyzzy\. `make list` shows"):
        find_target("xyzzy")


def test_downloads_stay_below_their_folder(tmp_path):
    shutil.copytree(CONFIGS, tmp_path / "configs")
    path = tmp_path / "configs" / "corpora" / "multi30k.en-de.yaml"
    path.write_text(path.read_text().replace("multi30k/train.en.gz", "../../multi30k/train.en.gz"))
    with pytest.raises(InputError, match=r"the download ../../multi30k/train.en.gz is not a file below data/downloads"):
        plan_run(Run.parse("multi30k.en-de.bpe.small.seed1"), tmp_path / "configs")


def test_an_experiment_names_what_it_is_compared_on():
    target = find_targets()["demo"]
    assert [group.testset for group in target.groups] == ["test", "misspelled"]
    assert len(target.runs) == 2, "each is trained once"
    assert [group.testset for group in find_targets()["multi30k-en-de"].groups] == ["test"]


def write_results(target, **more):
    """Of a target's runs and groups, in this folder: 20.5 BLEU for the first, 21.75 for the second."""
    for group in target.groups:
        for number, run in enumerate(group.runs):
            ratios = {"src": 1 + number / 10, "tgt": None}
            score = {"bleu": 20.5 + number * 1.25, "chrf": 40.0, "updates": 4000, "length ratios": ratios, **more}
            write_json(result_of(run, group.testset), {"bleu signature": "nrefs:1", **score})
        first, second = (run.name for run in group.runs)
        pair = {"systems": [first, second], "difference": 1.25, "p": 0.01, "significant": True}
        write_json(comparison_of(group), {"best": [second], "pairs": [pair]})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("here")
def test_one_table_has_all_test_sets_and_a_note():
    target = dataclasses.replace(find_target("demo"), note="What to read from it.")
    write_results(target)
    table, note, where = show_results(target, CONFIGS).split("\n\n")
    name, head, *rows, signature, stars = table.splitlines()
    assert name == target.groups[0].name
    assert [re.split("  +", row.strip()) for row in (head, *rows)] == [
        ["test set", "method", "BLEU", "chrF", "updates", "src ratio", "tgt ratio", "against the first"],
        *(
            row
            for title in ("original", "misspelled")
            for row in (
                [title, "bpe", "20.50", "40.00", "4000", "1.000"],
                ["*", title, "bpe-dropout", "21.75", "40.00", "4000", "1.100", "+1.25, p = 0.010, significant"],
            )
        ),
    ]
    assert (signature, stars[:10]) == ("nrefs:1", "* the best")
    assert note == "What to read from it."
    assert where.startswith("translations")


@pytest.mark.usefixtures("here")
def test_a_table_of_the_test_set_as_it_is_names_none():
    target = find_target("demo")
    for testset, head in (("test", ["method", "BLEU"]), ("misspelled", ["test set", "method"])):
        one = dataclasses.replace(target, groups=(dataclasses.replace(target.groups[0], testset=testset),), note="")
        write_results(one)
        table, _ = show_results(one, CONFIGS).split("\n\n")
        assert re.split("  +", table.splitlines()[1].strip())[:2] == head
        result_of(one.runs[1], testset).unlink()
        assert re.search("bpe-dropout +not finished", show_results(one, CONFIGS))
