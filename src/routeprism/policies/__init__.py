"""What a memory keeps: the contracts, the interfaces, and one module per policy."""

from routeprism.policies._abilities import arms, fitted, innermost, learns, operations_of
from routeprism.policies._consulting import (
    builder_model,
    consulting,
    is_deterministic,
    revivable,
    revived,
    stored_states,
)
from routeprism.policies._contracts import (
    Block,
    Consult,
    Consulting,
    Event,
    Exposure,
    Foreseeing,
    Incremental,
    JsonValue,
    Learned,
    Memory,
    Operational,
    Policy,
    Revivable,
    fold,
    prepared,
)
from routeprism.policies._registry import make_policy, registered_policies, takes_model
from routeprism.policies.interfaces import (
    INTERFACES,
    Interface,
    parse_interface,
    record_block,
    record_renderings,
)
from routeprism.policies.own import Named, as_policy, own_source
from routeprism.policies.source_order import SourceOrder

__all__ = [
    "Block",
    "Consult",
    "Consulting",
    "Event",
    "Exposure",
    "Foreseeing",
    "INTERFACES",
    "Incremental",
    "Interface",
    "JsonValue",
    "Learned",
    "Memory",
    "Named",
    "Operational",
    "Policy",
    "Revivable",
    "SourceOrder",
    "arms",
    "as_policy",
    "fitted",
    "builder_model",
    "consulting",
    "fold",
    "innermost",
    "is_deterministic",
    "learns",
    "make_policy",
    "operations_of",
    "own_source",
    "parse_interface",
    "prepared",
    "record_block",
    "record_renderings",
    "registered_policies",
    "revivable",
    "revived",
    "stored_states",
    "takes_model",
]
