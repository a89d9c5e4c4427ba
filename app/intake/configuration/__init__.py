"""Kueue's Configuration file, read as Kueue reads it and turned into the one frozen Policy.

`read` takes the parsed file. Every field of ``config.kueue.x-k8s.io/v1beta2`` is accepted, with Kueue's defaults and
rules; what Sluice has no use for is accepted too and named, so that nobody believes it to have an effect.
"""

from app.intake.configuration.reading import Configured, read

__all__ = ["Configured", "read"]
