"""Which contrasts a run allows: Γ against comparators; δ^op and interactions between arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from routeprism.errors import SpecError
from routeprism.policies import Policy, SourceOrder, list_operations, make_arms
from routeprism.runs import Finding


@dataclass(frozen=True, slots=True)
class Contrast:
    """A signed sum over policies, taken question by question."""

    experiment: str
    prefix: str
    """`Gamma`, `delta_op` or `interaction`."""
    policy: str
    """The policy that the row is listed under."""
    arm: str
    terms: tuple[tuple[int, str], ...]
    """(sign, policy name)."""

    def finding(self, interface: str) -> Finding:
        """Keep what it is made of, so that its numbers can be traced."""
        value = {
            "experiment": self.experiment,
            "quantity": self.prefix,
            "policy": self.policy,
            "arm": self.arm,
            "terms": [list(term) for term in self.terms],
        }
        name = f"{self.experiment}:{self.prefix}:{self.arm}"
        return Finding(name=name, value=value, policy=self.policy, interface=interface)


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A policy with its own operations, and its arms that are in the run."""

    policy: str
    arms: Mapping[tuple[str, ...], str]
    """Operations that follow arrival order → the name of the arm; none for the canonical one."""

    @property
    def operations(self) -> tuple[str, ...]:
        """All operations that the policy declares."""
        return max(self.arms, key=len)

    @property
    def inner_arms(self) -> tuple[str, ...]:
        """The arms that stand for the policy with some of its operations fixed."""
        return tuple(name for name in self.arms.values() if name != self.policy)

    def finding(self, interface: str) -> Finding:
        """Record which policy is which arm, so that a reader of the run knows."""
        arms = [{"operations": list(key), "policy": name} for key, name in self.arms.items()]
        return Finding(name="arms", value=arms, policy=self.policy, interface=interface)


def with_arms(policies: Sequence[Policy]) -> list[Policy]:
    """Add the arms of every policy that declares operations."""
    by_name = {policy.name: policy for policy in policies}
    for policy in policies:
        for arm in make_arms(policy).values():
            by_name.setdefault(arm.name, arm)
    if not any(map(list_operations, policies)):
        raise SpecError(
            f"{', '.join(policy.name for policy in policies)}: no policy here declares operations "
            f"to distinguish; focal does, and your own can (operations, fixed(operation))"
        )
    return list(by_name.values())


def mechanisms(policies: Sequence[Policy]) -> list[Mechanism]:
    """Find the policies whose canonical arm is in the run; an arm of another is not one itself."""
    names = {policy.name for policy in policies}
    mechanisms_of_plan: list[Mechanism] = []
    for policy in policies:
        arms = {key: arm.name for key, arm in make_arms(policy).items() if arm.name in names}
        if arms and () in arms:
            mechanisms_of_plan.append(Mechanism(policy.name, arms))
    inner = {
        name
        for mechanism in mechanisms_of_plan
        for key, name in mechanism.arms.items()
        if key != mechanism.operations
    }
    return [mechanism for mechanism in mechanisms_of_plan if mechanism.policy not in inner]


def contrasts(policies: Sequence[Policy]) -> tuple[Contrast, ...]:
    """Find every contrast whose arms are all in the run."""
    names = {policy.name for policy in policies}
    contrasts_of_plan: list[Contrast] = []
    for policy in policies:
        comparator = SourceOrder(policy).name
        if comparator in names:
            terms = ((1, policy.name), (-1, comparator))
            contrasts_of_plan.append(
                Contrast("routes", "Gamma", policy.name, "ordered-comparator", terms)
            )
    for mechanism in mechanisms(policies):
        contrasts_of_plan.extend(_operation_contrasts(mechanism.arms))
    return tuple(dict.fromkeys(contrasts_of_plan))


def _operation_contrasts(arms: Mapping[tuple[str, ...], str]) -> Iterator[Contrast]:
    """Compare every arm with the canonical one, and sets of operations with their parts."""
    for following, policy in arms.items():
        if following:
            terms = ((1, policy), (-1, arms[()]))
            yield Contrast("mechanism", "delta_op", policy, "+".join(following), terms)
        if len(following) < 2:
            continue
        # Inclusion and exclusion; for two, (both − canonical) − (one − canonical) − (other − …).
        sizes = range(len(following) + 1)
        parts = [part for size in sizes for part in combinations(following, size)]
        if all(part in arms for part in parts):
            signs = tuple((-1 if (len(following) - len(p)) % 2 else 1, arms[p]) for p in parts)
            yield Contrast("mechanism", "interaction", policy, "×".join(following), signs)
