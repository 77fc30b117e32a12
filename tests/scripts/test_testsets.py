"""Test sets: their files, what is wrong with one, and the data folder that a model translates."""

import pytest

from bpe_dropout import InputError
from scripts.testsets import CHANGES, TEST, TestSet, change_folder, find_testsets, place, read_testset


def test_the_test_set_as_it_is_and_the_papers_misspelled_one():
    assert find_testsets() == ["misspelled", "test"]
    assert read_testset(TEST).apply(["as it is"]) == (["as it is"], {})
    assert read_testset("misspelled").settings == {"rate": 0.1, "seed": 1}


def test_where_files_are(tmp_path):
    assert place(tmp_path, TEST) == tmp_path
    assert place(tmp_path, "misspelled") == tmp_path / "misspelled"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("mine", "change: nix", "mine.yaml, line 1: there is no change nix; there are misspell"),
        ("mine", "change: misspell", "line 1: the settings of the change are rate, seed, not none"),
        ("mine", "settings: {rate: 0.1}", "line 1: the settings of the change are none, not rate"),
        ("mine", "change: misspell\nsettings: {rate: often, seed: 1}", "rate is a number, not 'often'"),
        ("mine", "change: misspell\nsettings: {rate: 0.1, seed: 1.5}", "seed is a whole number, not 1.5"),
        ("timing", "", "timing.yaml: a test set is named .* not as a measurement is"),
        ("comparisons", "", "comparisons.yaml: a test set is named"),
        ("a.b", "", "a.b.yaml: a test set is named in lowercase letters"),
        ("other", "", "there is no test set mine in .*testsets; there are other"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, name, text, message):
    (tmp_path / "testsets").mkdir()
    (tmp_path / "testsets" / f"{name}.yaml").write_text(f"title: mine\ntext: of my own\n{text}\n")
    with pytest.raises(InputError, match=message):
        read_testset("mine", tmp_path)


def shout(lines: list[str], *, mark: str) -> tuple[list[str], dict[str, int]]:
    return [line.upper() + mark for line in lines], {"shouted": len(lines)}


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "data"
    made.mkdir()
    for name in ("codes.en", "dict.en.txt", "train.en-de.en", "valid.en-de.en", "test.en-de.en.words"):
        (made / name).write_text(name)
    (made / "test.en-de.en").write_text("a line\nand\u2028another\n")
    (made / "test.en-de.de").write_text("eine zeile\nund noch eine\n")
    return made


def test_the_folder_of_a_change_of_ones_own(tmp_path, folder, monkeypatch):
    """A new change is one function, which CHANGES names."""
    monkeypatch.setitem(CHANGES, "shout", shout)
    testset = TestSet("loud", "shouted", change="shout", settings={"mark": " !"})
    output = tmp_path / "made"
    assert change_folder(testset, folder, output, "en") == (output, {"name": "shout", "mark": " !", "shouted": 2})
    assert {path.name for path in output.iterdir()} == {"codes.en", "dict.en.txt", "test.en-de.en", "test.en-de.de"}
    assert (output / "test.en-de.en").read_text() == "A LINE !\nAND\u2028ANOTHER !\n"
    assert (output / "test.en-de.de").read_text() == (folder / "test.en-de.de").read_text(), "references stay"
    change_folder(testset, folder, output, "de")
    assert (output / "test.en-de.de").read_text() == "EINE ZEILE !\nUND NOCH EINE !\n", "the other direction"


def test_without_a_change_it_is_the_folder_itself(tmp_path, folder):
    assert change_folder(read_testset(TEST), folder, tmp_path / "made", "en") == (folder, {})
    assert not (tmp_path / "made").exists()


def test_a_change_keeps_the_number_of_lines(monkeypatch):
    monkeypatch.setitem(CHANGES, "halve", lambda lines: (lines[::2], {}))
    with pytest.raises(InputError, match="halve made 1 lines of 2"):
        TestSet("half", "every other line", change="halve").apply(["a", "b"])
