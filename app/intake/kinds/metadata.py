"""Labels and annotations wherever a spec holds some, and the finalizer of objects that others refer to.

The metadata of the object itself is the API server's business, for these kinds as for any other.
"""

from collections.abc import Iterator

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
