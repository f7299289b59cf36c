"""What a memory keeps: the contracts, the interfaces, and one module per policy."""

from routeprism.policies._abilities import fitted, learns
from routeprism.policies._contracts import (
    Block,
    Event,
    Exposure,
    Incremental,
    JsonValue,
    Learned,
    Memory,
    Operational,
    Policy,
    fold,
)
from routeprism.policies._registry import make_policy, registered_policies
from routeprism.policies.interfaces import (
    INTERFACES,
    Interface,
    parse_interface,
    record_block,
    record_renderings,
)
from routeprism.policies.own import as_policy, own_source
from routeprism.policies.source_order import SourceOrder

__all__ = [
    "Block",
    "Event",
    "Exposure",
    "INTERFACES",
    "Incremental",
    "Interface",
    "JsonValue",
    "Learned",
    "Memory",
    "Operational",
    "Policy",
    "SourceOrder",
    "as_policy",
    "fitted",
    "fold",
    "learns",
    "make_policy",
    "own_source",
    "parse_interface",
    "record_block",
    "record_renderings",
    "registered_policies",
]
