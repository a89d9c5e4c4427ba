"""How the simulated cluster misbehaves when a test asks it to."""
