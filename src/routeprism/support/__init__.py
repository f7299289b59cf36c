"""Which records carry the answer, and whether a pool may be reordered at all."""
