"""Does the core decide as Kueue does? Plays folders of recorded scenarios and compares every outcome.

``python -m tests.conformance DIR [FAMILY ...]`` runs them from the command line; ``test_vectors.py`` runs them under
pytest where the vectors are at hand. The runner is a thin driver: whatever happens to a workload is done by the same
functions of ``app.core`` that the engine uses.
"""
