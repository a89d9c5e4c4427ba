"""All decisions: pure functions of state, policy and time. Start at ``cycle.py``, then ``quota.py``."""
