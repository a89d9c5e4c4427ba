"""A value inside a manifest that knows its own path, so that a rule can say where it was broken.

Rules read manifests through places. A place never fails on a malformed manifest: what is absent or of the wrong type
reads as empty, because the structure check reports that already and the other rules should still have their say.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from app.core.quantity import Quantity, QuantityError
from app.errors import FieldError
from app.intake.kinds.fields import amount


def shown(value: Any) -> str:
    """A value as messages quote it: JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


@dataclass(slots=True)
class Place:
    """`value` at `path`; None when there is nothing. Never changed once made (frozen would cost the hot path twice)."""

    value: Any
    path: str = ""

    def at(self, *names: str) -> "Place":
        """The field of that name, and so on downwards."""
        value, path = self.value, self.path
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
            path = f"{path}.{name}" if path else name
        return Place(value, path)

    def items(self, *names: str) -> Iterator["Place"]:
        """The elements of the list under those names."""
        listed = self.at(*names)
        if isinstance(listed.value, list):
            for index, value in enumerate(listed.value):
                yield Place(value, f"{listed.path}[{index}]")

    def entries(self, *names: str) -> Iterator[tuple[str, "Place"]]:
        """The entries of the map under those names (a map has keys of the user's choice, a record has fields)."""
        listed = self.at(*names)
        if isinstance(listed.value, dict):
            for key, value in listed.value.items():
                yield key, Place(value, f"{listed.path}[{key}]")

    @property
    def absent(self) -> bool:
        return self.value is None

    def text(self, name: str) -> str:
        """The string under that name, or an empty one."""
        value = self.value.get(name) if isinstance(self.value, dict) else None
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int | None:
        value = self.value.get(name) if isinstance(self.value, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def amount(self) -> Quantity | None:
        """The value read as a quantity, if it is one."""
        if type(self.value) is not str and type(self.value) is not int:
            return None
        try:
            return amount(self.value)
        except QuantityError:
            return None

    def invalid(self, why: str) -> FieldError:
        return FieldError(self.path, f"Invalid value: {shown(self.value)}: {why}")

    def required(self, why: str = "") -> FieldError:
        message = f"Required value: {why}" if why else "Required value"
        return FieldError(self.path, message, "FieldValueRequired")

    def duplicate(self, why: str = "") -> FieldError:
        message = f"Duplicate value: {shown(self.value)}" + (f": {why}" if why else "")
        return FieldError(self.path, message, "FieldValueDuplicate")

    def forbidden(self, why: str) -> FieldError:
        return FieldError(self.path, f"Forbidden: {why}", "FieldValueForbidden")

    def not_found(self, why: str) -> FieldError:
        return FieldError(self.path, f"Not found: {shown(self.value)}: {why}", "FieldValueNotFound")

    def unsupported(self, supported: Iterable[str]) -> FieldError:
        values = ", ".join(shown(value) for value in supported)
        message = f"Unsupported value: {shown(self.value)}: supported values: {values}"
        return FieldError(self.path, message, "FieldValueNotSupported")

    def too_many(self, most: int, found: int) -> FieldError:
        message = f"Too many: {found}: must have at most {most} items"
        return FieldError(self.path, message, "FieldValueTooMany")
