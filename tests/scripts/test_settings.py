from dataclasses import dataclass, field

import pytest

from bpe_dropout import InputError
from scripts.corpora import CONFIGS
from scripts.settings import FAST, LOADER, Node, Positive, Share, parse, read_settings


@dataclass
class Inner:
    size: int
    share: float = 0.5


@dataclass
class Outer:
    title: str
    parts: dict[str, Inner] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    limit: Positive | None = None
    ratio: Share = 0.5
    flag: bool = False
    counts: dict[str, dict[str, Positive]] = field(default_factory=dict)


def read(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    return read_settings(path, Outer)


def test_a_file_becomes_a_dataclass(tmp_path):
    found = read(tmp_path, "title: x\nparts:\n  a: {size: 3, share: 1}\nnames: [b, c]\nlimit: 4\n")
    assert found == Outer("x", {"a": Inner(3, 1.0)}, ["b", "c"], 4)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("title: x\nparts:\n  a: {share: 1}\n", "line 3: the setting size of parts.a is missing"),
        ("title: x\nparts:\n  a: {size: 1, sise: 2}\n", "line 3: there is no setting sise of parts.a; there are size"),
        ("title: x\nparts:\n  a: {size: many}\n", "line 3: parts.a.size is a whole number, not 'many'"),
        ("title: x\nparts:\n  a: {size: true}\n", "line 3: parts.a.size is a whole number, not True"),
        ("title: x\nnames: b\n", "line 2: names is a list, not 'b'"),
        ("title: x\ntitle: y\n", "line 2: title is here twice"),
        (
            "title: x\nparts:\n  a:\n    share: 1\n    size: many\n",
            "line 5: parts.a.size is a whole number, not 'many'",
        ),
        ("title: x\nlimit: 0\n", "line 2: limit is a whole number from 1 on, not 0"),
        ("title: x\nlimit: -300\n", "line 2: limit is a whole number from 1 on, not -300"),
        ("title: x\nratio: 1.5\n", "line 2: ratio is a number from 0 to 1, not 1.5"),
        ("title: x\nratio: .nan\n", "line 2: ratio is a number from 0 to 1, not nan"),
        ("title: x\ncounts:\n  a:\n    b: -1\n", "line 4: counts.a.b is a whole number from 1 on, not -1"),
        ("title: x\nflag: yess\n", "line 2: flag is true or false, not 'yess'"),
        ("title: x\nflag: yes\n", "line 2: flag is true or false, not 'yes'"),
        ("title: x\nnames: [a, true]\n", "line 2: names is text, not True"),
        ("title: x\n[a, b]: y\n", "line 2: a name was expected"),
        ("title: x\nnames: ['\0']\n", "line 2: YAML does not allow the character '\\x00'"),
        ("title: [x\n", "line 2: this is not YAML"),
        ("", "expected settings"),
        ("title: !!python/object/apply:os.system [ls]\n", "line 1: this is not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, text, sentence):
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert str(tmp_path / "a.yaml") in str(error.value)
    assert sentence in str(error.value)


def test_words_that_yaml_once_took_for_booleans_are_text(tmp_path):
    words = ["no", "No", "NO", "on", "off", "yes", "y", "n"]
    lines = "".join(f"  {word}: {{size: 1}}\n" for word in words)
    found = read(tmp_path, f"title: no\nparts:\n{lines}names: [{', '.join(words)}]\nflag: true\n")
    assert list(found.parts) == words
    assert found.names == words
    assert (found.title, found.flag) == ("no", True)


def test_keys_and_dates_are_text_as_written(tmp_path):
    found = read(tmp_path, "title: 2020-02-30\nparts: {010: {size: 1}, null: {size: 2}, 1e3: {size: 3}}\n")
    assert (found.title, list(found.parts)) == ("2020-02-30", ["010", "null", "1e3"])


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_fast_parser_reads_the_same(path):
    """Values and lines."""
    text = path.read_text("utf-8")
    assert described(parse(text, path, FAST)) == described(parse(text, path, LOADER))


def described(value):
    if isinstance(value, Node):
        return [(key, value.lines[key], described(one)) for key, one in value.items()], value.line, value.path
    return [described(one) for one in value] if isinstance(value, list) else (type(value), value)
