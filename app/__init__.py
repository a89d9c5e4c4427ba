"""Sluice: decides when a suspended job may start, against team quotas kept in Postgres."""
