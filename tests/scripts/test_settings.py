from dataclasses import dataclass, field

import pytest

from bpe_dropout import InputError
from scripts.settings import read_settings


@dataclass
class Inner:
    size: int
    share: float = 0.5


@dataclass
class Outer:
    title: str
    parts: dict[str, Inner] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    limit: int | None = None


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
        ("title: x\nnames: b\n", "line 1: names is a list, not 'b'"),
        ("title: x\ntitle: y\n", "line 2: title stands here twice"),
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
