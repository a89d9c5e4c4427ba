"""Label selectors as objects of ours hold them, checked as Kubernetes checks them.

An absent selector and an empty one mean different things (nothing and everything), so neither is ever turned into the
other. Whether a selector matches is the core's question.
"""

from collections.abc import Iterator

from pydantic import ConfigDict, Field

from app.errors import FieldError
from app.intake.kinds import names
from app.intake.kinds.fields import ATOMIC, ATOMIC_MAP, Model
from app.intake.kinds.metadata import label_rules
from app.intake.kinds.place import Place

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class LabelRequirement(Model):
    key: str = Field(description="The label key the requirement is about.")
    operator: str = Field(
        description="How the label is compared: In, NotIn, Exists or DoesNotExist."
    )
    values: list[str] | None = Field(
        None,
        description="What the label is compared with: some values for In and NotIn, none for the others.",
        json_schema_extra=ATOMIC,
    )


class LabelSelector(Model):
    model_config = ConfigDict(json_schema_extra=ATOMIC_MAP)

    match_labels: dict[str, str] | None = Field(
        None, description="Labels that must all be present with exactly these values."
    )
    match_expressions: list[LabelRequirement] | None = Field(
        None, description="Requirements that must all hold.", json_schema_extra=ATOMIC
    )


def selector_rules(selector: Place) -> Iterator[FieldError]:
    yield from label_rules(selector.at("matchLabels"))
    for requirement in selector.items("matchExpressions"):
        yield from _requirement_rules(requirement)


def _requirement_rules(requirement: Place) -> Iterator[FieldError]:
    operator, values = requirement.text("operator"), requirement.at("values")
    if operator and operator not in _OPERATORS:
        yield requirement.at("operator").unsupported(_OPERATORS)
    if operator in ("In", "NotIn") and not values.value:
        yield values.required(f"must list at least one value when the operator is {operator}")
    if operator in ("Exists", "DoesNotExist") and values.value:
        yield values.forbidden(f"must be empty when the operator is {operator}")
    key = requirement.at("key")
    if isinstance(key.value, str) and (why := names.why_not_qualified(key.value)):
        yield key.invalid(why)
    for value in requirement.items("values"):
        if isinstance(value.value, str) and (why := names.why_not_label_value(value.value)):
            yield value.invalid(why)
