"""What a deployment may set, read once at the doorstep (cli, bootstrap) and passed on in pieces.

Every setting has an environment variable of the same name with the prefix ``SLUICE_``; the database address is
``DATABASE_URL``, as everywhere. Misspelt ``SLUICE_`` names are refused, so that a typo does not run with a default.
"""

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import Misconfigured

PREFIX = "SLUICE_"

Level = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(str.upper)]


class Settings(BaseSettings):
    """Frozen; secrets print as stars. A variable that is set to nothing counts as unset."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="ignore"
    )

    database_url: SecretStr | None = Field(default=None, validation_alias="DATABASE_URL")
    """Postgres to use. Without one, ``serve`` and ``demo`` run their own in `data_dir`."""
    data_dir: Path = Path(".sluice")
    """Embedded Postgres, certificates: all that this machine keeps."""
    kubeconfig: Path | None = Field(default=None, validation_alias="KUBECONFIG")
    """The cluster whose jobs are gated; unset means in-cluster credentials."""
    kube_context: str | None = None
    api_host: str = "127.0.0.1"
    api_port: int = Field(default=8080, ge=0, le=65535)
    """0 picks a free port; the log and ``sluice kubeconfig`` name it."""
    webhook_url: str | None = None
    """``https://host:port`` at which the API server reaches us; ``service`` for the Service in `namespace`."""
    config: Path | None = None
    """A file in Kueue's Configuration format; without one, Kueue's defaults."""
    namespace: str = "sluice-system"
    """Where we run when we run in a cluster; its jobs are never gated."""
    log_level: Level = "INFO"
    log_format: Literal["text", "json"] = "text"

    @classmethod
    def load(cls) -> Self:
        """Read the environment; raises Misconfigured naming each wrong variable."""
        known = {_variable(name) for name in cls.model_fields} | FOREIGN
        stray = sorted(name for name in os.environ if _is_ours(name) and name not in known)
        if stray:
            raise Misconfigured(
                f"unknown setting {', '.join(stray)}: known are {', '.join(sorted(known - FOREIGN))}"
            )
        try:
            return cls()
        except ValidationError as error:
            faults = (f"{_variable(str(e['loc'][0]))}: {e['msg']}" for e in error.errors())
            raise Misconfigured("; ".join(faults)) from None


FOREIGN = {"SLUICE_KUBE_ASSETS", "SLUICE_VECTORS", "SLUICE_SUPERVISED_BY"}
"""Read by the tests alone, and by `serve` in the processes it starts."""

SERVICE_LINKS = ("SLUICE_PORT", "SLUICE_SERVICE_")
"""Kubernetes tells every pod about a Service named sluice in variables that begin so."""


def _variable(field: str) -> str:
    """The environment variable of a field, given by its name or by that variable."""
    known = Settings.model_fields.get(field)
    if known is None:
        return field
    return str(known.validation_alias or PREFIX + field.upper())


def _is_ours(name: str) -> bool:
    return name.startswith(PREFIX) and not name.startswith(SERVICE_LINKS)
