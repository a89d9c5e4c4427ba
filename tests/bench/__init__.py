"""Measurements, not tests: how fast the service is and what it costs, on real parts.

`python -m tests.bench` runs them; `docs/benchmarks.md` says what they mean and what has been seen. They start what they
need (control plane, Postgres, `sluice serve`) and leave nothing behind.
"""
