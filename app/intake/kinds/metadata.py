"""What must hold for the metadata of any object of ours, and for any text in it.

Names are DNS subdomains, labels and annotations follow Kubernetes' grammar and size limit, and no text may hold a NUL
or half a surrogate pair: JSON can carry both, Postgres can store neither, and one such row would fail every round that
reads it.
"""

from collections.abc import Iterator
from typing import Any

import orjson

from app.core.manifests import Manifest
from app.errors import FieldError
from app.intake.kinds import names
from app.intake.kinds.place import Place

#: Keeps an object in place until nothing uses it any more.
IN_USE = "kueue.x-k8s.io/resource-in-use"

_ANNOTATIONS_SIZE = 256 * 1024


def with_finalizer(manifest: Manifest) -> Manifest:
    """The manifest with the in-use finalizer; itself if it has it already."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return manifest
    finalizers = metadata.get("finalizers") or []
    if not isinstance(finalizers, list) or IN_USE in finalizers:
        return manifest
    return {**manifest, "metadata": {**metadata, "finalizers": [*finalizers, IN_USE]}}


def name_rules(manifest: Place) -> Iterator[FieldError]:
    """For a new object: a name never changes afterwards."""
    name = manifest.at("metadata", "name")
    if isinstance(name.value, str) and name.value and (why := names.why_not_subdomain(name.value)):
        yield name.invalid(why)


def metadata_rules(manifest: Place) -> Iterator[FieldError]:
    metadata = manifest.at("metadata")
    yield from label_rules(metadata.at("labels"))
    yield from annotation_rules(metadata.at("annotations"))


def label_rules(labels: Place) -> Iterator[FieldError]:
    """For labels, node labels and node selectors alike."""
    for key, label in labels.entries():
        if why := names.why_not_qualified(key):
            yield Place(key, labels.path).invalid(why)
        if not isinstance(label.value, str):
            yield label.invalid("must be a string")
        elif why := names.why_not_label_value(label.value):
            yield label.invalid(why)


def annotation_rules(annotations: Place) -> Iterator[FieldError]:
    size = 0
    for key, annotation in annotations.entries():
        if why := names.why_not_qualified(key.lower()):
            yield Place(key, annotations.path).invalid(why)
        if isinstance(annotation.value, str):
            size += len(key) + len(annotation.value)
        else:
            yield annotation.invalid("must be a string")
    if size > _ANNOTATIONS_SIZE:
        yield FieldError(
            annotations.path,
            f"Too long: may not be more than {_ANNOTATIONS_SIZE} bytes",
            "FieldValueTooLong",
        )


def text_rules(manifest: Place) -> Iterator[FieldError]:
    """No text may hold what the database cannot. The common case is one quick serialisation."""
    try:
        written = orjson.dumps(manifest.value)
    except (TypeError, ValueError):
        yield from _unstorable(manifest)
    else:
        if b"\\u0000" in written:
            yield from _unstorable(manifest)


def _unstorable(place: Place) -> Iterator[FieldError]:
    if isinstance(place.value, str):
        if "\0" in place.value or any("\ud800" <= char <= "\udfff" for char in place.value):
            yield place.invalid("must not contain NUL characters or unpaired surrogates")
    elif isinstance(place.value, list):
        for item in place.items():
            yield from _unstorable(item)
    elif isinstance(place.value, dict):
        for key in place.value:
            yield from _unstorable(_key(place, key))
            yield from _unstorable(place.at(key))


def _key(place: Place, key: Any) -> Place:
    return Place(key, place.path)
