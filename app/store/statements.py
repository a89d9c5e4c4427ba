"""How does a statement become what the driver takes?

Statements are written in SQLAlchemy's expression language against the typed tables and compiled once; the driver
then runs them itself, because SQLAlchemy's own execution costs about five times as much CPU for a small transaction
(measured: 1.6 ms against 0.3 ms for creating one workload). So a statement that runs often is a module constant with
bind parameters; one that is put together for a call is compiled for it.

What SQLAlchemy would do at execution is not available: no expanding `in_` (use `tables.is_any`), no column defaults of
its own, no type processors. The connection's codecs carry jsonb and uuid.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Executable, Table, bindparam, insert
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import Insert

_DIALECT = dialect()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The text, the order of its parameters and the values that were written into it."""

    sql: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]

    def arguments(self, parameters: Mapping[str, Any]) -> list[Any]:
        return [
            parameters[name] if name in parameters else self.constants[name] for name in self.names
        ]


_prepared: WeakKeyDictionary[Executable, Prepared] = WeakKeyDictionary()


def prepare(statement: Executable) -> Prepared:
    """Compile, or remember having done so."""
    known = _prepared.get(statement)
    if known is None:
        known = _prepared[statement] = _compile(statement)
    return known


def insert_into(table: Table, *columns: str) -> Insert:
    """An insert that takes these columns as parameters of the same names."""
    return (
        insert(table)
        .inline()
        .values({name: bindparam(name, type_=table.c[name].type) for name in columns})
    )


def _compile(statement: Executable) -> Prepared:
    compiled = statement.compile(dialect=_DIALECT)  # type: ignore[attr-defined]
    assert isinstance(compiled, SQLCompiler)  # noqa: S101 - only expressions get here
    constants = {name: bound.value for name, bound in compiled.binds.items() if not bound.required}
    return Prepared(str(compiled), tuple(compiled.positiontup or ()), constants)
