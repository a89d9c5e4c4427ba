"""Logging: one line a reader can use, with everything variable as a key."""
