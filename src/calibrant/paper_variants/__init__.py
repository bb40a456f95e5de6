"""What the papers describe and nobody needs but to repeat their figures.

The options of `calibrant.ENIR` (``variant="authors"``), `calibrant.ABB` (``variant="text"`` and
``cache``) and `calibrant.ELiTE` (``degree`` 0 and 2) lead here; their numba code is in
`calibrant.kernels.paper_variants`.
"""
