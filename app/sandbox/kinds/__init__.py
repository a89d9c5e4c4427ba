"""The kinds that the simulated cluster serves: names, columns, defaults and rules."""
