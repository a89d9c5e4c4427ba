"""A cluster in a process, and the embedded Postgres: everything needed to run without a cluster or a database."""
