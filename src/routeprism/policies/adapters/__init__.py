"""Real memory systems behind the contract, one module for each.

No module here imports a memory system before a memory is built, so an unused adapter costs nothing.
`_systems` has what adapters share, and `_wire` speaks to a process or a service. In
`routeprism.policies`, `settle` waits until ingestion has ended, and `Lineage` follows items back to
records.
"""
