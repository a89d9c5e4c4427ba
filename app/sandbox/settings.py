"""What can be chosen about a simulated cluster?"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.apiserver.kinds import Kind
from app.core.manifests import Manifest
from app.sandbox.batch.rules import Rules
from app.sandbox.controllers import Character
from app.sandbox.nodes.life import Habits
from app.sandbox.nodes.make import NodeShape

GPU_MODEL = (
    "example.com/gpu-model"  # the label and the taint by which the examples tell nodes apart
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """`speed` is simulated seconds per real second; `minor` the 37 of Kubernetes 1.37, whose rules for Jobs apply.

    `manifests` are created at the start, after `nodes`. `services` says where webhooks are that are configured by a
    service: (namespace, name) to a base URL. `further_kinds` are served besides the built-in ones.
    """

    host: str = "127.0.0.1"
    port: int = 0  # 0: any that is free
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    tls: bool = True  # kubectl sends no token without
    speed: float = 1.0
    minor: int = 37
    habits: Habits = field(default_factory=Habits)
    job_backoff_s: float = 10.0
    nodes: Sequence[NodeShape] = ()
    manifests: Sequence[Manifest] = ()
    services: Mapping[tuple[str, str], str] = field(default_factory=dict)
    bookmark_every_s: float = 10.0
    further_kinds: tuple[Kind, ...] = ()

    @property
    def rules(self) -> Rules:
        return Rules(self.minor)

    @property
    def character(self) -> Character:
        return Character(
            speed=self.speed,
            rules=self.rules,
            habits=self.habits,
            job_backoff_s=self.job_backoff_s,
        )


def gpu_nodes(count: int, gpus: int) -> tuple[NodeShape, ...]:
    """Return `count` nodes with `gpus` each, as the example quotas know them: three of four a100, the rest t4."""
    t4 = count // 4
    capacity = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    shapes = (
        NodeShape(
            count=count - t4,
            prefix="a100",
            labels={GPU_MODEL: "a100"},
            capacity=capacity,
            taints=({"key": GPU_MODEL, "value": "a100", "effect": "NoSchedule"},),
        ),
        NodeShape(count=t4, prefix="t4", labels={GPU_MODEL: "t4"}, capacity=capacity),
    )
    return tuple(shape for shape in shapes if shape.count)
