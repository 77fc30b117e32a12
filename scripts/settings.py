"""Reads YAML files into dataclasses. What is wrong with a file is said with its line.

    @dataclass
    class Language:
        vocabulary: int
        dropout: float = 0.1

    read_settings(path, Language)      # of a file that holds "vocabulary: 4000"

Fields without a default must be there, others than the fields must not, and values must have the field's type.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

import yaml

from bpe_dropout import InputError

Settings = TypeVar("Settings")


class Node(dict[str, Any]):
    """A mapping of a YAML file, which knows its file and line."""

    place = ""


class Loader(yaml.SafeLoader):  # type: ignore[misc]
    """yaml's safe loader, with mappings that know their line; a key that comes twice is an error."""

    path = ""

    def node(self, node: yaml.MappingNode) -> Node:
        mapping = Node()
        for key_node, value_node in node.value:
            key = str(self.construct_object(key_node, deep=True))
            if key in mapping:
                raise InputError(f"{self.path}, line {key_node.start_mark.line + 1}: {key} stands here twice")
            mapping[key] = self.construct_object(value_node, deep=True)
        mapping.place = f"{self.path}, line {node.start_mark.line + 1}"
        return mapping


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, Loader.node)


def load(path: Path) -> Node:
    """The mapping that a file holds."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not valid UTF-8, at byte {error.start + 1}") from None
    loader = Loader(text)
    loader.path = str(path)
    try:
        content = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise InputError(f"{path}, line {line}: this is not YAML: {error.problem}") from None
    if not isinstance(content, Node):
        raise InputError(f"{path}, line 1: expected settings, such as `title: ...`, and there are none")
    return content


def read_settings(path: Path, kind: type[Settings]) -> Settings:
    settings: Settings = convert(load(path), kind, str(path), "")
    return settings


def convert(value: Any, kind: Any, place: str, name: str) -> Any:
    """A value as the type that is asked for, or an error that says where it stands."""
    if isinstance(value, Node):
        place = value.place
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        return convert(value, next(one for one in arguments if one is not type(None)), place, name)
    if kind is Any:
        return value
    if dataclasses.is_dataclass(kind) and isinstance(value, Node):
        return convert_fields(value, kind, place, name)
    if origin is dict and isinstance(value, Node):
        return {key: convert(one, arguments[1], place, f"{name}.{key}" if name else key) for key, one in value.items()}
    if origin in (list, tuple) and isinstance(value, list):
        made = [convert(one, arguments[0], place, name) for one in value]
        return made if origin is list else tuple(made)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind in (str, int, bool) and type(value) is kind:
        return value
    raise InputError(f"{place}: {name} is {describe(kind)}, not {value!r}")


def convert_fields(value: Node, kind: Any, place: str, name: str) -> Any:
    types_of = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    under = f" of {name}" if name else ""
    for key in value:
        if key not in fields:
            raise InputError(f"{place}: there is no setting {key}{under}; there are {', '.join(fields)}")
    for key, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and key not in value:
            raise InputError(f"{place}: the setting {key}{under} is missing")
    made = {key: convert(one, types_of[key], place, f"{name}.{key}" if name else key) for key, one in value.items()}
    try:
        return kind(**made)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def describe(kind: Any) -> str:
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    if kind in names:
        return names[kind]
    origin = typing.get_origin(kind)
    return "a list" if origin in (list, tuple) else "a mapping, `name: value`"
