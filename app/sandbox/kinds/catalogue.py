"""Which kinds does the simulated cluster serve?

A `Catalogue` is made once per cluster, since the rules for Jobs depend on the Kubernetes version it plays. Further
kinds (of other frameworks) are added by whoever builds the cluster.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from app.apiserver.kinds import Kind
from app.sandbox.batch.rules import Rules
from app.sandbox.kinds.events import EVENT, NEW_EVENT
from app.sandbox.kinds.jobs import job_kind
from app.sandbox.kinds.nodes import NAMESPACE, NODE
from app.sandbox.kinds.pods import POD
from app.sandbox.kinds.policies import (
    LEASE,
    MUTATING_WEBHOOKS,
    PRIORITY_CLASS,
    VALIDATING_WEBHOOKS,
)


@dataclass(frozen=True, slots=True)
class Catalogue:
    job: Kind
    further: tuple[Kind, ...] = ()

    @property
    def all(self) -> tuple[Kind, ...]:
        return (
            NAMESPACE,
            NODE,
            POD,
            EVENT,
            self.job,
            NEW_EVENT,
            PRIORITY_CLASS,
            MUTATING_WEBHOOKS,
            VALIDATING_WEBHOOKS,
            LEASE,
            *self.further,
        )

    @property
    def namespaced(self) -> tuple[Kind, ...]:
        """Return every kind that a namespace holds, each once."""
        return tuple(kind for kind in self.all if kind.namespaced and kind is not NEW_EVENT)


def catalogue(
    rules: Rules, clock: Callable[[], datetime], further: tuple[Kind, ...] = ()
) -> Catalogue:
    return Catalogue(job_kind(rules, clock), further)
