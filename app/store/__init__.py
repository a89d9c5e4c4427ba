"""Postgres, the record: the only SQL in the code base.

`session` opens the database and holds the only commit; `objects` and `workloads` read what is stored; `flush` turns
what a transaction collected into rows, change numbers and audit; `changes` is the feed that everything else follows;
`lease` and `admission` make sure that only the leader decides and only against quota that is current. Rows and
SQLAlchemy never leave this package: manifests, frozen dataclasses and the errors of `app.errors` do.
"""
