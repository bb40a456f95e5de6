"""Reliability curves and diagrams: `curves` computes, only `draw` knows matplotlib."""
