"""What a target means where it is a measurement, a test set or a table, and what Snakemake is asked for."""

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path

import pytest

from bpe_dropout import InputError
from experiments.analysis.results import Results
from scripts.corpora import CONFIGS
from scripts.kept import (
    RESULTS,
    finished,
    is_current,
    keep_results,
    measured_of,
    products,
    records,
    result_of,
    translations_of,
)
from scripts.measures import MEASURES
from scripts.reproduce import goals, is_slurm, resolve, run_quietly, runs_left, snakemake
from scripts.runs import AT_THE_LIMIT, Run, plan_run
from scripts.slurm import partition_minutes, wait_for_jobs

RUN = "demo.en-fr.bpe-dropout.small.seed1"


def options(command: str = "run") -> argparse.Namespace:
    return argparse.Namespace(command=command, profile="local", configs=CONFIGS, directory=Path())


def test_what_makes_a_profile_one_of_slurm(tmp_path):
    """Not its name."""
    assert (is_slurm("local"), is_slurm("slurm")) == (False, True)
    for name, text in (("cluster", "executor: slurm\n"), ("no-slurm", "cores: all\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(text)
    assert (is_slurm(str(tmp_path / "cluster")), is_slurm(str(tmp_path / "no-slurm"))) == (True, False)
    with pytest.raises(InputError, match="there is no profile nix: it is one of local, slurm, or a folder"):
        is_slurm("nix")


def test_a_slurm_that_does_not_answer(tmp_path, monkeypatch):
    """Its jobs may be running: to go on would train a second time. Limits are not known then, and that is all."""
    for name in ("squeue", "sinfo"):
        (tmp_path / name).write_text("#!/bin/sh\necho timed out >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("scripts.slurm.POLL", 0)
    with pytest.raises(InputError, match=r"squeue does not answer: timed out\. Call this again when Slurm does"):
        wait_for_jobs(tmp_path)
    assert partition_minutes(None) is None
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(InputError, match="squeue cannot be started"):
        wait_for_jobs(tmp_path)


def test_a_measurement_by_its_name():
    target = resolve(f"unknown.{RUN}", [], CONFIGS, 1)
    assert not target.runs
    assert [run.name for run in target.runs_and_measured] == [RUN]
    assert goals(target) == [f"experiments/measures/unknown/{RUN}.json"]
    assert resolve(RUN, [], CONFIGS, 1).runs == [Run.parse(RUN)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("unknown.demo.en-fr.bpe.small.seed1", "unknown is measured of a run with BPE-dropout"),
        ("lengths.demo.en-fr.bpe-dropout-rare-p30.small.seed1", "lengths is measured of a run with BPE-dropout, one p"),
        ("merges.demo.en-fr.unigram.small.seed1", "merges is measured of a run with BPE, and"),
        ("lengths.demo.en-xx.bpe-dropout.small.seed1", "there is no corpus of demo with en-xx"),
        ("nix.demo.en-fr.bpe.small.seed1", "is not the name of a run"),
        ("fill-nix", "there is no table or figure nix"),
    ],
)
def test_what_cannot_be_measured(name, message):
    with pytest.raises(InputError, match=message):
        resolve(name, [], CONFIGS, 1)


def test_what_is_measured_of_which_methods():
    taken = {
        method: {
            name for name, one in MEASURES.items() if one.takes(plan_run(Run.parse(f"demo.en-fr.{method}.small.seed1")))
        }
        for method in ("bpe", "unigram", "bpe-dropout", "bpe-dropout-src")
    }
    of_any = {"datasets", "embeddings", "several", "timing"}
    assert taken["unigram"] == of_any
    assert taken["bpe"] == {*of_any, "merges"}
    assert taken["bpe-dropout"] == taken["bpe-dropout-src"] == set(MEASURES)


def test_a_test_set_by_its_name():
    target = resolve(f"misspelled.{RUN}", [], CONFIGS, 1)
    assert goals(target) == [f"experiments/runs/{RUN}/misspelled/result.json"]
    assert [run.name for run in target.runs_and_measured] == [RUN]
    assert goals(resolve(f"test.{RUN}", [], CONFIGS, 1)) == goals(resolve(RUN, [], CONFIGS, 1))


def test_groups_are_compared_on_each_test_set():
    runs = ["demo.en-fr.bpe.small.seed1", RUN]
    found = goals(resolve("fill-table-misspelled", runs, CONFIGS, 1))
    assert found == [
        *(f"experiments/runs/{run}/result.json" for run in runs),
        *(f"experiments/runs/{run}/misspelled/result.json" for run in runs),
        "experiments/comparisons/demo.en-fr.small.seed1/bpe+bpe-dropout.json",
        "experiments/comparisons/demo.en-fr.small.seed1/misspelled/bpe+bpe-dropout.json",
    ]


def test_what_is_asked_for_by_name_is_measured_again(monkeypatch):
    target = resolve(f"embeddings.{RUN}", [], CONFIGS, 1)
    assert "--forcerun" not in snakemake(target, options(), [])
    monkeypatch.setenv("TOKENS", "the and")
    command = snakemake(target, options(), [])
    assert command[command.index("--forcerun") + 1] == goals(target)[0]
    assert "--forcerun" not in snakemake(resolve(f"lengths.{RUN}", [], CONFIGS, 1), options(), [])


def test_what_lacks_only_a_measurement_is_trained_last():
    """A model that was trained on another machine, and is trained again. A result on another test set is no less a
    result."""
    target = resolve("study", [], CONFIGS, 1)
    first, second, third, *_ = target.runs
    lacking = {measured_of("several", first), result_of(second, "misspelled")}
    done = [path for path, (_, run) in records(target).items() if run in (first, second) and path not in lacking]
    left = runs_left(target, done)
    assert left[:2] == [second, third]
    assert left.index(first) > max(map(left.index, target.runs[2:]))


def test_results_are_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = resolve("fill-table-misspelled", ["demo.en-fr.bpe.small.seed1", RUN], CONFIGS, 1)
    of = records(target)
    for goal in goals(target):
        content = {"goal": goal}
        if Path(goal) in of:
            testset, run = of[Path(goal)]
            plan = plan_run(run)
            content |= {"configuration": plan.settings(), "scoring": plan.scoring(testset)}
        Path(goal).parent.mkdir(parents=True, exist_ok=True)
        Path(goal).write_text(json.dumps(content))
        if goal.endswith("result.json"):
            Path(goal).with_name("test.txt").write_text(f"translations of {goal}\n")
    keep_results(target, CONFIGS)
    assert json.loads(Path(f"experiments/results/misspelled/{RUN}.json").read_text())["goal"] == (
        f"experiments/runs/{RUN}/misspelled/result.json"
    )
    assert Path(f"experiments/results/misspelled/translations/{RUN}.txt").read_text() == (
        f"translations of experiments/runs/{RUN}/misspelled/result.json\n"
    )
    kept = sorted(str(path.relative_to("experiments/results")) for path in Path("experiments/results").rglob("*.json"))
    assert kept == [
        "comparisons/demo.en-fr.small.seed1.bpe+bpe-dropout.json",
        "demo.en-fr.bpe-dropout.small.seed1.json",
        "demo.en-fr.bpe.small.seed1.json",
        "misspelled/comparisons/demo.en-fr.small.seed1.bpe+bpe-dropout.json",
        "misspelled/demo.en-fr.bpe-dropout.small.seed1.json",
        "misspelled/demo.en-fr.bpe.small.seed1.json",
    ]


def test_a_result_of_other_settings_does_not_take_the_place_of_one_that_is_kept(tmp_path, monkeypatch):
    """A folder of an earlier day has it still, while the newer one came from another machine."""
    monkeypatch.chdir(tmp_path)
    target = resolve(RUN, [], CONFIGS, 1)
    ((made, kept),) = products(target).items()
    plan = plan_run(Run.parse(RUN))
    content = {"configuration": plan.settings(), "scoring": plan.scoring("test"), "bleu": 25.0}
    for path in (made, kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        translations_of(path).parent.mkdir(exist_ok=True)
        translations_of(path).write_text("ein haus\n")
    kept.write_text(json.dumps(content))
    made.write_text(json.dumps({**content, "configuration": {**plan.settings(), "seed": 2}, "bleu": 1.0}))
    keep_results(target, CONFIGS)
    assert json.loads(kept.read_text())["bleu"] == 25.0
    made.write_text(json.dumps({**content, "bleu": 26.0}))
    keep_results(target, CONFIGS)
    assert json.loads(kept.read_text())["bleu"] == 26.0


def test_an_older_result_does_not_take_the_place_of_one_that_is_kept(tmp_path, monkeypatch):
    """The kept one came from elsewhere since. One of other settings is replaced by an older one all the same."""
    monkeypatch.chdir(tmp_path)
    target = resolve(RUN, [], CONFIGS, 1)
    ((made, kept),) = products(target).items()
    plan = plan_run(Run.parse(RUN))
    content = {"configuration": plan.settings(), "scoring": plan.scoring("test"), "bleu signature": ""}
    for path, bleu in ((made, 25.0), (kept, 26.0)):
        path.parent.mkdir(parents=True, exist_ok=True)
        translations_of(path).parent.mkdir(exist_ok=True)
        translations_of(path).write_text("ein haus\n")
        path.write_text(json.dumps({**content, "bleu": bleu}))
    os.utime(made, (0, 0))
    keep_results(target, CONFIGS)
    assert json.loads(kept.read_text())["bleu"] == 26.0
    kept.write_text(json.dumps({**content, "configuration": {**plan.settings(), "seed": 2}, "bleu": 26.0}))
    keep_results(target, CONFIGS)
    assert json.loads(kept.read_text())["bleu"] == 25.0


def test_a_measurement_of_a_model_is_worth_as_much_as_its_result(tmp_path):
    """It was cut off at a limit of updates that has been raised since."""
    run = Run.parse(RUN)
    plan = plan_run(run)
    settings = {**plan.settings(), "updates at most": 7}
    result = {"run": RUN, "configuration": settings, "scoring": plan.scoring("test"), "bleu": 25.0}
    files = {
        RESULTS / f"{RUN}.json": result,
        RESULTS / "embeddings" / f"{RUN}.json": {"run": RUN, "configuration": settings},
    }
    for stopped, is_there in (("by dev bleu", True), (AT_THE_LIMIT, False)):
        result["training"] = {"stopped": stopped}
        for path, content in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(json.dumps(content))
        results = Results(tmp_path / RESULTS, CONFIGS)
        assert (results.get(RUN, "embeddings") is not None) == (results.get(RUN) is not None) == is_there
        target = dataclasses.replace(resolve(f"embeddings.{RUN}", [], CONFIGS, 1), fills=True)
        assert (measured_of("embeddings", run) in finished(target, tmp_path, CONFIGS)) == is_there


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("configuration", "batch of source tokens asked for"), 7, False),
        (("configuration", "pairs asked for"), 7, False),
        (("scoring", "change", "rate"), 0.5, False),
        (("scoring", "beam"), 5, False),
        (("scoring", "tokens of BLEU"), "char", False),
        (("configuration", "updates at most"), 7, True),  # it stopped before
        (("training", "stopped"), "at the limit", True),
    ],
)
def test_whether_a_result_is_one_of_the_settings_of_now(path, value, expected):
    plan = plan_run(Run.parse(RUN))
    content = {"configuration": plan.settings(), "scoring": plan.scoring("misspelled"), "training": {}}
    content = json.loads(json.dumps(content))
    assert is_current(content, plan, "misspelled", CONFIGS)
    assert not is_current(content, plan, "test", CONFIGS)
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert is_current(content, plan, "misspelled", CONFIGS) == expected
    if path[-1] == "updates at most":
        content["training"]["stopped"] = "at the limit"
        assert not is_current(content, plan, "misspelled", CONFIGS)


