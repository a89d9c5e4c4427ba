"""Is this text a legal name, label or resource name in Kubernetes' eyes, and if not, why?

Each function answers with a clause that completes "Invalid value: ...", or with nothing when the text is legal. The
grammars are ASCII on purpose: look-alike letters of other scripts are refused.
"""

import re
from functools import lru_cache

_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_PART}(\.{_PART})*", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)

_STANDARD_RESOURCES = frozenset({"cpu", "memory", "pods", "storage", "ephemeral-storage"})


def why_not_subdomain(text: str) -> str | None:
    """For object names and everything that refers to one."""
    if len(text) > 253:
        return "must be no more than 253 characters"
    if not _SUBDOMAIN.fullmatch(text):
        return (
            'must be lower-case letters, digits, "-" and ".", each part beginning and ending with a letter or digit'
            ' (for example "team-a" or "gpu.team-a")'
        )
    return None


@lru_cache(maxsize=4096)
def why_not_qualified(text: str) -> str | None:
    """For label keys, annotation keys, taint keys: an optional DNS prefix, a slash, a short name."""
    prefix, slash, name = text.rpartition("/")
    if slash and (not prefix or why_not_subdomain(prefix)):
        return 'must have a lower-case DNS name before the "/" (for example "example.com/name")'
    if not name:
        return "must not be empty"
    if len(name) > 63:
        return "must have no more than 63 characters in its name part"
    if not _WORD.fullmatch(name):
        return (
            'must be letters, digits, "-", "_" and ".", beginning and ending with a letter or digit'
            ' (for example "my-name" or "example.com/my.name")'
        )
    return None


@lru_cache(maxsize=4096)
def why_not_label_value(text: str) -> str | None:
    if len(text) > 63:
        return "must be no more than 63 characters"
    if text and not _WORD.fullmatch(text):
        return 'must be empty, or letters, digits, "-", "_" and ".", beginning and ending with a letter or digit'
    return None


@lru_cache(maxsize=4096)
def why_not_resource(text: str) -> str | None:
    """For names of resources: qualified, and no misspelling of a resource that Kubernetes itself defines."""
    if why := why_not_qualified(text):
        return why
    lowered = text.lower()
    if text != lowered and lowered in _STANDARD_RESOURCES:
        return f'names are case-sensitive: write "{lowered}"'
    return None
