"""AdmissionCheck: a gate that some controller opens between quota reservation and admission.

The controller is fixed once the check exists, since it alone knows what its states mean. Whether it is there and ready
is told by the condition Active, which it owns.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from app.errors import FieldError
from app.intake.kinds.conditions import Conditions, conditions_field
from app.intake.kinds.definition import Definition
from app.intake.kinds.fields import KIND_NAME, Label, Model, Object, Subdomain
from app.intake.kinds.place import Place


class AdmissionCheckParameters(Model):
    api_group: Subdomain = Field(description="API group of the object with the parameters.")
    kind: Annotated[str, Field(max_length=63, pattern=KIND_NAME)] = Field(
        description="Kind of that object."
    )
    name: Label = Field(description="Name of that object.")


class AdmissionCheckSpec(Model):
    controller_name: Annotated[str, Field(min_length=1, max_length=253)] = Field(
        description="Who answers the check, for example kueue.x-k8s.io/provisioning-request. Cannot be changed."
    )
    parameters: AdmissionCheckParameters | None = Field(
        None, description="An object with settings for the controller."
    )


class AdmissionCheckStatus(Model):
    conditions: Conditions | None = conditions_field("AdmissionCheck")


class AdmissionCheck(Object):
    """A gate besides quota: admission waits until its controller reports Ready."""

    spec: AdmissionCheckSpec | None = Field(None, description="Who answers, and how.")
    status: AdmissionCheckStatus | None = Field(None, description="Whether the check is usable.")


def _rules(manifest: Place) -> Iterator[FieldError]:
    if manifest.at("spec").absent:
        yield manifest.at("spec").required("controllerName must be set")


def _transition(new: Place, old: Place) -> Iterator[FieldError]:
    before, after = old.at("spec", "controllerName"), new.at("spec", "controllerName")
    if not before.absent and not after.absent and before.value != after.value:
        yield after.invalid("field is immutable")


ADMISSION_CHECK = Definition(
    model=AdmissionCheck, rules=_rules, transition=_transition, finalizer=True
)
