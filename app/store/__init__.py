"""The only SQL: tables, the one commit point, the change log, the lease."""
