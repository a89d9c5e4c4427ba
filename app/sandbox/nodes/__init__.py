"""Where the pods of the simulated cluster are put, and how they live and end there."""
