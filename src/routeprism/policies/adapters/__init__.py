"""Real memory systems behind the contract, each in a module of its own.

Nothing here imports a memory system before a memory is built, so an adapter that is not used costs
nothing. What they have in common is in `_adapted`; what speaks to a process or a service, in
`_wire`.
"""
