"""Invent the people: one persona per user, drawn so that no two share a name, trade or town."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from routeprism.records._sample.tables import cast, jobs

if TYPE_CHECKING:
    from random import Random

__all__ = ["Persona", "invent"]


@dataclass(frozen=True, slots=True)
class Persona:
    """Who a user is, in three circles: home, work and town."""

    name: str
    rel: str
    """What the partner is to the user: a husband, a sister, a niece."""
    partner: str
    pet: str
    street: str
    occupation: str
    """With its article."""
    work: str
    task: str
    boss: str
    mate: str
    town: str
    landmark: str
    river: str
    neighbour: str

    def fill(self, sentence: str) -> str:
        """Put this life's names into a sentence."""
        return sentence.format(**asdict(self))


def invent(count: int, rng: Random) -> tuple[Persona, ...]:
    """Invent so many personas."""
    names = cast()
    trades = rng.sample(jobs(), count)
    drawn = {
        use: rng.sample(names[use], count)
        for use in ("name", "partner", "pet", "street", "boss", "town", "landmark")
    }
    people = []
    for index, job in enumerate(trades):
        rel, partner = drawn["partner"][index].split()
        mate, neighbour = rng.sample(names["other"], 2)
        article = "an" if job.trade[0] in "aeiou" else "a"
        people.append(
            Persona(
                name=drawn["name"][index],
                rel=rel,
                partner=partner,
                pet=drawn["pet"][index],
                street=drawn["street"][index],
                occupation=f"{article} {job.trade}",
                work=job.workplace,
                task=job.duty,
                boss=drawn["boss"][index],
                mate=mate,
                town=drawn["town"][index],
                landmark=drawn["landmark"][index],
                river=rng.choice(names["river"]),
                neighbour=neighbour,
            )
        )
    return tuple(people)
