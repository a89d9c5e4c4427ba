"""From what pydantic found to what Kubernetes would say: field path, reason, message.

Also the order in which faults are reported (that of the manifest) and the sentence on top of them.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import ErrorDetails

from app.core.manifests import Manifest
from app.errors import FieldError, Invalid
from app.intake.kinds.fields import GROUP, PATTERN_WORDS
from app.intake.kinds.place import Place, shown

_TYPE_WORDS = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a map",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def translated(errors: Iterable[ErrorDetails], schema: Mapping[str, Any]) -> list[FieldError]:
    """Each of pydantic's errors in Kubernetes' words."""
    return [_translated(error, schema) for error in errors]


def _translated(error: ErrorDetails, schema: Mapping[str, Any]) -> FieldError:
    path, siblings = _walked(error["loc"], schema)
    place = Place(error["input"], path)
    if error["type"] == "missing":
        return place.required()
    if error["type"] == "extra_forbidden":
        return _unknown(path, siblings)
    if words := _TYPE_WORDS.get(error["type"]):
        return FieldError(
            path, f"Invalid value: {shown(place.value)}: must be {words}", "FieldValueTypeInvalid"
        )
    worded = _WORDED.get(error["type"])
    return worded(place, error.get("ctx", {})) if worded else place.invalid(error["msg"])


def _unknown(path: str, siblings: Iterable[str]) -> FieldError:
    parent, dot, name = path.rpartition(".")
    close = difflib.get_close_matches(name, siblings, n=1, cutoff=0.6)
    hint = f'; did you mean "{parent}{dot}{close[0]}"?' if close else ""
    return FieldError(path, f'unknown field "{path}"{hint}', "FieldValueForbidden")


def _too_long_text(place: Place, context: Mapping[str, Any]) -> FieldError:
    most = context["max_length"]
    return FieldError(
        place.path, f"Too long: may not be more than {most} characters", "FieldValueTooLong"
    )


def _too_many(place: Place, context: Mapping[str, Any]) -> FieldError:
    return place.too_many(context["max_length"], context["actual_length"])


def _too_few(place: Place, context: Mapping[str, Any]) -> FieldError:
    return place.invalid(f"must have at least {context['min_length']} items")


def _unsupported(place: Place, context: Mapping[str, Any]) -> FieldError:
    return place.unsupported(re.findall(r"'([^']*)'", context["expected"]))


_WORDED: Mapping[str, Callable[[Place, Mapping[str, Any]], FieldError]] = {
    "literal_error": _unsupported,
    "string_too_long": _too_long_text,
    "too_long": _too_many,
    "too_short": _too_few,
    "string_too_short": lambda place, _: place.invalid("must not be empty"),
    "string_pattern_mismatch": lambda place, context: place.invalid(
        PATTERN_WORDS.get(context["pattern"], f"must match {context['pattern']}")
    ),
    "greater_than_equal": lambda place, context: place.invalid(
        f"must be greater than or equal to {context['ge']}"
    ),
    "less_than_equal": lambda place, context: place.invalid(
        f"must be less than or equal to {context['le']}"
    ),
    "quantity_type": lambda place, _: FieldError(
        place.path,
        f"Invalid value: {shown(place.value)}: must be an integer or a quoted quantity"
        ' such as "500m" or "4Gi"',
        "FieldValueTypeInvalid",
    ),
}


def _walked(location: Sequence[str | int], schema: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """The location as a path, and the names that would have been known at its end.

    Only the schema tells a field (``.name``) from an entry of a map (``[name]``).
    """
    path = ""
    siblings: Sequence[str] = ()
    node = schema
    for step in location:
        properties = node.get("properties", {})
        siblings = tuple(properties)
        if isinstance(step, int):
            path += f"[{step}]"
            node = node.get("items", {})
        elif not properties and "additionalProperties" in node:
            path += f"[{step}]"
            node = node["additionalProperties"]
        else:
            path = f"{path}.{step}" if path else step
            node = properties.get(step, {})
    return path, siblings


def refused(manifest: Manifest, found: Iterable[FieldError]) -> Invalid:
    """The error to raise: every fault, in the order in which the manifest has the fields."""
    causes = sorted(dict.fromkeys(found), key=lambda fault: _position(fault.path, manifest))
    kind, name = str(manifest.get("kind", "")), _name(manifest)
    told = [f"{fault.path}: {fault.message}" for fault in causes]
    summary = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    return Invalid(
        f'{kind}.{GROUP} "{name}" is invalid: {summary}',
        causes,
        details={"group": GROUP, "kind": kind, "name": name},
    )


def _name(manifest: Manifest) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


_STEP = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


def _position(path: str, manifest: Manifest) -> list[int]:
    """Where in the manifest a path leads, as indices; what is absent comes last among its siblings."""
    position: list[int] = []
    node: Any = manifest
    for entry, name in _STEP.findall(path):
        step = entry or name
        if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
            position.append(int(step))
            node = node[int(step)]
        elif isinstance(node, dict) and step in node:
            position.append(list(node).index(step))
            node = node[step]
        else:
            return [*position, len(node) if isinstance(node, list | dict) else 0]
    return position
