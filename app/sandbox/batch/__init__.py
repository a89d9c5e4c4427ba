"""What the Job API and the Job controller of the simulated cluster do; pure."""
