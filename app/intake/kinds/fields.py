"""The vocabulary in which the kinds are written: one pydantic base and the few field types they share.

A model states the structure of a manifest (names on the wire, types, bounds, enumerations, Kueue's defaults) and says
in each description what the field means, since `kubectl explain` prints it. It is only ever used to check and to
describe: manifests stay the dictionaries the user wrote, so nothing is re-formatted on the way to the store.

What a value means together with other values is a rule, and rules live beside the model they concern.
"""

from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from app.core import quantity

GROUP = "kueue.x-k8s.io"
API_VERSION = f"{GROUP}/v1beta2"

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)
INT64_MAX = 2**63 - 1

SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
KIND_NAME = r"^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$"
LABEL_KEY = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)
CONDITION_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"

#: What a text must look like, in words, for each pattern above.
PATTERN_WORDS = {
    SUBDOMAIN: 'must be lower-case letters, digits, "-" and ".", each part beginning and ending with a letter'
    ' or digit (for example "team-a" or "gpu.team-a")',
    LABEL: 'must be lower-case letters, digits and "-", beginning and ending with a letter or digit'
    ' (for example "main")',
    KIND_NAME: 'must be letters, digits and "-", beginning with a letter (for example "ProvisioningRequestConfig")',
    LABEL_KEY: 'must be a label key: an optional DNS prefix and "/", then letters, digits, "-", "_" and "."'
    ' (for example "cloud.example.com/rack")',
    CONDITION_REASON: "must be one word in CamelCase, beginning with a letter",
    MOMENT: 'must be a time as in "2026-01-31T12:00:00Z"',
}

QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

# How lists merge when applied, and what must be unique in them.
BY_NAME: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}
ATOMIC_MAP: dict[str, Any] = {"x-kubernetes-map-type": "atomic"}


def by(*keys: str) -> dict[str, Any]:
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


class Model(BaseModel):
    """A closed record: camelCase on the wire, no coercion, unknown fields are faults."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", strict=True, protected_namespaces=()
    )


class Open(Model):
    """A record of Kubernetes' own that may grow: fields we do not know are kept as they are."""

    model_config = ConfigDict(extra="allow")


class Object(Model):
    """What every object has; `metadata` is the API server's own business."""

    api_version: str | None = Field(
        None, description="Group and version in which this object is written."
    )
    kind: str | None = Field(None, description="Kind of this object.")
    metadata: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})] | None = Field(
        None, description="Name, labels, annotations and what the server records about the object."
    )


@lru_cache(maxsize=8192)
def amount(written: str | int) -> quantity.Quantity:
    """The value of a quantity as written. The same few texts come again and again, so they are remembered."""
    return quantity.parse(written)


def _quantity(value: Any) -> Any:
    """Amounts of the int64 maximum and above are legal and mean "no limit", as in Kubernetes."""
    if type(value) is not str and type(value) is not int:
        raise PydanticCustomError(
            "quantity_type", 'must be an integer or a quoted quantity such as "500m" or "4Gi"'
        )
    try:
        amount(value)
    except quantity.QuantityError:
        raise PydanticCustomError(
            "quantity", 'must be a quantity such as "500m", "2", "1.5", "1e3" or "4Gi"'
        ) from None
    return value


Quantity = Annotated[
    str | int,
    PlainValidator(_quantity),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY_PATTERN,
            "x-kubernetes-int-or-string": True,
        }
    ),
]
ResourceList = dict[str, Quantity]

_INT32: dict[str, Any] = {"format": "int32"}
_INT64: dict[str, Any] = {"format": "int64"}

Int32 = Annotated[int, Field(ge=INT32_MIN, le=INT32_MAX, json_schema_extra=_INT32)]
Count = Annotated[int, Field(ge=0, le=INT32_MAX, json_schema_extra=_INT32)]
Positive = Annotated[int, Field(ge=1, le=INT32_MAX, json_schema_extra=_INT32)]
Int64 = Annotated[int, Field(ge=-INT64_MAX - 1, le=INT64_MAX, json_schema_extra=_INT64)]
Count64 = Annotated[int, Field(ge=0, le=INT64_MAX, json_schema_extra=_INT64)]

Subdomain = Annotated[str, Field(max_length=253, pattern=SUBDOMAIN)]
Label = Annotated[str, Field(max_length=63, pattern=LABEL)]
Moment = Annotated[str, Field(pattern=MOMENT, json_schema_extra={"format": "date-time"})]
ShortText = Annotated[str, Field(max_length=63)]
LevelName = Annotated[str, Field(max_length=317)]
