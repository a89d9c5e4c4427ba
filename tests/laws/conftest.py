"""How long to look: ``HYPOTHESIS_PROFILE=thorough`` for a long run, ``default`` otherwise."""

import os

from hypothesis import HealthCheck, settings

_CALM = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "brief", max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=_CALM
)
settings.register_profile(
    "thorough",
    max_examples=2000,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=_CALM,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "brief"))
