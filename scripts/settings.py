"""Reads YAML files into dataclasses. An error names the line of the file.

    @dataclass
    class Language:
        vocabulary: int
        dropout: float = 0.1

    read_settings(path, Language)      # of a file that holds "vocabulary: 4000"

Fields without a default must be there, unknown ones must not, and values must have the field's type, and be in its
range if it has one (`batch: Positive`). Only true and false are booleans: `no` is text, for a language.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import types
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml

from bpe_dropout import InputError

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Range:
    """What a number must be within; the lowest itself is left out where it is `above`."""

    lowest: float
    highest: float | None = None
    above: bool = False

    def __contains__(self, number: float) -> bool:
        high_enough = number > self.lowest if self.above else number >= self.lowest
        return high_enough and (self.highest is None or number <= self.highest)

    def __str__(self) -> str:
        if self.above:
            return f"above {self.lowest:g}"
        return f"from {self.lowest:g} on" if self.highest is None else f"from {self.lowest:g} to {self.highest:g}"


Positive = Annotated[int, Range(1)]
Count = Annotated[int, Range(0)]
PositiveNumber = Annotated[float, Range(0, above=True)]
Share = Annotated[float, Range(0, 1)]


class Node(dict[str, Any]):
    """A mapping of a YAML file, which knows its file and the lines of its keys."""

    path, line = "", 1

    def __init__(self, *values: Any) -> None:
        super().__init__(*values)
        self.lines: dict[str, int] = {}

    @property
    def place(self) -> str:
        return f"{self.path}, line {self.line}"

    def place_of(self, key: str) -> str:
        return f"{self.path}, line {self.lines.get(key, self.line)}"

    def only(self, keys: Iterable[str]) -> Node:
        """Some of its keys, with their lines."""
        part = Node({key: self[key] for key in keys})
        part.path, part.line, part.lines = self.path, self.line, self.lines
        return part


class Mappings:
    """Added to a loader of yaml's: mappings that know their lines, keys that are text as written (`no`, `010`), YAML
    1.2's booleans, and no dates; a key that occurs twice is an error."""

    path = ""

    def node(self: Any, node: yaml.MappingNode) -> Node:
        mapping = Node()
        mapping.path, mapping.line = self.path, node.start_mark.line + 1
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise InputError(f"{self.path}, line {line}: a name was expected, such as `title:`")
            key = key_node.value
            if key in mapping:
                raise InputError(f"{self.path}, line {line}: {key} is here twice")
            mapping[key] = self.construct_object(value_node, deep=True)
            mapping.lines[key] = line
        return mapping


BOOLEAN, DATE = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp"


def with_mappings(base: Any) -> Any:
    loader: Any = type("Loader", (Mappings, base), {})
    loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, Mappings.node)
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (BOOLEAN, DATE)]
        for first, resolvers in base.yaml_implicit_resolvers.items()
    }
    loader.add_implicit_resolver(BOOLEAN, re.compile("(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
    return loader


# yaml's parser in C takes a tenth of the time, where yaml was built with it; the one in Python says better what is
# wrong.
LOADER = with_mappings(yaml.SafeLoader)
FAST = with_mappings(yaml.CSafeLoader) if hasattr(yaml, "CSafeLoader") else LOADER


def load(path: Path) -> Node:
    """The mapping that a file holds."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not valid UTF-8, at byte {error.start + 1}") from None
    try:
        try:
            content = parse(text, path, FAST)
        except yaml.YAMLError:
            content = parse(text, path, LOADER)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(f"{path}, line {line}: YAML does not allow the character {chr(error.character)!r}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise InputError(f"{path}, line {mark.line + 1 if mark else '?'}: this is not YAML: {error.problem}") from None
    if not isinstance(content, Node):
        raise InputError(f"{path}, line 1: expected settings, such as `title: ...`, and there are none")
    return content


def parse(text: str, path: Path, kind: Any) -> Any:
    loader = kind(text)
    loader.path = str(path)
    return loader.get_single_data()


def read_settings(path: Path, kind: type[Settings]) -> Settings:
    settings: Settings = convert(load(path), kind, str(path), "")
    return settings


@contextlib.contextmanager
def at(place: str) -> Iterator[None]:
    """Errors inside say where they were found."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def named(folder: Path, name: str) -> Path:
    """The file of settings with this name."""
    path = folder / f"{name}.yaml"
    if not path.is_file():
        there = ", ".join(sorted(one.name.removesuffix(".yaml") for one in folder.glob("*.yaml")))
        raise InputError(f"there is no {name} in {folder}; there are {there}")
    return path


def convert(value: Any, kind: Any, place: str, name: str) -> Any:
    """A value as the type that is asked for, or an error that says where it is."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        number = convert(value, arguments[0], place, name)
        if number not in arguments[1]:
            raise InputError(f"{place}: {name} is {describe(arguments[0])} {arguments[1]}, not {value!r}")
        return number
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        first, *others = (one for one in arguments if one is not type(None))
        return value if type(value) in others else convert(value, first, place, name)
    if kind is Any:
        return value
    if origin is Literal:
        if value not in arguments:
            raise InputError(f"{place}: {name} is one of {', '.join(arguments)}, not {value!r}")
        return value
    if dataclasses.is_dataclass(kind) and isinstance(value, Node):
        return convert_fields(value, kind, name)
    if origin is dict and isinstance(value, Node):
        return convert_values(value, dict.fromkeys(value, arguments[1]), name)
    if origin in (list, tuple) and isinstance(value, list):
        made = [convert(one, arguments[0], getattr(one, "place", place), name) for one in value]
        return made if origin is list else tuple(made)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind in (str, int, bool) and type(value) is kind:
        return value
    raise InputError(f"{place}: {name} is {describe(kind)}, not {value!r}")


def convert_values(value: Node, types_of: dict[str, Any], name: str) -> dict[str, Any]:
    return {
        key: convert(one, types_of[key], value.place_of(key), f"{name}.{key}" if name else key)
        for key, one in value.items()
    }


def convert_fields(value: Node, kind: Any, name: str) -> Any:
    types_of = typing.get_type_hints(kind, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    under = f" of {name}" if name else ""
    for key in value:
        if key not in fields:
            there = ", ".join(fields)
            raise InputError(f"{value.place_of(key)}: there is no setting {key}{under}; there are {there}")
    for key, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and key not in value:
            raise InputError(f"{value.place}: the setting {key}{under} is missing")
    made = convert_values(value, types_of, name)
    with at(value.place):
        return kind(**made)


def describe(kind: Any) -> str:
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    if kind in names:
        return names[kind]
    origin = typing.get_origin(kind)
    return "a list" if origin in (list, tuple) else "a mapping, `name: value`"
