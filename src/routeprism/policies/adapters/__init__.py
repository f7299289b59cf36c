"""Real memory systems behind the contract, one module for each.

No module here imports a memory system before a memory is built, so an unused adapter costs nothing.
`_systems` has what adapters share, `_settling` waits until ingestion has ended, and `_wire` speaks
to a process or a service. `routeprism.policies.Lineage` follows items back to records.
"""
