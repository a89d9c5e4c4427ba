"""YAML as Kubernetes' tools read it, without the parts of YAML that are dangerous or surprising.

No anchors, aliases or tags (a few lines of them expand to gigabytes), bounded depth, keys given twice reported, keys
always text. Scalars follow YAML 1.1 where Kubernetes does (``yes`` and ``on`` are booleans) and not where it does not
(timestamps and ``1:30`` stay text).
"""

import re
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from app.apiserver.duplicates import Maps
from app.errors import BadRequest


class _Resolver(yaml.resolver.BaseResolver):
    """Which plain scalars are not text."""


for _tag, _pattern, _first in (
    (
        "bool",
        r"^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$",
        "yYnNtTfFoO",
    ),
    ("int", r"^[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F]+|0o?[0-7]+|0b[01]+)$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+0123456789."),
    ("float", r"^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$", "-+."),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
):
    _Resolver.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


class _Loader(CParser, _Resolver):
    def __init__(self, stream: str) -> None:
        CParser.__init__(self, stream)
        _Resolver.__init__(self)


_TRUE = frozenset({"yes", "true", "on"})


def load(text: str, max_depth: int, maps: Maps) -> Any:
    try:
        _refuse_bombs(text, max_depth)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise BadRequest(f"the body is not valid YAML: {_first_line(error)}") from None
    return None if node is None else _value(node, maps)


def _first_line(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or str(error)
    mark = getattr(error, "problem_mark", None)
    return f"{problem} (line {mark.line + 1})" if mark else str(problem)


def _refuse_bombs(text: str, max_depth: int) -> None:
    """Look at the events before anything is composed from them."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):  # type: ignore[arg-type]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BadRequest("YAML anchors and aliases are not accepted")
        if getattr(event, "tag", None):
            raise BadRequest("YAML tags are not accepted")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > max_depth:
                raise BadRequest(f"the body is nested more than {max_depth} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _value(node: Node, maps: Maps) -> Any:
    if isinstance(node, MappingNode):
        return _mapping(node, maps)
    if isinstance(node, SequenceNode):
        return [_value(entry, maps) for entry in node.value]
    return _scalar(node)


def _mapping(node: MappingNode, maps: Maps) -> dict[str, Any]:
    pairs: list[tuple[str, Any]] = []
    for key_node, value_node in node.value:
        if not isinstance(key_node, ScalarNode):
            raise BadRequest("a YAML key must be text")
        pairs.append((_key(key_node), _value(value_node, maps)))
    return maps.build(pairs)


def _key(node: ScalarNode) -> str:
    """``on:`` is the key "true", as in Kubernetes' own YAML to JSON conversion."""
    value = _scalar(node)
    if isinstance(value, bool):
        return str(value).lower()
    return node.value if isinstance(node.value, str) else str(value)


def _scalar(node: Node) -> Any:
    text: str = node.value
    match node.tag.rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return text.lower() in _TRUE
        case "int":
            return _integer(text.replace("_", ""))
        case "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        case _:
            return text


def _integer(text: str) -> int:
    if len(text) > 70:
        raise BadRequest(f"the number {text[:20]}... has too many digits")
    digits = text.lstrip("+-").lower()
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    value = int(digits, 8) if octal else int(digits, 0)
    return -value if text.startswith("-") else value
