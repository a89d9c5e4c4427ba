"""The conditions of a status, as every kind of Kubernetes has them.

One entry for each type, at most sixteen; the bounds of each field are those of Kubernetes' own ``Condition``. Which
types and reasons exist for a kind, and when they turn, is the business of whoever writes the status.
"""

from typing import Annotated, Literal

from pydantic import Field

from app.intake.kinds.fields import BY_TYPE, CONDITION_REASON, LABEL_KEY, Count64, Model, Moment


class Condition(Model):
    type: Annotated[str, Field(max_length=316, pattern=LABEL_KEY)] = Field(
        description="What is being said about the object, for example Active or Admitted."
    )
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    observed_generation: Count64 | None = Field(
        None, description="The generation of the object that this was concluded from."
    )
    last_transition_time: Moment = Field(description="When the status last turned over.")
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=CONDITION_REASON)] = Field(
        description="Why, as one word that programs may rely on."
    )
    message: Annotated[str, Field(max_length=32768)] = Field(
        description="Why, as a sentence for people."
    )


Conditions = Annotated[list[Condition], Field(max_length=16, json_schema_extra=BY_TYPE)]


def conditions_field(what: str) -> Conditions | None:
    """The field of a status model; `what` names the kind in its description."""
    field: Conditions | None = Field(
        None, description=f"What is currently known about the {what}; one entry for each type."
    )
    return field