def test_results_are_kept_as_they_come(tmp_path, capfd):
    """After each step, and not only at the end, which a study of days may never see."""
    script = "print('Finished jobid: 1'); print('1 of 3 steps (33%) done'); print('2 of 3 steps (67%) done')"
    kept = []
    with (tmp_path / "lock").open("w") as lock:
        assert run_quietly([sys.executable, "-c", script], lock.fileno(), lambda: kept.append("kept")) == 0
    assert kept == ["kept"] * 2
    assert capfd.readouterr().out == "1 of 3 steps (33%) done\n2 of 3 steps (67%) done\n"


def test_a_comparison_is_kept_if_it_is_of_the_results_that_are_kept(tmp_path, monkeypatch):
    """However old it is."""
    monkeypatch.chdir(tmp_path)
    target = resolve("fill-table-main", ["demo.en-fr.bpe.small.seed1", RUN], CONFIGS, 1)
    of, made_to_kept = records(target), products(target)
    (comparison,) = set(made_to_kept) - set(of)
    scores = {}
    for made, (testset, run) in of.items():
        plan = plan_run(run)
        scores[run.name] = 20.0 + len(scores)
        content = {"configuration": plan.settings(), "scoring": plan.scoring(testset), "bleu": scores[run.name]}
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(json.dumps(content))
        made.with_name("test.txt").write_text("eine maus\n")
    comparison.parent.mkdir(parents=True)
    comparison.write_text(json.dumps({"bleu": scores, "pairs": []}))
    kept = made_to_kept[comparison]
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"bleu": {RUN: 1.0}, "pairs": []}))
    os.utime(comparison, (0, 0))
    keep_results(target, CONFIGS)
    assert json.loads(kept.read_text())["bleu"] == scores
    newer = made_to_kept[next(iter(of))]
    newer.write_text(json.dumps({**json.loads(newer.read_text()), "bleu": 30.0}))
    kept.unlink()
    keep_results(target, CONFIGS)
    assert not kept.exists(), "it is of another result than the kept one"
