"""Which objects a ``labelSelector`` or ``fieldSelector`` parameter means.

The label grammar is Kubernetes' own: ``a=b``, ``a==b``, ``a!=b``, ``a``, ``!a``, ``a in (b,c)``, ``a notin (b,c)``,
``a>1``, ``a<1``, joined by commas. Fields know ``=``, ``==`` and ``!=`` on the few paths that a kind declares.
A selector that cannot be read is a 400, never "everything".
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from app.apiserver.kinds import Kind
from app.core.manifests import Manifest
from app.core.selectors import LabelSelector, Requirement
from app.errors import BadRequest

Matches = Callable[[Manifest], bool]

_LIMIT = 8192
_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9_./-]{0,315}[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?"
_TERM = re.compile(
    rf"""\s*(?:
        (?P<set>{_KEY})\s+(?P<how>in|notin)\s*\((?P<values>[^()]*)\)
      | (?P<key>{_KEY})\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>{_VALUE})
      | !\s*(?P<absent>{_KEY})
      | (?P<present>{_KEY})
    )\s*(?:,|$)""",
    re.VERBOSE,
)
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}


def parse_labels(text: str) -> LabelSelector:
    if len(text) > _LIMIT:
        raise BadRequest("the label selector is too long")
    requirements: list[Requirement] = []
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None:
            raise _unreadable("label", text)
        requirements.append(_requirement(term, text))
        position = term.end()
    if text.rstrip().endswith(","):
        raise _unreadable("label", text)
    return LabelSelector(requirements=tuple(requirements))


def _requirement(term: re.Match[str], text: str) -> Requirement:
    if term["present"]:
        return Requirement(key=term["present"], operator="Exists")
    if term["absent"]:
        return Requirement(key=term["absent"], operator="DoesNotExist")
    if term["set"]:
        operator = "In" if term["how"] == "in" else "NotIn"
        values = tuple(value.strip() for value in term["values"].split(","))
        if not all(re.fullmatch(_VALUE, value) for value in values):
            raise _unreadable("label", text)
        return Requirement(key=term["set"], operator=operator, values=values)
    operator = _OPERATORS[term["operator"]]
    if operator in ("Gt", "Lt") and not term["value"].isdecimal():
        raise _unreadable("label", text)
    return Requirement(key=term["key"], operator=operator, values=(term["value"],))


def _unreadable(what: str, text: str) -> BadRequest:
    return BadRequest(f"unable to parse the {what} selector {text[:200]!r}")


def parse_fields(text: str, kind: Kind) -> tuple[tuple[str, bool, str], ...]:
    """(path, wanted equal, value) for each term."""
    if len(text) > _LIMIT:
        raise BadRequest("the field selector is too long")
    terms = []
    for part in filter(None, text.split(",")):
        found = re.fullmatch(r"\s*([A-Za-z0-9_./-]+)\s*(==|!=|=)(.*)", part)
        if found is None:
            raise _unreadable("field", text)
        path, operator, value = found.groups()
        if path not in ("metadata.name", "metadata.namespace", *kind.selectable):
            raise BadRequest(f"field label not supported: {path}")
        terms.append((path, operator != "!=", value.strip()))
    return tuple(terms)


def read_field(manifest: Manifest, path: str) -> str:
    """The value at a dotted path as text; absent is empty."""
    node: Any = manifest
    for part in path.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    if node is None:
        return ""
    return str(node).lower() if isinstance(node, bool) else str(node)


def matcher(kind: Kind, labels: str, fields: str) -> Matches | None:
    """None when everything is meant."""
    tests: list[Matches] = []
    if labels:
        selector = parse_labels(labels)
        tests.append(lambda manifest: selector.matches(manifest["metadata"].get("labels") or {}))
    terms = parse_fields(fields, kind)
    if terms:
        tests.append(
            lambda manifest: all(
                (read_field(manifest, path) == value) is equal for path, equal, value in terms
            )
        )
    return _all(tests)


def _all(tests: Sequence[Matches]) -> Matches | None:
    if len(tests) < 2:
        return tests[0] if tests else None
    return lambda manifest: all(test(manifest) for test in tests)
