"""What form of answer a client's ``Accept`` header wants.

Kubernetes puts the wish into media type parameters: ``application/json;as=Table;v=v1;g=meta.k8s.io`` asks for a printed
table, ``as=PartialObjectMetadata`` for metadata only, ``as=APIGroupDiscoveryList`` for aggregated discovery. The first
wish that we can meet wins; a client that takes no JSON at all gets 406.
"""

from dataclasses import dataclass

from app.errors import NotAcceptable

_PLAIN = frozenset({"application/json", "application/*", "*/*"})
_FORMS = {
    ("Table", "meta.k8s.io", "v1"),
    ("PartialObjectMetadata", "meta.k8s.io", "v1"),
    ("PartialObjectMetadataList", "meta.k8s.io", "v1"),
    ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2"),
}


@dataclass(frozen=True, slots=True)
class Wish:
    """`form` is empty for the object itself; `media` is the content type to answer with."""

    form: str = ""
    media: str = "application/json"


def wish(header: str | None, forms: tuple[str, ...] = ()) -> Wish:
    """`forms` are those that make sense for this answer."""
    if not header:
        return Wish()
    for offer in header.split(","):
        media, *parameters = (part.strip() for part in offer.split(";"))
        if media not in _PLAIN:
            continue
        told = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        if "as" not in told:
            return Wish()
        if told["as"] in forms and (told["as"], told.get("g"), told.get("v")) in _FORMS:
            form = told["as"]
            return Wish(form, f"application/json;g={told['g']};v={told['v']};as={form}")
    raise NotAcceptable(
        "only the following media types are accepted: application/json",
    )
