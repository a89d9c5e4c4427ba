"""From ``kubectl apply`` to ``kubectl apply --server-side`` without a conflict with oneself (KEP-555, "upgrading").

What kubectl applied on the client's side is owned by another manager than what it applies on the server's side. The
annotation that client-side apply leaves behind tells which fields those are: where the live object still has the
values applied then, kubectl may take them over.
"""

from app.apiserver.bodies import parse_json
from app.apiserver.comparing import difference_of, fields_of
from app.apiserver.fields import Fields, difference, union
from app.apiserver.ownership import Actor, ownable
from app.apiserver.schemas import Schema
from app.core.manifests import Manifest
from app.errors import BadRequest

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def may_take_over(actor: Actor, live: Manifest, schema: Schema) -> Fields:
    """Fields in which a conflict is no conflict; `live` is in the version of the schema."""
    annotations = live["metadata"].get("annotations") or {}
    text = annotations.get(_LAST_APPLIED)
    if actor.manager != "kubectl" or actor.subresource or not text:
        return {}
    try:
        last = parse_json(text.encode()).value
    except BadRequest:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != live.get("apiVersion"):
        return {}
    if not isinstance(last.get("metadata"), dict):
        return {}
    applied = ownable(last, "", has_status=True)
    applied.get("metadata", {}).get("annotations", {}).pop(_LAST_APPLIED, None)
    found = difference_of(applied, ownable(live, "", has_status=True), schema)
    return difference(fields_of(applied, schema), union(found.changed, found.removed))
