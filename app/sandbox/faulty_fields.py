"""How does kube-apiserver word the fault of one field?

The cause's message repeats the value as compact JSON, as its field errors do.
"""

import json
from typing import Any

from app.errors import FieldError

IMMUTABLE = "field is immutable"


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, f"Invalid value: {_shown(value)}: {detail}", "FieldValueInvalid")


def required(path: str, detail: str = "") -> FieldError:
    message = f"Required value: {detail}" if detail else "Required value"
    return FieldError(path, message, "FieldValueRequired")


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path, f"Forbidden: {detail}", "FieldValueForbidden")


def not_supported(path: str, value: Any, supported: tuple[str, ...]) -> FieldError:
    names = ", ".join(f'"{one}"' for one in supported)
    message = f"Unsupported value: {_shown(value)}: supported values: {names}"
    return FieldError(path, message, "FieldValueNotSupported")


def unchanged(path: str, new: Any, old: Any) -> list[FieldError]:
    """Return the fault of a field that must stay as it is, if it did not."""
    return [] if new == old else [invalid(path, new, IMMUTABLE)]


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
