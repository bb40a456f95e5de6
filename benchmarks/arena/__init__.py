"""The arena: calibrators of many packages on many datasets, by one protocol.

``python -m benchmarks.arena``; docs/evidence/arena.md says how to read what comes out.
"""
