"""What disappears because something else did: dependents of a deleted owner, the content of a namespace."""
